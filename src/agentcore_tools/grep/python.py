"""Searching with Python, where the workspace has no ripgrep: with the workspace's own, or else with the one that runs this.

In both cases in a process apart, since a pattern can take for ever.
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
from agentcore_tools.grep.dialect import in_python
from agentcore_tools.grep.lines import Line, Lines, Search
from agentcore_tools.search.walk import Found

__all__ = ["NoPython", "search_here", "search_there"]

_READS: Final = Threads("sources", 2)
_MOST_OUTPUT: Final = 64 * 1024 * 1024
_BATCH_BYTES: Final = 16 * 1024 * 1024
_BATCH_FILES: Final = 500


class NoPython(Exception):
    """The workspace has none."""


async def search_there(workspace: Workspace, folder: str, found: Sequence[Found], search: Search) -> list[Lines]:
    """Search files with the workspace's Python, in the order in which they are given.

    Raises:
        NoPython: there is none.
        ToolError: the pattern is wrong.
    """
    head = await _head(search, told=False)
    names = "".join(f"./{each.path}\0" for each in found).encode(errors="surrogateescape")
    source = await _READS.run(_source)
    result = await workspace.run(
        ["python3", "-I", "-S", "-c", source], cwd=folder, stdin=head + names, max_output=_MOST_OUTPUT
    )
    if result.exit_code == 127:
        raise NoPython
    if result.exit_code:
        raise ToolError(f"The search failed: {result.stderr.strip()[-2_000:]}")
    return await _READS.run(_read, result.out.head)


async def search_here(workspace: Workspace, folder: str, found: Sequence[Found], search: Search) -> list[Lines]:
    """Search files with the Python that runs this: what they hold is fetched from the workspace, many at once.

    Raises:
        ToolError: the pattern is wrong.
    """
    source = await _READS.run(_source)
    matched: list[Lines] = []
    left = search.limit
    for batch in _batches(found):
        told = await _head(search._replace(limit=left), told=True)
        for each, data in await _fetch(workspace, folder, batch):
            told += json.dumps([each.path, len(data)]).encode() + b"\n" + data
        ended = await anyio.run_process([sys.executable, "-I", "-S", "-c", source], input=told, check=False)
        if ended.returncode:
            raise ToolError(f"The search failed: {ended.stderr.decode(errors='replace').strip()[-2_000:]}")
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
    """Give what files hold: by one command, unless one of them is not as long any more as it was when it was found."""
    size = sum(each.size for each in batch)
    result = await workspace.run(
        ["cat", "--", *(f"./{each.path}" for each in batch)], cwd=folder, max_output=max(size, 1) * 2
    )
    held: list[tuple[Found, bytes]] = []
    if result.exit_code == 0 and not result.out.omitted and len(result.out.head) == size:
        at = 0
        for each in batch:
            held.append((each, result.out.head[at : at + each.size]))
            at += each.size
        return held
    for each in batch:
        try:
            held.append((each, await workspace.read(f"{folder}/{each.path}")))
        except PathError:
            continue  # it can't be read, or is gone
    return held


async def _head(search: Search, *, told: bool) -> bytes:
    pattern = await _READS.run(in_python, search.pattern)
    return json.dumps({**search._asdict(), "pattern": pattern, "told": told}).encode() + b"\n"


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
