"""Reading a patch.

The grammar is that of the models which were trained on it: files are added, deleted or updated; an update is made of hunks,
each under `@@` lines that say where it is; a line of a hunk begins with a blank (it stays), `-` (it goes) or `+` (it comes).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from agentcore.errors import ToolError
from agentcore_tools.apply_patch.unified import RANGES, from_unified

_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_END_OF_FILE: Final = "*** End of File"
_HEADER: Final = re.compile(r"\*\*\* (Add|Update|Delete) File:\s*(.*?)\s*$")
_MOVE: Final = re.compile(r"\*\*\* Move to:\s*(.*?)\s*$")
_QUOTED: Final = 200
"""The longest line that an error quotes."""
_FENCE: Final = re.compile(r"```\w*\s*$")


class Hunk(NamedTuple):
    """One place of a file."""

    line: int
    """Where it begins in the patch, from 1."""
    anchors: tuple[str, ...]
    """Lines of the file, one after the other, below which it is."""
    lines: tuple[tuple[str, str], ...]
    """A blank, `-` or `+`, and the line."""
    at_end: bool = False
    """True if it is at the end of the file."""
    near: int | None = None
    """The line of the file where it is said to be, which decides between places that fit equally well."""
    heading: str = ""
    """The beginning of a line further up, which decides so before `near` does."""

    @property
    def old(self) -> list[str]:
        """The lines that have to be there."""
        return [line for sign, line in self.lines if sign != "+"]


class AddFile(NamedTuple):
    path: str
    text: str


class DeleteFile(NamedTuple):
    path: str
    lines: tuple[str, ...] | None = None
    """Its lines, where the patch has them."""


class UpdateFile(NamedTuple):
    path: str
    move_to: str | None
    hunks: tuple[Hunk, ...]


def paths_of(patches: Sequence[FilePatch]) -> list[str]:
    """Return the paths of the files that are changed, and those that they are moved to."""
    paths = ((patch.path, patch.move_to if isinstance(patch, UpdateFile) else None) for patch in patches)
    return [path for pair in paths for path in pair if path is not None]


FilePatch = AddFile | DeleteFile | UpdateFile


class _Lines:
    """The lines of a patch, to be read one after the other."""

    def __init__(self, lines: Sequence[str], first: int) -> None:
        self._lines = lines
        self._first = first
        self._next = 0

    @property
    def number(self) -> int:
        """The number of the next line."""
        return self._first + self._next

    def peek(self) -> str | None:
        return self._lines[self._next] if self._next < len(self._lines) else None

    def take(self) -> str:
        self._next += 1
        return self._lines[self._next - 1]

    def until_file(self) -> Iterator[str]:
        """Take the lines before the next file of the patch."""
        while (line := self.peek()) is not None and not _HEADER.match(line):
            yield self.take()


def read_patch(patch: str) -> list[FilePatch]:
    """Read a patch. An error says in which line it is wrong, and what is wanted."""
    lines = _body(from_unified(patch))
    files: list[FilePatch] = []
    while (line := lines.peek()) is not None:
        number = lines.number
        lines.take()
        header = _HEADER.match(line)
        if header is None:
            if line.strip():
                raise _wrong(
                    number,
                    line,
                    "a file begins with '*** Add File: path', '*** Update File: path' or '*** Delete File: path'",
                )
            continue
        kind, path = header.groups()
        if not path:
            raise _wrong(number, line, "it needs a path")
        files.append(_file(kind, path, number, lines))
    if not files:
        raise ToolError("The patch changes no file. Between its first and its last line come the files to change.")
    return files


def _body(patch: str) -> _Lines:
    lines = patch.replace("\r\n", "\n").split("\n")
    begin = next((number for number, line in enumerate(lines) if line.strip() == _BEGIN), None)
    if begin is None:
        # Some leave the frame out.
        begin = next((number - 1 for number, line in enumerate(lines) if _HEADER.match(line)), None)
        if begin is None:
            raise ToolError(
                f"This is not a patch: a patch begins with a line '{_BEGIN}' and ends with a line '{_END}'. What comes between are "
                "'*** Add File: path' with '+' lines, '*** Delete File: path', or '*** Update File: path' with hunks."
            )
    # The last one: a line like it may be one that stays.
    end = next((number for number in range(len(lines) - 1, begin, -1) if lines[number].strip() == _END), None)
    if end is None:
        end = len(lines)
        while end > begin + 1 and (not lines[end - 1].strip() or _FENCE.match(lines[end - 1])):
            end -= 1
    # Some write several patches, one below the other.
    body = ["" if line.rstrip() in {_BEGIN, _END} else line for line in lines[begin + 1 : end]]
    return _Lines(body, begin + 2)


def _file(kind: str, path: str, number: int, lines: _Lines) -> FilePatch:
    match kind:
        case "Add":
            return AddFile(path, _added(lines))
        case "Delete":
            return DeleteFile(path, _deleted(lines))
        case _:
            move_to = None
            if (line := lines.peek()) is not None and (move := _MOVE.match(line)) is not None:
                lines.take()
                move_to = move.group(1) or None
                if move_to is None:
                    raise _wrong(lines.number - 1, line, "it needs a path")
            hunks = _hunks(lines)
            if not hunks and move_to is None:
                raise ToolError(
                    f"Line {number} of the patch: the update of {path!r} has no hunk, so there is nothing to change."
                )
            return UpdateFile(path, move_to, hunks)


def _added(lines: _Lines) -> str:
    text: list[str] = []
    empty = 0
    for line in lines.until_file():
        if line.startswith("+"):
            # Editors and models drop the plus of a line that is empty.
            text += ["\n"] * empty + [line[1:] + "\n"]
            empty = 0
        elif not line.strip():
            empty += bool(text)
        elif line.strip() != _END_OF_FILE:
            raise _wrong(lines.number - 1, line, "each line of a file that is added begins with '+'")
    return "".join(text)


def _deleted(lines: _Lines) -> tuple[str, ...] | None:
    """Return what a file that is deleted has to be, or None if the patch doesn't say."""
    below = [(lines.number - 1, line) for line in lines.until_file() if line.strip()]
    if not below:
        return None
    # Of a diff come its lines, and that these are all.
    is_whole = below[-1][1].rstrip() == _END_OF_FILE
    written = below[:-1] if is_whole else below
    for number, line in written:
        if not is_whole or not line.startswith("-"):
            raise _wrong(number, line, "nothing comes below a file that is deleted")
    return tuple(line[1:] for _, line in written)


def _hunks(lines: _Lines) -> tuple[Hunk, ...]:
    hunks: list[Hunk] = []
    anchors: list[str] = []
    near: int | None = None
    heading = ""
    found: list[tuple[str, str]] = []
    start = lines.number

    def close(*, at_end: bool = False) -> None:
        nonlocal near, heading
        # Blank lines between hunks, and before the next file, are no lines of the file.
        while found and found[-1] == (" ", "") and not at_end:
            found.pop()
        if any(sign != " " for sign, _ in found):
            hunks.append(Hunk(start, tuple(anchors), tuple(found), at_end, near, heading))
        elif found:
            raise ToolError(
                f"Line {start} of the patch: the hunk that begins here changes nothing: no line of it begins with '-' or '+'."
            )
        found.clear()
        anchors.clear()
        near, heading = None, ""

    for line in lines.until_file():
        if line.rstrip() == _END_OF_FILE:
            close(at_end=True)
        elif line.startswith("@@"):
            if found:
                close()
            if not anchors:
                start = lines.number - 1
            near, heading = _named(line) or (near, heading)
            if anchor := _anchor(line):
                anchors.append(anchor)
        elif line[:1] in {" ", "+", "-"}:
            found.append((line[0], line[1:]))
        elif not line:
            # Editors and models drop the blank of a line that is empty.
            if found:
                found.append((" ", ""))
        else:
            raise _wrong(
                lines.number - 1,
                line,
                "a line of a hunk begins with ' ' (it stays), '-' (it goes) or '+' (it comes), and '@@' begins a hunk",
            )
        if len(found) == 1 and not anchors:
            start = lines.number - 1
    close()
    return tuple(hunks)


def _named(line: str) -> tuple[int, str] | None:
    """Return the line and the heading that an `@@` line with ranges names."""
    ranges = RANGES.match(line)
    return None if ranges is None else (int(ranges[1]), line[ranges.end() :].strip())


def _anchor(line: str) -> str:
    """Return the line of the file that an `@@` line names. One with ranges, as diffs have them, names none."""
    anchor = "" if RANGES.match(line) else line[2:]
    anchor = anchor.removesuffix("@@") if anchor.rstrip() == "@@" else anchor
    return anchor.removeprefix(" ").rstrip()


def _wrong(number: int, line: str, wanted: str) -> ToolError:
    # A long line is not quoted at all: half of a secret could not be masked any more.
    shown = repr(line) if len(line) <= _QUOTED else f"{len(line):,} characters long"
    return ToolError(f"Line {number} of the patch is {shown}, but {wanted}. Nothing was changed.")
