"""Listing a folder as a tree, as a tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import Field

from agentcore.errors import ToolError
from agentcore.tools import Action, Tool, ToolContext
from agentcore_tools._calls import TextAnswer
from agentcore_tools.files.files import Files, file_tool
from agentcore_tools.search.walk import Found, find_place, shown_path, walk


class ListFilesAction(Action):
    """A folder, and how deep to look."""

    path: str = "."
    """The folder. A relative path starts in the workspace's folder."""
    depth: int = Field(default=2, ge=1, le=20)
    """How many levels of folders to show."""
    everything: bool = False
    """Show hidden entries, and those that .gitignore excludes, too."""


class ListFilesObservation(TextAnswer):
    """A tree."""

    path: str
    """The absolute path of the folder."""
    count: int
    """How many entries are shown."""
    hidden: int
    """How many hidden entries are not shown; what is in hidden folders is not counted."""
    ignored: int
    """How many entries are not shown because .gitignore leaves them out; the same of folders."""
    truncated: bool
    """True if there are more."""


_DESCRIPTION: Final = """\
List what is in a folder, and in the folders in it, as a tree. Hidden entries and those that .gitignore leaves out are \
counted, not shown."""
OTHER_NAMES: Final = ("dir_path", "path", "directory", "folder", "dir")
"""Names that models use for the folder."""


def list_files_tool(extra_roots: Sequence[str] = ()) -> Tool[ListFilesAction, ListFilesObservation]:
    """Make the tool with which an agent lists folders.

    Args:
        extra_roots: Folders outside of the workspace's that it may list, too; "/" is everything.
    """
    return file_tool(
        _list,
        ListFilesAction,
        name="list_files",
        title="List files",
        description=_DESCRIPTION,
        extra_roots=extra_roots,
        read_only=True,
        aliases=("ls", "list_dir", "tree"),
        other_names=dict.fromkeys(OTHER_NAMES, "path"),
    )


async def _list(files: Files, action: ListFilesAction, _ctx: ToolContext) -> ListFilesObservation:
    return await tree_of(files, action.path, depth=action.depth, everything=action.everything)


_MOST: Final = 1_000
_SIGNS: Final = {"dir": "/", "link": "@"}


async def tree_of(files: Files, path: str, *, depth: int | None, everything: bool) -> ListFilesObservation:
    """Draw a folder."""
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
    truncated = walked.cut or len(shown) < len(walked.found) or len(shown) > _MOST
    rows = [
        f"{'  ' * _level(each)}{shown_path(each.path.rpartition('/')[2])}{_SIGNS.get(each.kind, '')}"
        for each in shown[:_MOST]
    ]
    passed = [f"{count} {what}" for count, what in ((walked.hidden, "hidden"), (walked.ignored, "ignored")) if count]
    one = walked.hidden + walked.ignored == 1
    notes = [f"[{' and '.join(passed)} {'entry is' if one else 'entries are'} not shown.]"] if passed else []
    if truncated:
        notes.append(f"[There is more than {len(rows)} entries. List a folder in it.]")
    text = "\n".join([f"{place.folder}/", *(f"  {row}" for row in rows), *notes]) if rows or notes else ""
    text = text or f"[{place.folder} is empty.]"
    return ListFilesObservation(
        text=text, path=place.folder, count=len(rows), hidden=walked.hidden, ignored=walked.ignored, truncated=truncated
    )


def _level(found: Found) -> int:
    return found.path.count("/")
