"""Changes of text, in colour."""

from __future__ import annotations

from difflib import unified_diff

from rich.text import Text

from agentcore.cli.console import BAD, DIM, GOOD
from agentcore.cli.printable import printable

__all__ = ["changes", "coloured"]


def changes(old: str, new: str) -> list[Text]:
    """Give what one text has and the other has not, with a few lines around it."""
    return coloured("\n".join(unified_diff(old.split("\n"), new.split("\n"), lineterm="", n=3)))


def coloured(diff: str) -> list[Text]:
    """Give the lines of a unified diff of one file, without those that name it and the place of the first change."""
    lines = diff.removesuffix("\n").split("\n")
    if lines[0].startswith("--- "):
        lines = lines[2:]
    return [_line(line) for line in (lines[1:] if lines and lines[0].startswith("@@") else lines)]


def _line(line: str) -> Text:
    return Text(printable(line), {"+": GOOD, "-": BAD, "@": DIM}.get(line[:1], ""))
