"""Asking the person at the terminal: about an action, and for lines."""

from __future__ import annotations

import json
import os
import shlex
import sys
import termios
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext, suppress
from typing import Any, cast

import anyio
from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from agentcore.cli.blocks import draw_call
from agentcore.cli.console import DIM, STRONG, WARN, Glyphs, say, styled
from agentcore.cli.process import Interrupts
from agentcore.cli.settings import Settings
from agentcore.cli.text import one_line, printable
from agentcore.events import ActionAssessed, ActionEvent
from agentcore.security import Approve, Reject

_CHOICES = "yes, no, edit, later? [y/n/e/l] "
_ANSWERS = "Answer y (yes: it may), n (no, and why), e (edit what it is called with) or l (later: it waits, and the run stops)."


def can_ask(console: Console) -> bool:
    """Say whether there is somebody who sees a question and can answer it."""
    return sys.stdin.isatty() and console.file.isatty()


def show_call(
    console: Console,
    event: ActionEvent,
    question: str,
    *,
    which: str = "",
    root: str,
    arguments: Mapping[str, JsonValue] | None = None,
    assessment: ActionAssessed | None = None,
) -> None:
    """Show all of a call that somebody decides about."""
    risk = "" if assessment is None or assessment.risk is None else f"risk: {assessment.risk}"
    about = ", ".join(part for part in (which, risk) if part)
    say(console, Text(f"{question} ({about})" if about else question, WARN))
    call = draw_call(event, arguments, root=root, whole=True)
    bar = f" {Glyphs(console.encoding).bar} "
    # Nothing is cut here, and nothing unseen is left out: who says yes has to know to what.
    for line in (call.title, *call.below):
        say(console, styled(bar, DIM).append(line))


class Person:
    """The one at the terminal."""

    def __init__(self, console: Console, settings: Settings, interrupts: Interrupts, root: str) -> None:
        self._console = console
        self._settings = settings
        self._interrupts = interrupts
        self._root = root

    async def decide(
        self, event: ActionEvent, which: str, assessment: ActionAssessed | None = None
    ) -> Approve | Reject | None:
        """Ask about an action until there is an answer; None to leave it waiting."""
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
                    reason = rest.strip() or await self.line("Why not? The model reads it (Enter for no reason): ")
                    said = Reject(by=self._settings.person)
                    return Reject(reason.strip(), by=self._settings.person) if reason and reason.strip() else said
                case "e" | "edit":
                    editor = self._settings.editor
                    # Ctrl-C is the editor's while there is one.
                    with nullcontext() if editor is None else self._interrupts.muted():
                        edited = await edit_arguments(arguments or proposed, editor, self._console, self.line)
                    if edited is not None:
                        arguments = edited
                        self._show(event, arguments, "changed", assessment)
                case "l" | "later":
                    return None
                case _:
                    said = f"{one_line(word)!r} is no answer. " if word else ""
                    say(self._console, f"{said}{_ANSWERS}", WARN)

    async def line(self, question: str) -> str | None:
        """Ask for a line; None where the input has ended (Ctrl-D). Waiting for it can be cancelled."""
        descriptor = sys.stdin.fileno()
        # What was typed before the question was not meant as its answer.
        with suppress(termios.error):
            termios.tcflush(descriptor, termios.TCIFLUSH)
        self._console.print(Text(question, STRONG), end="", soft_wrap=True)
        self._console.file.flush()
        typed = b""
        while not typed.endswith(b"\n"):
            await anyio.wait_readable(descriptor)
            piece = os.read(descriptor, 4096)
            if not piece:
                self._console.print()
                return None
            typed += piece
        return typed.decode(sys.stdin.encoding, errors="replace").rstrip("\r\n")

    def _show(
        self,
        event: ActionEvent,
        arguments: Mapping[str, JsonValue] | None,
        which: str,
        assessment: ActionAssessed | None,
    ) -> None:
        show_call(
            self._console,
            event,
            "May it do this?",
            which=which,
            root=self._root,
            arguments=arguments,
            assessment=assessment,
        )

    def tell(self, text: str) -> None:
        """Say something to the person."""
        say(self._console, printable(text), WARN)


Ask = Callable[[str], Awaitable[str | None]]


async def edit_arguments(
    arguments: Mapping[str, JsonValue], editor: str | None, console: Console, ask: Ask
) -> dict[str, JsonValue] | None:
    """Let the person change them; None where nothing came of it, which is said."""
    if editor is None:
        return await _ask_for_one(arguments, console, ask)
    text = await _in_editor(json.dumps(dict(arguments), indent=2, ensure_ascii=False), editor, console)
    return None if text is None else _read(text, console)


async def _ask_for_one(arguments: Mapping[str, JsonValue], console: Console, ask: Ask) -> dict[str, JsonValue] | None:
    names = list(arguments)
    name = names[0] if len(names) == 1 else await ask(f"Which one ({', '.join(map(one_line, names))})? ")
    if name is None or name not in arguments:
        say(console, "There is no such argument; nothing was changed.", WARN)
        return None
    before = arguments[name]
    said = before if isinstance(before, str) else json.dumps(before, ensure_ascii=False)
    say(console, styled(f"{one_line(name)} is now: ", DIM).append(one_line(said)))
    if isinstance(before, str) and "\n" in before:
        say(console, "Here it can only become one line. To change several, set VISUAL or EDITOR.", DIM)
    value = await ask(f"New value of {one_line(name)}: ")
    if value is None:
        return None
    if isinstance(before, str):
        return {**arguments, name: value}
    changed = _read(f'{{"value": {value}}}', console)
    return None if changed is None else {**arguments, name: changed["value"]}


async def _in_editor(text: str, editor: str, console: Console) -> str | None:
    # A folder that only this user can look into: arguments may be private.
    async with anyio.TemporaryDirectory(prefix="agentcore-") as folder:
        path = anyio.Path(folder, "arguments.json")
        await path.write_text(f"{text}\n", encoding="utf-8")
        command = [*shlex.split(editor), os.fspath(path)]
        try:
            ended = await anyio.run_process(command, stdin=None, stdout=console.file, stderr=None, check=False)
        except OSError as error:
            say(console, f"The editor {editor!r} can't be started: {error.strerror}. Set VISUAL or EDITOR.", WARN)
            return None
        if ended.returncode:
            say(console, f"The editor {editor!r} ended with {ended.returncode}; nothing was changed.", WARN)
            return None
        return await path.read_text(encoding="utf-8")


def _read(text: str, console: Console) -> dict[str, JsonValue] | None:
    try:
        value: Any = json.loads(text)
    except ValueError as error:
        say(console, f"That is not JSON ({error}); nothing was changed.", WARN)
        return None
    if not isinstance(value, dict):
        say(console, "The arguments have to be a JSON object; nothing was changed.", WARN)
        return None
    return cast("dict[str, JsonValue]", value)
