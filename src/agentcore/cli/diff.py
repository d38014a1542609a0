"""Changes of text, in colour."""

from __future__ import annotations

from difflib import unified_diff

from rich.text import Text

from agentcore.cli.console import BAD, DIM, GOOD, STRONG
from agentcore.cli.printable import printable

__all__ = ["changes", "coloured"]


def changes(old: str, new: str) -> list[Text]:
    """Give what one text has and the other has not, with a few lines around it."""
    return coloured("\n".join(unified_diff(old.split("\n"), new.split("\n"), lineterm="", n=3)))


def coloured(diff: str) -> list[Text]:
    """Give the lines of a unified diff: of one file without its name and the place of the first change, of several with both."""
    lines = diff.removesuffix("\n").split("\n")
    heads = [number for number in range(len(lines)) if _is_head(lines, number)]
    if len(heads) > 1:
        shown: list[Text] = []
        for number, line in enumerate(lines):
            if number in heads:
                shown.append(Text(_named(line, lines[number + 1]), STRONG))
            elif number - 1 not in heads:
                shown.append(_line(line))
        return shown
    if lines[0].startswith("--- "):
        lines = lines[2:]
    return [_line(line) for line in (lines[1:] if lines and lines[0].startswith("@@") else lines)]


def _is_head(lines: list[str], number: int) -> bool:
    """Say whether a file begins here. A line that begins with "-- " and goes looks like it, but for what follows."""
    below = lines[number + 1 : number + 3]
    return (
        lines[number].startswith("--- ")
        and bool(below)
        and below[0].startswith("+++ ")
        and (len(below) == 1 or below[1].startswith(("@@", "--- ", "\\")))
    )


def _named(old: str, new: str) -> str:
    before, after = printable(old[4:]), printable(new[4:])
    if before == "/dev/null":
        return f"{after} (new)"
    if after == "/dev/null":
        return f"{before} (removed)"
    return before if before == after else f"{before} -> {after}"


def _line(line: str) -> Text:
    return Text(printable(line), {"+": GOOD, "-": BAD, "@": DIM}.get(line[:1], ""))
