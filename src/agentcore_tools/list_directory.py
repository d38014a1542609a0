"""Listing a folder as a tool, under the name and with the arguments that Gemini models know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agentcore.tools import Action, Tool, ToolContext
from agentcore_tools._calls import TextAnswer
from agentcore_tools.files.files import Files, file_tool
from agentcore_tools.list_files import OTHER_NAMES, tree_of


class ListDirectoryAction(Action):
    """A folder."""

    dir_path: str
    """The folder. A relative path starts in the workspace's folder."""
    recursive: bool = False
    """List the folders in it, too, at all levels."""


class ListDirectoryObservation(TextAnswer):
    """The entries of a folder."""

    path: str
    """The absolute path of the folder."""
    count: int
    """How many entries are shown."""
    truncated: bool
    """True if there are more."""


_DESCRIPTION: Final = """\
List the files and folders in a folder. Hidden ones and those that .gitignore leaves out are counted, not shown."""


def list_directory_tool(extra_roots: Sequence[str] = ()) -> Tool[ListDirectoryAction, ListDirectoryObservation]:
    """Make the tool with which an agent lists a folder.

    Args:
        extra_roots: Folders outside of the workspace's that it may list, too; "/" is everything.
    """
    return file_tool(
        _list,
        ListDirectoryAction,
        name="list_directory",
        title="List a folder",
        description=_DESCRIPTION,
        extra_roots=extra_roots,
        read_only=True,
        path="dir_path",
        heads="dir_path",
        aliases=("ls", "list_dir"),
        other_names=dict.fromkeys(OTHER_NAMES, "dir_path"),
    )


async def _list(files: Files, action: ListDirectoryAction, _ctx: ToolContext) -> ListDirectoryObservation:
    tree = await tree_of(files, action.dir_path, depth=None if action.recursive else 1, everything=False)
    return ListDirectoryObservation(text=tree.text, path=tree.path, count=tree.count, truncated=tree.truncated)
