"""Reading a file as a tool, for models that prefer small tools to one file editor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from pydantic import Field, JsonValue

from agentcore.display import DisplayBlock, ExcerptBlock, code_span
from agentcore.errors import ToolError
from agentcore.messages import DocumentBlock, ImageBlock, ResultBlock
from agentcore.tools import OUTPUT_LIMIT, Action, Observation, Resource, Tool, ToolAnnotations, ToolContext, ToolSpec
from agentcore_tools._display import heading, others
from agentcore_tools.files.allowed_paths import AllowedPaths
from agentcore_tools.files.files import Files, opening, text_of, worked
from agentcore_tools.files.view import medium_of, shown_medium


class ReadFileAction(Action):
    """A look at a file."""

    path: str
    """The file. A relative path starts in the workspace's folder."""
    offset: int = Field(default=0, ge=0)
    """How many lines to leave out at the beginning."""
    limit: int | None = Field(default=None, ge=1)
    """How many lines to show; left out: as many as fit."""


class ReadFileObservation(Observation):
    """A file's lines as they are, or a picture or PDF."""

    text: str
    """The text for the model."""
    path: str
    """The absolute path."""
    lines: int = 0
    """How many lines the file has."""
    first: int = 0
    """The number of the first line that is shown, from 1; 0 where none is."""
    last: int = 0
    """The number of the last line that is shown."""
    medium: ImageBlock | DocumentBlock | None = None

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (self.text,) if self.medium is None else (self.text, self.medium)

    def to_data(self) -> dict[str, JsonValue]:
        """Return the place that was read; the text for the model is in the content already."""
        return self.model_dump(mode="json", exclude={"text", "medium"})


_DESCRIPTION: Final = """\
Read a text file, or look at a picture (PNG, JPEG, GIF, WebP) or a PDF. Of a long text as many lines are shown as fit, and \
the answer says how to read on (offset, limit)."""
_MOST: Final = OUTPUT_LIMIT - 1_000
_ALIASES: Final = ("view_file", "open_file", "cat")


def read_file_tool(extra_roots: Sequence[str] = ()) -> Tool[ReadFileAction, ReadFileObservation]:
    """Make the tool with which an agent reads a file.

    Args:
        extra_roots: Folders outside of the workspace's that it may read, too; "/" is everything.
    """
    allowed = AllowedPaths.of(extra_roots)
    return Tool(
        name="read_file",
        description=_DESCRIPTION,
        action=ReadFileAction,
        open=opening(_Reader, allowed),
        annotations=ToolAnnotations(
            title="Read a file", read_only=True, destructive=False, idempotent=True, open_world=False
        ),
        resources=lambda action, root: (Resource.file(action.path, "read", root=root),),
        aliases=_ALIASES,
        normalize=lambda arguments: {
            "path" if name in _OTHER_NAMES else name: value for name, value in arguments.items()
        },
        display_call=lambda action: heading(code_span(action.path), others(action, "path")),
        display_answer=_show_answer,
        spec=ToolSpec(name="read_file", params=allowed.params),
    )


_OTHER_NAMES: Final = ("file_path", "filepath", "absolute_path", "filename", "file")


def _show_answer(_action: ReadFileAction, observation: ReadFileObservation) -> Sequence[DisplayBlock]:
    if not observation.lines:
        return ()  # it is empty, or a picture or a PDF
    return (ExcerptBlock(path=observation.path, first=observation.first),)


@final
class _Reader:
    def __init__(self, files: Files) -> None:
        self._files = files

    async def __call__(self, action: ReadFileAction, ctx: ToolContext) -> ReadFileObservation:
        path = await self._files.to_read(action.path)
        data = await self._files.look(path)
        if (media_type := medium_of(data)) is not None:
            medium = await shown_medium(data, media_type, path, ctx)
            text = f"{path} ({media_type}, {len(data):,} bytes):"
            return ReadFileObservation(text=text, path=path, medium=medium)
        lines = await worked(data, lambda: text_of(data, path).lines)
        return _shown(lines, action, path)


def _shown(lines: Sequence[str], action: ReadFileAction, path: str) -> ReadFileObservation:
    if not lines:
        return ReadFileObservation(text=f"[{path} is empty.]", path=path)
    if action.offset >= len(lines):
        raise ToolError(f"{path!r} has {len(lines)} lines, so offset is less than that, not {action.offset}.")
    wanted = lines[action.offset :] if action.limit is None else lines[action.offset : action.offset + action.limit]
    room, count = _MOST, 0
    for line in wanted:
        room -= len(line) + 1
        # One line is shown whatever its length; what is too much of it the conversation cuts.
        if room < 0 and count:
            break
        count += 1
    text = "\n".join(wanted[:count])
    last = action.offset + count
    if action.offset or last < len(lines):
        more = f" Read on with offset={last}." if last < len(lines) else ""
        text = f"[Lines {action.offset + 1} to {last} of {len(lines)}.{more}]\n{text}"
    return ReadFileObservation(text=text, path=path, lines=len(lines), first=action.offset + 1, last=last)
