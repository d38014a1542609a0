"""Searching with ripgrep, where the workspace has it."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import sysconfig
from collections.abc import Callable, Collection
from typing import Any, Final, final

import anyio

from agentcore._threads import Threads
from agentcore.errors import ToolError
from agentcore.workspace import Process, Workspace
from agentcore_tools.grep.query import Line, Lines, ProgramMissing, Search

# In the order of the paths, so that what is left out when there is too much is always the same.
_ALWAYS: Final = "--no-config --json --sort=path --crlf --no-messages --no-require-git --no-ignore-dot --no-ignore-global --no-ignore-exclude"
_OLD: Final = ("Found argument", "unrecognized flag", "unexpected argument")
_MOST_ERROR: Final = 1_000_000
# What one argument may be, and what is a glob to any version.
_LONGEST_PATTERN: Final = 100_000
_PLAIN_GLOB: Final = re.compile(r"[\w.*?-]*(?:\{[\w.*?,-]*\}[\w.*?-]*)*")
# A line in which there are very many matches comes as a very long object: reading that takes a while.
_MUCH: Final = 100_000
_READS: Final = Threads("matches", 2)


class RipgrepFailed(Exception):
    """It did not come to the end of this search: some versions crash on some patterns with some lines."""


async def find_ripgrep(missing: Collection[str]) -> str | None:
    """Return the program to try next: that on PATH, then one that is installed beside Python; None if they are `missing`."""
    if "rg" not in missing:
        return "rg"
    beside = await _READS.run(_beside_python)
    return None if beside in missing else beside


def _beside_python() -> str | None:
    """Return the ripgrep that pip installed: its folder is on PATH only where the environment is activated."""
    folders = sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")
    return shutil.which("rg", path=os.pathsep.join(folders))


async def search_with_ripgrep(
    workspace: Workspace,
    folder: str,
    file: str | None,
    search: Search,
    wanted: Callable[[str], bool],
    *,
    program: str,
    types: str | None,
    hidden: bool,
    everything: bool,
) -> list[Lines]:
    """Search a folder, or one file in it, for the lines of the files that are `wanted`. `types` is a glob that they all match.

    Raises:
        ProgramMissing: it can't be done so.
        RipgrepFailed: this one can't be.
    """
    if len(search.pattern.encode(errors="replace")) > _LONGEST_PATTERN:
        raise RipgrepFailed
    options = [*_ALWAYS.split(), f"--context={search.context if search.keep else 0}"]
    options += ["--ignore-case"] if search.ignore_case else []
    options += ["--max-count=1"] if search.first_only else []
    options += ["--hidden", "--glob=!.git"] if hidden or everything else []
    options += ["--no-ignore"] if everything else []
    # Not --glob, which would bring back what is ignored.
    if types is not None and file is None and _PLAIN_GLOB.fullmatch(types) is not None:
        options += [f"--type-add=wanted:{types}", "--type=wanted"]
    target = f"./{file}" if file is not None else "./"
    reader = _Reader(search, wanted)
    async with workspace.open_process([program, *options, "-e", search.pattern, "--", target], cwd=folder) as process:
        await process.send_eof()
        while not reader.enough:
            try:
                data = await process.receive()
            except anyio.EndOfStream:
                break
            if b"\n" in data and reader.pending > _MUCH:
                await _READS.run(reader.feed, data)
            else:
                reader.feed(data)
        if reader.enough:
            return reader.found
        problem = await _problem(process)
        code = await process.wait()
    if code == 127 or any(sign in problem for sign in _OLD):
        raise ProgramMissing
    if code not in {0, 1, 2}:
        raise RipgrepFailed
    if code == 2 and not reader.found and problem.strip():
        raise ToolError(f"ripgrep refused the pattern: {problem.strip()}")
    return reader.found


@final
class _Reader:
    """Reads what ripgrep writes, a JSON object on each line."""

    def __init__(self, search: Search, wanted: Callable[[str], bool]) -> None:
        self.found: list[Lines] = []
        self.enough = False
        self._search = search
        self._wanted = wanted
        self._count = 0
        self._current: Lines | None = None
        self._rest: list[bytes] = []
        self.pending = 0
        """How long the line is that has not ended yet."""

    def feed(self, data: bytes) -> None:
        first, *more = data.split(b"\n")
        self._rest.append(first)
        self.pending += len(first)
        for piece in more:
            if not self.enough:
                self._take(json.loads(b"".join(self._rest)))
            self._rest = [piece]
            self.pending = len(piece)

    def _take(self, event: dict[str, Any]) -> None:
        data: dict[str, Any] = event["data"]
        if event["type"] == "begin":
            path = _text(data["path"], "surrogateescape").removeprefix("./")
            self._current = Lines(path) if self._wanted(path) else None
            return
        current = self._current
        if current is None:
            return
        match event["type"]:
            case "match" | "context":
                is_match = event["type"] == "match"
                current.matches += is_match
                if self._search.keep:
                    current.lines.append(
                        Line(data["line_number"], _text(data["lines"]).removesuffix("\n").removesuffix("\r"), is_match)
                    )
                    if self._count + current.matches > self._search.limit:
                        self._finish(current)
            case "end" if data.get("binary_offset") is None and current.matches:
                self._finish(current)
            case _:
                pass

    def _finish(self, lines: Lines) -> None:
        self.found.append(lines)
        self._current = None
        self._count += lines.matches if self._search.keep else 1
        self.enough = self._count > self._search.limit


async def _problem(process: Process) -> str:
    message = bytearray()
    while len(message) < _MOST_ERROR:
        try:
            message += await process.receive_stderr()
        except anyio.EndOfStream:
            break
    return message.decode(errors="replace")[:_MOST_ERROR]


def _text(value: dict[str, str], errors: str = "replace") -> str:
    if "text" in value:
        return value["text"]
    return base64.b64decode(value["bytes"]).decode(errors=errors)
