"""Unified diffs, as git and diff write them, which models send where a patch is wanted: rewritten as one."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from typing import Final, Literal

from agentcore.errors import ToolError

RANGES: Final = re.compile(r"@@\s*-(\d+)(?:,(\d+))? \+\d+(?:,(\d+))?\s*@@")
_NAME: Final = r'(?:"((?:[^"\\]|\\.)*)"|(.*?))'
_PATH: Final = re.compile(rf"(?:---|\+\+\+|(?:rename|copy) (?:from|to)) {_NAME}(?:\t.*)?\s*$")
_SAME: Final = re.compile(r'diff --git (?:a/(.+) b/\1|"a/(.+)" "b/\2"|(.+) \3)\s*$')
_GIT: Final = re.compile(
    r"index [0-9a-f]+\.\.[0-9a-f]+( \d+)?\s*$|(old|new|new file|deleted file) mode \d{6}\s*$|(dis)?similarity index \d+%|"
    r"(rename|copy) (from|to) .|Binary files .* differ\s*$|GIT binary patch\s*$"
)
_GITS_OWN: Final = re.compile(r"--- (\"?a/|/dev/null)")
_ESCAPED: Final = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
_ESCAPES: Final = dict(zip(b'abtnvfr"\\', b'\a\b\t\n\v\f\r"\\', strict=True))
_VERSION: Final = re.compile(r"\d+\.\d+[\w. ()-]*$")
_NOWHERE: Final = "/dev/null"
_NEW: Final = "new file mode "
_GONE: Final = "deleted file mode "
_HEADERS: Final = ("rename from ", "rename to ", "copy from ", "copy to ", "old mode ", _NEW, _GONE, "Binary ", "GIT ")


def from_unified(text: str) -> str:
    """Return the patch that says what a unified diff does; any other text as it is. One that it can't say is an error."""
    lines = text.replace("\r\n", "\n").split("\n")
    if any(line.startswith(("*** Begin Patch", "*** Add ", "*** Update ", "*** Delete ")) for line in lines):
        return text
    first = next((at for at in range(len(lines)) if _begins(lines, at)), None)
    if first is None:
        return text
    return "\n".join(["*** Begin Patch", *_rewritten(_without_end(lines), first), "*** End Patch"])


def _without_end(lines: Sequence[str]) -> Sequence[str]:
    """Leave out what may stand below a diff: empty lines, the end of a fence that begins above it, and git's version."""

    def last() -> int:
        return next((at for at in range(len(lines) - 1, -1, -1) if lines[at].strip()), 0)

    if lines[last()].rstrip() == "```" and next(line for line in lines if line.strip()).startswith("```"):
        lines = lines[: last()]
    at = last()
    if at and lines[at - 1].rstrip() == "--" and _VERSION.match(lines[at]):
        lines = lines[: at - 1]
    return lines


def _rewritten(lines: Sequence[str], at: int) -> Iterator[str]:
    # What git says of a file above its hunks.
    head: list[str] = []
    while at < len(lines):
        line = lines[at]
        if _is_header(lines, at):
            kind, path = _file(line, lines[at + 1])
            yield from _begun(head, kind, path)
            head = []
            at = yield from _hunks(lines, at + 2, kind)
            continue
        is_renamed = any(each.startswith("rename to ") for each in head)
        if head and _begins(lines, at) and (line.startswith("diff ") or is_renamed):
            yield from _without_hunks(head)
            head = []
        if _begins(lines, at) or _GIT.match(line):
            head.append(line)
        elif line.strip():
            raise _unknown(line, at)
        at += 1
    yield from _without_hunks(head)


def _begun(head: Sequence[str], kind: str, path: str) -> Iterator[str]:
    """Return the lines with which a file begins. What git says of it and a patch can't do is refused."""
    headers = {start: line for line in head for start in _HEADERS if line.startswith(start)}
    if "Binary " in headers or "GIT " in headers:
        raise _refused(path, "is binary, which a patch can't change. Write it with a command.")
    if copy := headers.get("copy to "):
        raise _refused(
            _path(copy), "is a copy of another file, which a patch can't make. Copy it with a command first."
        )
    if "old mode " in headers:
        raise _refused(path, "gets another mode, which a patch can't change. Leave the mode out, and use chmod.")
    mode = (headers.get(_NEW) or "100644").split()[-1]
    if mode != "100644":
        raise _refused(
            path, f"is to have the mode {mode}, which a patch can't set. Leave it out, and use a command for it."
        )
    if (headers.get(_GONE) or "100644").split()[-1][:3] != "100":
        raise _refused(path, "is a link or a module, which a patch can't delete. Use a command.")
    source, target = headers.get("rename from "), headers.get("rename to ")
    if source is not None and target is not None:
        yield f"*** Update File: {_path(source)}"
        yield f"*** Move to: {_path(target)}"
    else:
        yield f"*** {kind} File: {path}"


def _without_hunks(head: Sequence[str]) -> Iterator[str]:
    """Return the lines for a file of which only git's own lines speak: it is empty, or renamed."""
    if not head:
        return
    same = _SAME.match(head[0])
    path = head[0] if same is None else same[1] or _unquoted(same[2] or "") or same[3]
    is_new, is_removed = (any(line.startswith(start) for line in head) for start in (_NEW, _GONE))
    begun = list(_begun(head, "Add" if is_new else "Delete", path))
    if len(begun) == 1 and (same is None or not (is_new or is_removed)):
        raise _refused(path, "has no hunk, so there is nothing to change.")
    yield from begun
    if is_removed:
        yield "*** End of File"


def _hunks(lines: Sequence[str], at: int, kind: Literal["Add", "Delete", "Update"]) -> Generator[str, None, int]:
    """Return the lines of a file's hunks, and in the end the place of the next file."""
    # How many old and new lines are still to come, by the ranges; without these nothing is known.
    old = new = 0
    while at < len(lines):
        line = lines[at]
        # Models count wrongly: the lines of a next file end a hunk, unless they are just those that it lacks.
        is_own = (old, new) == (1, 1) and _is_header(lines, at) and not _GITS_OWN.match(line)
        if not is_own and (_begins(lines, at) or (_GIT.match(line) and _is_header(lines, at + 1))):
            break
        if line.startswith("@@"):
            ranges = RANGES.match(line)
            old, new = (0, 0) if ranges is None else (int(ranges[2] or 1), int(ranges[3] or 1))
            if kind == "Update":
                yield line
        elif line[:1] in {" ", "+", "-", ""}:
            old, new = old - (line[:1] != "+"), new - (line[:1] != "-")
            yield line
        elif not line.startswith("\\ No newline"):
            is_last = not any(each.strip() for each in lines[at + 1 :])
            if not (line.rstrip() == "```" and is_last and old <= 0 and new <= 0):
                raise _unknown(line, at)
        if is_own:
            yield lines[at + 1]
            at, old, new = at + 1, 0, 0
        at += 1
    if kind == "Delete":
        yield "*** End of File"
    return at


def _begins(lines: Sequence[str], at: int) -> bool:
    """Return True for a line with which clearly a file begins."""
    following = lines[at + 1] if at + 1 < len(lines) else ""
    if lines[at].startswith("diff -"):
        return _GIT.match(following) is not None or _is_header(lines, at + 1)
    return _is_header(lines, at) or (lines[at].startswith("rename from ") and following.startswith("rename to "))


def _is_header(lines: Sequence[str], at: int) -> bool:
    starts = [line[:4] for line in lines[at : at + 3]]
    return starts[:2] == ["--- ", "+++ "] and len(starts) > 2 and starts[2].rstrip()[:3] in {"@@", "@@ "}


def _file(old_line: str, new_line: str) -> tuple[Literal["Add", "Delete", "Update"], str]:
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
    if found is None:
        return ""
    return found[2] if found[1] is None else _unquoted(found[1])


def _unquoted(name: str) -> str:
    """Return a path that git wrote with escapes; bytes that are no text stay escaped."""

    def byte(found: re.Match[bytes]) -> bytes:
        escaped = found[1]
        return bytes([int(escaped, 8) & 0xFF if len(escaped) == 3 else _ESCAPES[escaped[0]]])

    return _ESCAPED.sub(byte, name.encode()).decode(errors="backslashreplace")


def _refused(path: str, why: str) -> ToolError:
    return ToolError(f"{path!r} {why} Nothing was changed.")


def _unknown(line: str, at: int) -> ToolError:
    # A long line is not quoted at all: half of a secret could not be masked any more.
    shown = repr(line) if len(line) <= 200 else f"{len(line):,} characters long"
    return ToolError(
        f"Line {at + 1} of the patch is {shown}, but a line of a hunk begins with ' ' (it stays), '-' (it goes) or '+' (it comes), "
        "and nothing else comes between hunks or below them. Nothing was changed."
    )
