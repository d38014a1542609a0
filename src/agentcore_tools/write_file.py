"""Writing a whole file as a tool, for models that prefer small tools to one file editor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, final

from pydantic import JsonValue

from agentcore.display import DiffBlock, DisplayBlock, code_span
from agentcore.messages import ResultBlock
from agentcore.tools import Action, Observation, Resource, Tool, ToolAnnotations, ToolContext, ToolSpec
from agentcore_tools._display import added, file_diff, heading
from agentcore_tools.files.allowed_paths import AllowedPaths
from agentcore_tools.files.change import between, unified_diff
from agentcore_tools.files.files import Files, opening, text_of, worked
from agentcore_tools.files.text import Change, Text, encoded, with_line_feeds


class WriteFileAction(Action):
    """A file's whole content."""

    file_path: str
    """The file. A relative path starts in the workspace's folder."""
    content: str
    """All of what it is to hold."""


class WriteFileObservation(Observation):
    """A file was made, or replaced."""

    text: str
    """The text for the model."""
    path: str
    """The absolute path."""
    diff: str
    """The change as a unified diff. A long one is cut."""
    outcome: Literal["created", "changed"]

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (self.text,)

    def to_data(self) -> dict[str, JsonValue]:
        """Return the change; the text is in the content already."""
        return self.model_dump(mode="json", exclude={"text"})


_DESCRIPTION: Final = """\
Write a whole file: a new one, with the folders above it, or all of one that is there. To change a part of a file, use edit. \
The encoding, the line ends and the permissions of a file that is there stay as they are."""
_OTHER_NAMES: Final = {
    "path": "file_path",
    "filepath": "file_path",
    "filename": "file_path",
    "file": "file_path",
    "file_text": "content",
    "contents": "content",
    "text": "content",
}


def write_file_tool(
    extra_roots: Sequence[str] = (), confine_to: Sequence[str] | None = None
) -> Tool[WriteFileAction, WriteFileObservation]:
    """Make the tool with which an agent writes a whole file.

    Args:
        extra_roots: Folders outside of the workspace's in which it may do so, too; "/" is everything.
        confine_to: The only files that it may write, as paths in the workspace.
    """
    allowed = AllowedPaths.of(extra_roots, confine_to)
    return Tool(
        name="write_file",
        description=_DESCRIPTION,
        action=WriteFileAction,
        open=opening(_Writer, allowed),
        annotations=ToolAnnotations(title="Write a file", idempotent=True, open_world=False),
        resources=lambda action, root: (Resource.file(action.file_path, "write", root=root),),
        aliases=("create_file", "save_file"),
        normalize=lambda arguments: {_OTHER_NAMES.get(name, name): value for name, value in arguments.items()},
        display_call=_show_call,
        display_answer=lambda _action, observation: file_diff(observation.path, observation.diff),
        spec=ToolSpec(name="write_file", params=allowed.params),
    )


def _show_call(action: WriteFileAction) -> Sequence[DisplayBlock]:
    return (*heading(code_span(action.file_path)), DiffBlock(path=action.file_path, diff=added(action.content)))


@final
class _Writer:
    def __init__(self, files: Files) -> None:
        self._files = files

    async def __call__(self, action: WriteFileAction, ctx: ToolContext) -> WriteFileObservation:  # noqa: ARG002 every executor is given it
        path = await self._files.to_write(action.file_path)
        if await self._files.workspace.stat(path) is None:
            return await self._create(path, action.content)
        before = await self._files.to_change(path)

        def written() -> tuple[bytes, str]:
            old = text_of(before, path)
            whole = with_line_feeds(action.content)
            new = old.replaced([Change(0, len(old.normal), whole)])
            return new.encode(), unified_diff(old.normal, [between(old.normal, new.normal)], path)

        after, diff = await worked(before + action.content.encode(errors="replace"), written)
        await self._files.put(path, before, after)
        return WriteFileObservation(text=f"Replaced {path}.", path=path, diff=diff, outcome="changed")

    async def _create(self, path: str, content: str) -> WriteFileObservation:
        await self._files.put(path, None, encoded(content))
        change = Change(0, 0, Text(content).normal)
        diff = await worked(content, lambda: unified_diff("", [change], path, created=True))
        return WriteFileObservation(text=f"Created {path}.", path=path, diff=diff, outcome="created")
