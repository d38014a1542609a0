"""Unified diffs, as git and diff write them, which models send where a patch is wanted: rewritten as one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal

RANGES: Final = re.compile(r"@@\s*-(\d+)(?:,\d+)? \+\d+(?:,\d+)?\s*@@")
_PATH: Final = re.compile(r'(?:---|\+\+\+) (?:"(.*?)"|(.*?))(?:\t.*)?\s*$')
_ONLY_GIT: Final = re.compile(r"(diff --git|index|old mode|new mode|similarity index|dissimilarity index|new file mode|deleted file mode) ")  # fmt: skip
_NOWHERE: Final = "/dev/null"


def from_unified(text: str) -> str:
    """Return the patch that says what a unified diff does; any other text as it is."""
    lines = text.replace("\r\n", "\n").split("\n")
    if any(line.startswith(("*** Begin Patch", "*** Add ", "*** Update ", "*** Delete ")) for line in lines):
        return text
    if not any(_is_header(lines, at) or line.startswith("rename from ") for at, line in enumerate(lines)):
        return text
    return "\n".join(["*** Begin Patch", *_rewritten(lines), "*** End Patch"])


def _rewritten(lines: Sequence[str]) -> Iterator[str]:
    at, is_renamed = 0, False
    # What becomes of the lines below: those of an update stay as they are, those of a new file without the line of ranges.
    below: Literal["update", "add", "nothing"] = "nothing"
    while at < len(lines):
        line = lines[at]
        if line.startswith("rename from ") and at + 1 < len(lines) and lines[at + 1].startswith("rename to "):
            yield f"*** Update File: {line.removeprefix('rename from ')}"
            yield f"*** Move to: {lines[at + 1].removeprefix('rename to ')}"
            at, is_renamed = at + 2, True
        elif _is_header(lines, at):
            kind, path = _file(lines[at], lines[at + 1])
            if not is_renamed:
                yield f"*** {kind} File: {path}"
            below = "add" if kind == "Add" else "update" if kind == "Update" else "nothing"
            at += 2
        else:
            if _ONLY_GIT.match(line) or line.startswith("```"):
                below, is_renamed = "nothing", is_renamed and not line.startswith("diff ")
            elif below != "nothing" and not line.startswith("\\ No newline"):
                ranges = RANGES.match(line)
                if ranges is None:
                    yield line
                elif below == "update":
                    # The text behind the ranges is a line further up, cut anywhere, and says nothing that they do not.
                    yield ranges[0]
            at += 1


def _is_header(lines: Sequence[str], at: int) -> bool:
    return [line[:3] for line in lines[at : at + 3]] in (["---", "+++", "@@ "], ["---", "+++", "@@"])


def _file(old_line: str, new_line: str) -> tuple[str, str]:
    """Return what becomes of a file, and its path."""
    old, new = _path(old_line), _path(new_line)
    # Git's diffs begin paths so; in others these are folders.
    if (old == _NOWHERE or old.startswith("a/")) and (new == _NOWHERE or new.startswith("b/")):
        old, new = old.removeprefix("a/"), new.removeprefix("b/")
    if old == _NOWHERE:
        return "Add", new
    return ("Delete", old) if new == _NOWHERE else ("Update", new)


def _path(line: str) -> str:
    found = _PATH.match(line)
    return "" if found is None else found[1] or found[2]
