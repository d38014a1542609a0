"""Listing a folder as a tree, as a tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from pydantic import Field, JsonValue

from agentcore.display import code_span
from agentcore.messages import ResultBlock
from agentcore.tools import Action, Observation, Resource, Tool, ToolAnnotations, ToolContext, ToolSpec
from agentcore_tools._display import heading, others
from agentcore_tools.files.allowed_paths import AllowedPaths
from agentcore_tools.files.files import Files, opening
from agentcore_tools.search.tree import tree_of


class ListFilesAction(Action):
    """A folder, and how deep to look."""

    path: str = "."
    """The folder. A relative path starts in the workspace's folder."""
    depth: int = Field(default=2, ge=1, le=20)
    """How many levels of folders to show."""
    everything: bool = False
    """Show hidden entries, and those that .gitignore excludes, too."""


class ListFilesObservation(Observation):
    """A tree."""

    text: str
    """The text for the model."""
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

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (self.text,)

    def to_data(self) -> dict[str, JsonValue]:
        """Return the numbers; the tree is in the content already."""
        return self.model_dump(mode="json", exclude={"text"})


_DESCRIPTION: Final = """\
List what is in a folder, and in the folders in it, as a tree. Hidden entries and those that .gitignore leaves out are \
counted, not shown."""


def list_files_tool(extra_roots: Sequence[str] = ()) -> Tool[ListFilesAction, ListFilesObservation]:
    """Make the tool with which an agent lists folders.

    Args:
        extra_roots: Folders outside of the workspace's that it may list, too; "/" is everything.
    """
    allowed = AllowedPaths.of(extra_roots)
    return Tool(
        name="list_files",
        description=_DESCRIPTION,
        action=ListFilesAction,
        open=opening(_Lister, allowed),
        annotations=ToolAnnotations(
            title="List files", read_only=True, destructive=False, idempotent=True, open_world=False
        ),
        resources=lambda action, root: (Resource.file(action.path, "read", root=root),),
        aliases=("ls", "list_dir", "tree"),
        normalize=lambda arguments: {
            "path" if name in _OTHER_NAMES else name: value for name, value in arguments.items()
        },
        display_call=lambda action: heading(code_span(action.path), others(action, "path")),
        spec=ToolSpec(name="list_files", params=allowed.params),
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
