"""Searching with Python's `re` where the workspace has no ripgrep: in the workspace's Python, or else in the one that runs this.

Both search in a process of their own, because some patterns never come to an end.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any, Final

import anyio

from agentcore._threads import Threads
from agentcore.errors import PathError, ToolError
from agentcore.workspace import Workspace
from agentcore_tools.grep.query import Line, Lines, ProgramMissing, Search
from agentcore_tools.search.walk import Found

_READS: Final = Threads("sources", 2)
_MOST_OUTPUT: Final = 64 * 1024 * 1024
_BATCH_BYTES: Final = 16 * 1024 * 1024
_BATCH_FILES: Final = 500
_WRONG_PATTERN: Final = 3
"""The exit code of `inside.py` for a pattern that `re` refuses."""

PYTHON_NOTE: Final = "There is no ripgrep here that can do this search, so Python's `re` reads the pattern."


async def search_there(workspace: Workspace, folder: str, found: Sequence[Found], search: Search) -> list[Lines]:
    """Search files with the workspace's Python, in the order of `found`; without one, that is a `ProgramMissing`."""
    head = _head(search, streamed=False)
    names = "".join(f"./{each.path}\0" for each in found).encode(errors="surrogateescape")
    source = await _READS.run(_source)
    result = await workspace.run(
        ["python3", "-I", "-S", "-c", source], cwd=folder, stdin=head + names, max_output=_MOST_OUTPUT
    )
    if result.exit_code == 127:
        raise ProgramMissing
    _check(result.exit_code, result.stderr)
    return await _READS.run(_read, result.out.head)


async def search_here(workspace: Workspace, folder: str, found: Sequence[Found], search: Search) -> list[Lines]:
    """Search files with the Python that runs this. Their contents are fetched from the workspace, many files at once."""
    source = await _READS.run(_source)
    matched: list[Lines] = []
    left = search.limit
    for batch in _batches(found):
        stream = _head(search._replace(limit=left), streamed=True)
        for each, data in await _fetch(workspace, folder, batch):
            stream += json.dumps([each.path, len(data)]).encode() + b"\n" + data
        ended = await anyio.run_process([sys.executable, "-I", "-S", "-c", source], input=stream, check=False)
        _check(ended.returncode, ended.stderr.decode(errors="replace"))
        more = await _READS.run(_read, ended.stdout)
        matched += more
        left -= sum(lines.matches if search.keep else 1 for lines in more)
        if left < 0:
            break
    return matched


def _batches(found: Sequence[Found]) -> Iterator[list[Found]]:
    batch: list[Found] = []
    size = 0
    for each in found:
        if batch and (size + each.size > _BATCH_BYTES or len(batch) == _BATCH_FILES):
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += each.size
    if batch:
        yield batch


async def _fetch(workspace: Workspace, folder: str, batch: Sequence[Found]) -> list[tuple[Found, bytes]]:
    """Read files with one command, or each by itself if one of them has another length than when it was found."""
    size = sum(each.size for each in batch)
    result = await workspace.run(
        ["cat", "--", *(f"./{each.path}" for each in batch)], cwd=folder, max_output=max(size, 1) * 2
    )
    contents: list[tuple[Found, bytes]] = []
    if result.exit_code == 0 and not result.out.omitted and len(result.out.head) == size:
        at = 0
        for each in batch:
            contents.append((each, result.out.head[at : at + each.size]))
            at += each.size
        return contents
    for each in batch:
        try:
            contents.append((each, await workspace.read(f"{folder}/{each.path}")))
        except PathError:
            continue  # it cannot be read, or is gone
    return contents


def _head(search: Search, *, streamed: bool) -> bytes:
    return json.dumps({**search._asdict(), "streamed": streamed}).encode() + b"\n"


def _check(code: int, errors: str) -> None:
    if code == _WRONG_PATTERN:
        raise ToolError(f"The pattern cannot be used: {errors.strip()}. {PYTHON_NOTE}")
    if code:
        raise ToolError(f"The search failed: {errors.strip()}")


def _source() -> str:
    return files("agentcore_tools.grep").joinpath("inside.py").read_text(encoding="utf-8")


def _read(output: bytes) -> list[Lines]:
    found: list[Lines] = []
    for row in output.splitlines():
        try:
            path, count, lines = json.loads(row)
        except ValueError:
            continue  # the middle of a very long output was not kept
        rows: list[list[Any]] = lines
        found.append(Lines(path.removeprefix("./"), [Line(*line) for line in rows], count))
    return found
