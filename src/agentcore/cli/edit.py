"""Changing the arguments of a call before it is allowed: in the person's editor, or value by value."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import anyio
from pydantic import JsonValue
from rich.console import Console

from agentcore.cli.console import DIM, WARN, say, styled
from agentcore.cli.printable import one_line

__all__ = ["edit_arguments"]

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
