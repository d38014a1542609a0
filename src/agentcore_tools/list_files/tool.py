"""Listing what is in a folder as a tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from agentcore.display import code_span
from agentcore.tools import Resource, Tool, ToolAnnotations, ToolContext, ToolSpec
from agentcore_tools._display import heading, others
from agentcore_tools.files.files import Files
from agentcore_tools.files.opening import opening
from agentcore_tools.files.reach import Reach
from agentcore_tools.list_files.action import ListFilesAction
from agentcore_tools.list_files.observation import ListFilesObservation
from agentcore_tools.search.tree import tree_of

__all__ = ["list_files_tool"]

_DESCRIPTION: Final = """\
List what is in a folder, and in the folders in it, as a tree. Hidden entries and those that .gitignore leaves out are \
counted, not shown."""


def list_files_tool(also: Sequence[str] = ()) -> Tool[ListFilesAction, ListFilesObservation]:
    """Make the tool with which an agent lists folders.

    Args:
        also: Folders outside of the workspace's that it may list, too; "/" is everything.
    """
    reach = Reach.of(also)
    return Tool(
        name="list_files",
        description=_DESCRIPTION,
        action=ListFilesAction,
        open=opening(_Lister, reach),
        annotations=ToolAnnotations(
            title="List files", read_only=True, destructive=False, idempotent=True, open_world=False
        ),
        resources=lambda action, root: (Resource.file(action.path, "read", root=root),),
        aliases=("ls", "list_dir", "tree"),
        normalize=lambda arguments: {
            "path" if name in _OTHER_NAMES else name: value for name, value in arguments.items()
        },
        display_call=lambda action: heading(code_span(action.path), others(action, "path")),
        spec=ToolSpec(name="list_files", params=reach.params),
    )


_OTHER_NAMES: Final = ("dir_path", "directory", "folder", "dir")


@final
class _Lister:
    def __init__(self, files: Files) -> None:
        self._files = files

    async def __call__(self, action: ListFilesAction, ctx: ToolContext) -> ListFilesObservation:  # noqa: ARG002 every executor is given it
        tree = await tree_of(self._files, action.path, depth=action.depth, everything=action.everything)
        return ListFilesObservation(
            text=tree.text,
            path=tree.path,
            count=tree.count,
            hidden=tree.walked.hidden,
            ignored=tree.walked.ignored,
            truncated=tree.truncated,
        )
