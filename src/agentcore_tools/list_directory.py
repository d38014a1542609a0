"""Listing a folder as a tool, under the name and with the arguments that Gemini models know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from pydantic import JsonValue

from agentcore.display import code_span
from agentcore.messages import ResultBlock
from agentcore.tools import Action, Observation, Resource, Tool, ToolAnnotations, ToolContext, ToolSpec
from agentcore_tools._display import heading, others
from agentcore_tools.files.allowed_paths import AllowedPaths
from agentcore_tools.files.files import Files, opening
from agentcore_tools.search.tree import tree_of


class ListDirectoryAction(Action):
    """A folder."""

    dir_path: str
    """The folder. A relative path starts in the workspace's folder."""
    recursive: bool = False
    """List the folders in it, too, at all levels."""


class ListDirectoryObservation(Observation):
    """The entries of a folder."""

    text: str
    """The text for the model."""
    path: str
    """The absolute path of the folder."""
    count: int
    """How many entries are shown."""
    truncated: bool
    """True if there are more."""

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (self.text,)

    def to_data(self) -> dict[str, JsonValue]:
        """Return the numbers; the entries are in the content already."""
        return self.model_dump(mode="json", exclude={"text"})


_DESCRIPTION: Final = """\
List the files and folders in a folder. Hidden ones and those that .gitignore leaves out are counted, not shown."""
_OTHER_NAMES: Final = ("path", "directory", "folder", "dir")


def list_directory_tool(extra_roots: Sequence[str] = ()) -> Tool[ListDirectoryAction, ListDirectoryObservation]:
    """Make the tool with which an agent lists a folder.

    Args:
        extra_roots: Folders outside of the workspace's that it may list, too; "/" is everything.
    """
    allowed = AllowedPaths.of(extra_roots)
    return Tool(
        name="list_directory",
        description=_DESCRIPTION,
        action=ListDirectoryAction,
        open=opening(_Lister, allowed),
        annotations=ToolAnnotations(
            title="List a folder", read_only=True, destructive=False, idempotent=True, open_world=False
        ),
        resources=lambda action, root: (Resource.file(action.dir_path, "read", root=root),),
        aliases=("ls", "list_dir"),
        normalize=lambda arguments: {
            "dir_path" if name in _OTHER_NAMES else name: value for name, value in arguments.items()
        },
        display_call=lambda action: heading(code_span(action.dir_path), others(action, "dir_path")),
        spec=ToolSpec(name="list_directory", params=allowed.params),
    )


@final
class _Lister:
    def __init__(self, files: Files) -> None:
        self._files = files

    async def __call__(self, action: ListDirectoryAction, ctx: ToolContext) -> ListDirectoryObservation:  # noqa: ARG002 every executor is given it
        tree = await tree_of(self._files, action.dir_path, depth=None if action.recursive else 1, everything=False)
        return ListDirectoryObservation(text=tree.text, path=tree.path, count=tree.count, truncated=tree.truncated)
