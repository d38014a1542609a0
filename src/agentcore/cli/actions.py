"""How a call of a tool is said: in the live view, when a person is asked, and when a log is read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue
from rich.text import Text

from agentcore.cli.console import BAD, DIM, GOOD, NAME, STRONG, styled
from agentcore.cli.diff import changes
from agentcore.cli.printable import one_line, printable
from agentcore.events import ActionEvent

__all__ = ["Said", "say_call"]

_LONGEST_VALUE = 200
_NO_END = 1 << 62


@dataclass(frozen=True, slots=True)
class Said:
    """A call in words."""

    title: Text
    """The tool and what it is to do, on one line."""
    body: Sequence[Text] = ()
    """The rest of it: a longer command, the change to a file."""


def say_call(
    event: ActionEvent,
    arguments: Mapping[str, JsonValue] | None = None,
    *,
    root: str | None = None,
    whole: bool = False,
) -> Said:
    """Say a call: the tools that everybody has in their own way, any other by its arguments.

    Args:
        event: The action.
        arguments: What it is called with, where a person changed that.
        root: The workspace's folder: paths in it are said without it.
        whole: Whether to say all of a long value. Who decides about a call has to see all of it.
    """
    title = styled(one_line(event.tool_name), NAME)
    if event.malformed is not None:
        return Said(title, _lines(event.malformed, BAD))
    longest = _NO_END if whole else _LONGEST_VALUE
    given: dict[str, Any] = dict(event.arguments if arguments is None else arguments)
    match event.tool_name, given:
        case "terminal", {"command": str() as command, **rest}:
            return _say_command(title, command, rest, longest)
        case "file_editor", {"command": str() as command, "path": str() as path, **rest}:
            return _say_edit(title, command, _inside(path, root), rest, longest)
        case "think", {"thought": str() as thought}:
            return Said(title, _lines(thought, DIM))
        case "finish", {"message": str() as message}:
            return Said(title, _lines(message))
        case _:
            return Said(_with_arguments(title, given, longest))


def _say_command(title: Text, command: str, rest: Mapping[str, Any], longest: int) -> Said:
    first, *more = printable(command).split("\n")
    if rest.get("is_input"):
        title.append(" types ", DIM)
    elif command or rest.get("reset"):
        title.append(" $ ", DIM)
    else:
        title.append(" waits on", DIM)
    said = {name: value for name, value in rest.items() if name != "is_input" and value is not False}
    return Said(_with_arguments(title.append(first, STRONG), said, longest, DIM), [Text(line, STRONG) for line in more])


def _say_edit(title: Text, command: str, path: str, rest: dict[str, Any], longest: int) -> Said:
    title.append(f" {one_line(command)}", DIM).append(f" {one_line(path)}", STRONG)
    body: list[Text] = []
    match rest:
        case {"old_str": str() as old, **more}:
            new = more.pop("new_str", None)
            body = changes(old, new if isinstance(new, str) else "")
        case {"file_text": str() as text, **more}:
            body = _added(text)
        case {"new_str": str() as text, **more}:
            body = _added(text)
        case _:
            more = rest
    return Said(_with_arguments(title, more, longest, DIM), body)


def _with_arguments(title: Text, arguments: Mapping[str, Any], longest: int, style: str = "") -> Text:
    for name, value in arguments.items():
        if value is None:
            continue  # what a model says for "not given"
        said = one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        if len(said) > longest:
            said = f"{said[:longest]}... ({len(said):,} characters)"
        title.append(f" {one_line(name)}=", DIM).append(said, style)
    return title


def _added(text: str) -> list[Text]:
    return [Text(f"+{line}", GOOD) for line in printable(text.removesuffix("\n")).split("\n")]


def _lines(text: str, style: str = "") -> list[Text]:
    return [Text(line, style) for line in printable(text).split("\n")]


def _inside(path: str, root: str | None) -> str:
    if root is not None and path.startswith(f"{root}/"):
        return path.removeprefix(f"{root}/")
    return path
