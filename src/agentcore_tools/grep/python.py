"""Searching with the workspace's own Python, where it has no ripgrep."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, Final

from agentcore.errors import ToolError
from agentcore.workspace import Workspace
from agentcore.workspace.threads import Threads
from agentcore_tools.grep.dialect import in_python
from agentcore_tools.grep.lines import Line, Lines, Search

__all__ = ["search_with_python"]

_READS: Final = Threads("sources", 2)
_MOST_OUTPUT: Final = 64 * 1024 * 1024


async def search_with_python(workspace: Workspace, folder: str, names: Sequence[str], search: Search) -> list[Lines]:
    """Search files, in the order in which they are given.

    Raises:
        ToolError: the pattern is wrong, or there is no Python either.
    """
    pattern = await _READS.run(in_python, search.pattern)
    source = await _READS.run(_source)
    asked = json.dumps({**search._asdict(), "pattern": pattern})
    given = "".join([asked, "\n", *(f"./{name}\0" for name in names)]).encode(errors="surrogateescape")
    result = await workspace.run(
        ["python3", "-I", "-S", "-c", source], cwd=folder, stdin=given, max_output=_MOST_OUTPUT
    )
    if result.exit_code == 127:
        raise ToolError(
            "This place has neither ripgrep (rg) nor python3, one of which it takes to search. Search with a command, such as "
            "`grep -rnE`, or install one of them."
        )
    if result.exit_code:
        raise ToolError(f"The search failed: {result.stderr.strip()[-2_000:]}")
    return await _READS.run(_read, result.stdout)


def _source() -> str:
    return files("agentcore_tools.grep").joinpath("inside.py").read_text(encoding="utf-8")


def _read(output: str) -> list[Lines]:
    found: list[Lines] = []
    for row in output.splitlines():
        try:
            path, count, lines = json.loads(row)
        except ValueError:
            continue  # the middle of a very long output was not kept
        rows: list[list[Any]] = lines
        found.append(Lines(path.removeprefix("./"), [Line(*line) for line in rows], count))
    return found
