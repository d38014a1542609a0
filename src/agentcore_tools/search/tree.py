"""A folder as a tree, for a model to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agentcore.errors import ToolError
from agentcore_tools.files.files import Files
from agentcore_tools.search.walk import Found, Walked, find_place, shown_path, walk

_MOST: Final = 1_000
_SIGNS: Final = {"dir": "/", "link": "@"}


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree, drawn."""

    text: str
    path: str
    """The absolute path of the folder."""
    count: int
    """How many entries are shown."""
    walked: Walked
    truncated: bool


async def tree_of(files: Files, path: str, *, depth: int | None, everything: bool) -> Tree:
    """Draw a folder.

    Raises:
        ToolError: there is none, or the tool may not go there.
    """
    place = await find_place(files, path)
    if place.file is not None:
        raise ToolError(f"{path!r} is a file, not a folder. Read it.")
    walked = await walk(files.workspace, place.folder, everything=everything, depth=depth)
    # Of too much, the levels above are shown: they say where to look.
    level = max((_level(each) for each in walked.found), default=0)
    shown = walked.found
    while len(shown) > _MOST and level > 0:
        level -= 1
        shown = [each for each in walked.found if _level(each) <= level]
    truncated = walked.cut or len(shown) < len(walked.found)
    rows = [f"{'  ' * _level(each)}{shown_path(_name(each))}{_SIGNS.get(each.kind, '')}" for each in shown[:_MOST]]
    if len(shown) > _MOST:
        truncated = True
    notes = _notes(walked, everything=everything)
    if truncated:
        notes.append(f"[There is more than {len(rows)} entries. List a folder in it.]")
    text = "\n".join([f"{place.folder}/", *(f"  {row}" for row in rows), *notes]) if rows or notes else ""
    return Tree(text or f"[{place.folder} is empty.]", place.folder, len(rows), walked, truncated)


def _notes(walked: Walked, *, everything: bool) -> list[str]:
    parts = [f"{count} {what}" for count, what in ((walked.hidden, "hidden"), (walked.ignored, "ignored")) if count]
    if everything or not parts:
        return []
    one = walked.hidden + walked.ignored == 1
    return [f"[{' and '.join(parts)} {'entry is' if one else 'entries are'} not shown.]"]


def _level(found: Found) -> int:
    return found.path.count("/")


def _name(found: Found) -> str:
    return found.path.rpartition("/")[2]
