"""A call in words, and the words that calls have in common."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from rich.text import Text

from agentcore.cli.console import DIM, GOOD
from agentcore.cli.printable import one_line, printable

__all__ = ["Said", "added", "inside", "lines", "named", "with_arguments"]


@dataclass(frozen=True, slots=True)
class Said:
    """A call in words."""

    title: Text
    """The tool and what it is to do, on one line."""
    body: Sequence[Text] = ()
    """The rest of it: a longer command, the change to a file."""


def with_arguments(title: Text, arguments: Mapping[str, Any], longest: int, style: str = "") -> Text:
    """Say arguments behind a title, each of them."""
    for name, value in arguments.items():
        if value is None:
            continue  # what a model says for "not given"
        said = one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        if len(said) > longest:
            said = f"{said[:longest]}... ({len(said):,} characters)"
        title.append(f" {one_line(name)}=", DIM).append(said, style)
    return title


def named(values: Mapping[str, Any], longest: int = 1 << 62) -> list[Text]:
    """Say values line by line, each with its name; of one that has fields, the fields."""
    said: list[Text] = []
    for name, value in values.items():
        fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {name: value}
        said += [with_arguments(Text(), {field: each}, longest) for field, each in fields.items()]
    return [line[1:] for line in said if line]


def added(text: str) -> list[Text]:
    """Say text as what comes."""
    return [Text(f"+{line}", GOOD) for line in printable(text.removesuffix("\n")).split("\n")] if text else []


def lines(text: str, style: str = "") -> list[Text]:
    """Say text line by line."""
    return [Text(line, style) for line in printable(text).split("\n")]


def inside(path: str, root: str | None) -> str:
    """Say a path without the workspace's folder."""
    if root is not None and path.startswith(f"{root}/"):
        return path.removeprefix(f"{root}/")
    return path
