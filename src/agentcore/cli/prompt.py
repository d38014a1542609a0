"""Approval at the terminal: show a call, ask about it, edit its arguments."""

from __future__ import annotations

import json
import os
import shlex
import sys
import termios
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any, cast

import anyio
from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from agentcore.cli.blocks import render_call
from agentcore.cli.console import DIM, STRONG, WARN, Glyphs, print_line, print_text, styled
from agentcore.cli.process import Interrupts
from agentcore.cli.settings import Settings
from agentcore.cli.text import one_line, printable
from agentcore.events import ActionAssessed, ActionEvent
from agentcore.security import Approve, Reject

_CHOICES = "yes, no, edit, later? [y/n/e/l] "
_ANSWERS = "Type y (approve), n [reason] (reject), e (edit arguments) or l (decide later)."


@contextmanager
def open_keyboard(console: Console, *, stdin_taken: bool = False) -> Generator[int | None]:
    """Open the descriptor to read answers from; None where questions cannot be shown and answered on a terminal.

    Args:
        console: Where the questions are shown.
        stdin_taken: Whether standard input had something else to say: then the console's own terminal is read.
    """
    descriptor = None
    if console.file.isatty() and sys.stdin.isatty():
        descriptor = os.dup(sys.stdin.fileno())
    elif console.file.isatty() and stdin_taken:
        with suppress(OSError):  # a container may not have the terminal's device
            descriptor = os.open(os.ttyname(console.file.fileno()), os.O_RDONLY | os.O_NOCTTY)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


async def ask(console: Console, keyboard: int, question: str) -> str | None:
    """Read a line, cancellably; None at the end of input (Ctrl-D)."""
    # Input typed before the question was not meant as its answer.
    with suppress(termios.error):
        termios.tcflush(keyboard, termios.TCIFLUSH)
    console.print(Text(question, STRONG), end="", soft_wrap=True)
    console.file.flush()
    typed = b""
    while not typed.endswith(b"\n"):
        await anyio.wait_readable(keyboard)
        piece = os.read(keyboard, 4096)
        if not piece:
            console.print()
            return None
        typed += piece
    return typed.decode(sys.stdin.encoding, errors="replace").rstrip("\r\n")


def print_call(
    console: Console,
    event: ActionEvent,
    question: str,
    *,
    which: str = "",
    root: str,
    arguments: Mapping[str, JsonValue] | None = None,
    assessment: ActionAssessed | None = None,
) -> None:
    """Print all of a call that a person decides about."""
    risk = "" if assessment is None or assessment.risk is None else f"risk: {assessment.risk}"
    about = ", ".join(part for part in (which, risk) if part)
    print_line(console, Text(f"{question} ({about})" if about else question, WARN))
    call = render_call(event, arguments, root=root, whole=True)
    bar = f" {Glyphs(console.encoding).bar} "
    # Nothing is omitted or hidden: a person who approves has to see all of it.
    for line in (call.title, *call.below):
        print_line(console, styled(bar, DIM).append(line))


class Person:
    """The person at the terminal."""

    def __init__(self, console: Console, keyboard: int, settings: Settings, interrupts: Interrupts, root: str) -> None:
        self._console = console
        self._keyboard = keyboard
        self._settings = settings
        self._interrupts = interrupts
        self._root = root

    async def decide(
        self, event: ActionEvent, which: str, assessment: ActionAssessed | None = None
    ) -> Approve | Reject | None:
        """Ask about an action until there is an answer; None leaves it waiting."""
        arguments: dict[str, JsonValue] | None = None
        proposed = event.arguments if assessment is None or assessment.arguments is None else assessment.arguments
        self._show(event, None if proposed is event.arguments else proposed, which, assessment)
        while True:
            answer = await self.line(_CHOICES)
            word, _, rest = ("later" if answer is None else answer).strip().partition(" ")
            match word.lower():
                case "y" | "yes":
                    return Approve(arguments=arguments, by=self._settings.person)
                case "n" | "no":
                    reason = rest or await self.line("Reason, for the model (Enter for none): ") or ""
                    plain = Reject(by=self._settings.person)
                    return replace(plain, reason=reason.strip()) if reason.strip() else plain
                case "e" | "edit":
                    editor = self._settings.editor
                    # Ctrl-C belongs to the editor while it runs.
                    with nullcontext() if editor is None else self._interrupts.muted():
                        edited = await edit_arguments(arguments or proposed, editor, self._console, self._keyboard)
                    if edited is not None:
                        arguments = edited
                        self._show(event, arguments, "changed", assessment)
                case "l" | "later":
                    return None
                case _:
                    print_text(self._console, _ANSWERS, WARN)

    async def line(self, question: str) -> str | None:
        """Read a line; None at the end of input (Ctrl-D)."""
        return await ask(self._console, self._keyboard, question)

    def _show(
        self,
        event: ActionEvent,
        arguments: Mapping[str, JsonValue] | None,
        which: str,
        assessment: ActionAssessed | None,
    ) -> None:
        print_call(
            self._console,
            event,
            "Approve this call?",
            which=which,
            root=self._root,
            arguments=arguments,
            assessment=assessment,
        )

    def warn(self, text: str) -> None:
        """Print a warning."""
        print_text(self._console, printable(text), WARN)


async def edit_arguments(
    arguments: Mapping[str, JsonValue], editor: str | None, console: Console, keyboard: int
) -> dict[str, JsonValue] | None:
    """Let a person edit arguments; None if they were not changed, after a message."""
    if editor is None:
        return await _ask_for_one(arguments, console, keyboard)
    text = await _in_editor(json.dumps(dict(arguments), indent=2, ensure_ascii=False), editor, console, keyboard)
    return None if text is None else _read(text, console)


async def _ask_for_one(
    arguments: Mapping[str, JsonValue], console: Console, keyboard: int
) -> dict[str, JsonValue] | None:
    names = list(arguments)
    name = (
        names[0]
        if len(names) == 1
        else await ask(console, keyboard, f"Which one ({', '.join(map(one_line, names))})? ")
    )
    if name is None or name not in arguments:
        print_text(console, "No such argument; nothing was changed.", WARN)
        return None
    before = arguments[name]
    shown = before if isinstance(before, str) else json.dumps(before, ensure_ascii=False)
    print_line(console, styled(f"{one_line(name)} is now: ", DIM).append(one_line(shown)))
    if isinstance(before, str) and "\n" in before:
        print_text(console, "The new value can only be one line. To edit several lines, set VISUAL or EDITOR.", DIM)
    value = await ask(console, keyboard, f"New value of {one_line(name)}: ")
    if value is None:
        return None
    if isinstance(before, str):
        return {**arguments, name: value}
    changed = _read(f'{{"value": {value}}}', console)
    return None if changed is None else {**arguments, name: changed["value"]}


async def _in_editor(text: str, editor: str, console: Console, keyboard: int) -> str | None:
    # A folder that only this user can read, because arguments may be private.
    async with anyio.TemporaryDirectory(prefix="agentcore-") as folder:
        path = anyio.Path(folder, "arguments.json")
        await path.write_text(f"{text}\n", encoding="utf-8")
        command = [*shlex.split(editor), os.fspath(path)]
        try:
            ended = await anyio.run_process(command, stdin=keyboard, stdout=console.file, stderr=None, check=False)
        except OSError as error:
            print_text(console, f"Cannot start the editor {editor!r}: {error.strerror}. Set VISUAL or EDITOR.", WARN)
            return None
        if ended.returncode:
            print_text(
                console, f"The editor {editor!r} exited with code {ended.returncode}; nothing was changed.", WARN
            )
            return None
        return await path.read_text(encoding="utf-8")


def _read(text: str, console: Console) -> dict[str, JsonValue] | None:
    try:
        value: Any = json.loads(text)
    except ValueError as error:
        print_text(console, f"Not valid JSON ({error}); nothing was changed.", WARN)
        return None
    if not isinstance(value, dict):
        print_text(console, "The arguments must be a JSON object; nothing was changed.", WARN)
        return None
    return cast("dict[str, JsonValue]", value)
