"""Unified diffs in colour, with line numbers. rich colours diffs but does not number them."""

from __future__ import annotations

import re
from typing import Final

from rich.text import Text

from agentcore.cli.console import BAD, DIM, GOOD, STRONG
from agentcore.cli.text import printable, relative_path

_NOWHERE: Final = "/dev/null"
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def render_diff(diff: str, *, root: str | None = None) -> list[Text]:
    """Render a unified diff with line numbers; a diff of several files has each file's name above it.

    Args:
        diff: The diff. A created or removed file gets no numbers, because all of its lines are there.
        root: The workspace's folder; paths inside it are shown relative to it.
    """
    lines = diff.removesuffix("\n").split("\n")
    heads = [number for number in range(len(lines)) if _is_head(lines, number)]
    ends = [*heads[1:], len(lines)]
    if not heads:
        return _of_one_file(lines)
    shown: list[Text] = []
    for head, end in zip(heads, ends, strict=True):
        if len(heads) > 1:
            shown.append(Text(_named(lines[head], lines[head + 1], root), STRONG))
        shown += _of_one_file(lines[head + 2 : end])
    return shown


def _of_one_file(lines: list[str]) -> list[Text]:
    places = [match for line in lines if (match := _HUNK.match(line))]
    if not places or any("0" in (place[2], place[4]) for place in places):
        return [_line(line) for line in lines if not _HUNK.match(line)]
    last = max(int(place[at]) + int(place[at + 1] or 1) for place in places for at in (1, 3))
    shown: list[Text] = []
    old = new = 0
    left = [0, 0]
    for line in lines:
        if not any(left) and (place := _HUNK.match(line)):
            if shown:
                shown.append(Text("...", DIM))
            old, new = int(place[1]), int(place[3])
            left = [int(place[2] or 1), int(place[4] or 1)]
            continue
        sign = line[:1]
        if sign == "\\":
            shown.append(_line(line))
            continue
        content = _line(line)
        shown.append(Text(f"{old if sign == '-' else new:>{len(str(last - 1))}} {content.plain}", content.style))
        if sign != "+":
            old, left[0] = old + 1, left[0] - 1
        if sign != "-":
            new, left[1] = new + 1, left[1] - 1
    return shown


def _is_head(lines: list[str], number: int) -> bool:
    """Return whether a file begins here. A removed line that begins with "-- " looks alike, except for what follows."""
    below = lines[number + 1 : number + 3]
    return (
        lines[number].startswith("--- ")
        and bool(below)
        and below[0].startswith("+++ ")
        and (len(below) == 1 or below[1].startswith(("@@", "--- ", "\\")))
    )


def _named(old: str, new: str, root: str | None) -> str:
    before, after = relative_path(printable(old[4:]), root), relative_path(printable(new[4:]), root)
    if before == _NOWHERE:
        return f"{after} (new)"
    if after == _NOWHERE:
        return f"{before} (removed)"
    return before if before == after else f"{before} -> {after}"


def _line(line: str) -> Text:
    style = STRONG if line.startswith("*** ") else {"+": GOOD, "-": BAD, "@": DIM, "\\": DIM}.get(line[:1], "")
    return Text(printable(line), style)
