"""The results of a server's tools, as a model is shown them: bounded, checked against the tool's output schema."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import mcp_types as types
from anyio.to_thread import run_sync
from pydantic import Field, JsonValue

from agentcore._text import Mask, replace_lone_surrogates
from agentcore._value import is_too_deep
from agentcore.errors import SchemaError, WorkspaceError
from agentcore.messages import DocumentBlock, ImageBlock, ResultBlock, TextBlock
from agentcore.schema import schema_errors
from agentcore.tools import Observation, ToolContext

_MOST_BLOCKS: Final = 100
_MOST_MEDIA: Final = 20
_LARGEST_PICTURE: Final = 5 * 1024 * 1024
"""Characters of base64: what every provider takes."""
_LARGEST_DOCUMENT: Final = 20 * 1024 * 1024
_LARGEST_DATA: Final = 100_000
"""Characters of structured content that are recorded for programs."""
_BEGINNING: Final = 500
_PICTURES: Final = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
_PDF: Final = "application/pdf"


class MCPObservation(Observation):
    """The result of a call of an MCP server's tool."""

    content: tuple[Annotated[ResultBlock, Field(discriminator="type")], ...]
    structured: JsonValue = None
    """Its structured content, where there is some and it is not too long to be recorded twice."""
    failed: bool = False

    @property
    def is_error(self) -> bool:
        """True if the server says that the call failed, or its result is not what the tool promises."""
        return self.failed

    def to_content(self) -> Sequence[str | ResultBlock]:
        """Return the content that the model is shown."""
        return self.content

    def to_data(self) -> dict[str, JsonValue]:
        """Return the structured content."""
        return {} if self.structured is None else {"structured": self.structured}


async def read_result(
    result: types.CallToolResult, output_schema: Mapping[str, Any] | None, ctx: ToolContext, mask: Mask
) -> MCPObservation:
    """Return what a model is shown of a result, and what is recorded."""
    content = await read_blocks(result.content, ctx, mask)
    structured: Any = result.structured_content
    if structured is None:
        return MCPObservation(content=content or (_NOTHING,), failed=bool(result.is_error))
    problem, shown = await run_sync(_look_at, structured, output_schema if not result.is_error else None)
    shown = mask(shown)
    if problem is not None:
        text = f"The server's structured result does not fit the tool's output schema: {mask(problem)} It begins: {shown[:_BEGINNING]}"
        return MCPObservation(content=(TextBlock(text=text), *content), failed=True)
    if not content:
        content = (TextBlock(text=shown),)
    kept = json.loads(shown) if len(shown) <= _LARGEST_DATA and not is_too_deep(structured) else None
    return MCPObservation(content=content, structured=kept, failed=bool(result.is_error))


def _look_at(structured: Any, schema: Mapping[str, Any] | None) -> tuple[str | None, str]:
    """Return what is wrong with it, if anything, and its JSON. A thread's work: it may be large."""
    value = replace_lone_surrogates(structured)
    try:
        errors = schema_errors(schema, value) if schema is not None else []
    except SchemaError as error:
        errors = [str(error)]
    return " ".join(errors) or None, json.dumps(value, ensure_ascii=False)


async def read_blocks(content: Sequence[types.ContentBlock], ctx: ToolContext, mask: Mask) -> tuple[ResultBlock, ...]:
    """Return content as blocks: words that follow each other are one, and what can't be shown is kept in a file and named."""
    blocks: list[ResultBlock] = []
    words: list[str] = []
    media = 0
    for number, piece in enumerate(content):
        shown: str | ResultBlock
        if isinstance(piece, types.TextContent | types.ResourceLink):
            shown = _words(piece)
        elif media >= _MOST_MEDIA:
            shown = f"[{piece.type} left out: {_MOST_MEDIA} is the most that is shown of one result.]"
        else:
            media += 1
            shown = await _medium(piece, f"{ctx.action_id}-{number}", ctx)
        if isinstance(shown, str):
            words.append(shown)
            continue
        if words:
            blocks.append(_text(words, mask))
            words = []
        blocks.append(shown)
    if words:
        blocks.append(_text(words, mask))
    return tuple(blocks[:_MOST_BLOCKS])


_NOTHING: Final = TextBlock(text="Done. The server answered with nothing.")


def _text(words: Sequence[str], mask: Mask) -> TextBlock:
    return TextBlock(text=mask(replace_lone_surrogates("\n".join(words))))


def _words(piece: types.TextContent | types.ResourceLink) -> str:
    if isinstance(piece, types.TextContent):
        return piece.text
    described = f" ({piece.description})" if piece.description else ""
    return f"[Resource {piece.uri}: {piece.title or piece.name}{described}]"


async def _medium(
    piece: types.ImageContent | types.AudioContent | types.EmbeddedResource, name: str, ctx: ToolContext
) -> str | ResultBlock:
    if isinstance(piece, types.ImageContent):
        return await shown_medium(piece.data, piece.mime_type, "picture", name, ctx)
    if isinstance(piece, types.AudioContent):
        return await _keep(piece.data, piece.mime_type, "recording", name, ctx)
    return await read_resource(piece.resource, name, ctx)


async def read_resource(
    resource: types.TextResourceContents | types.BlobResourceContents, name: str, ctx: ToolContext
) -> str | ResultBlock:
    """Return a resource as its words, or as a picture or document."""
    if isinstance(resource, types.TextResourceContents):
        return f"[Resource {resource.uri}:]\n{resource.text}"
    return await shown_medium(resource.blob, resource.mime_type or "", f"resource {resource.uri}", name, ctx)


async def shown_medium(data: str, media_type: str, what: str, name: str, ctx: ToolContext) -> str | ResultBlock:
    """Return a picture or a PDF as a block, where the model can look at it; else keep it in a file and name that."""
    media_type = media_type.partition(";")[0].strip().lower()
    is_picture, is_pdf = media_type in _PICTURES, media_type == _PDF
    if (is_picture and len(data) <= _LARGEST_PICTURE) or (is_pdf and len(data) <= _LARGEST_DOCUMENT):
        accepted = await ctx.model_accepts("image" if is_picture else "pdf") is not False
        if accepted and await run_sync(_decoded, data) is not None:
            if is_picture:
                return ImageBlock(data=data, media_type=media_type)
            return DocumentBlock(data=data, media_type=_PDF)
    return await _keep(data, media_type, what, name, ctx)


async def _keep(data: str, media_type: str, what: str, name: str, ctx: ToolContext) -> str:
    decoded = await run_sync(_decoded, data)
    if decoded is None:
        return f"[A {what} of type {media_type!r}, which is not valid base64.]"
    described = f"A {what} of type {media_type!r}, {len(decoded):,} bytes, which can't be shown to you"
    try:
        return f"[{described}. It is in the file {await ctx.spool(name, decoded)}]"
    except WorkspaceError:
        return f"[{described}, and could not be kept.]"


def _decoded(data: str) -> bytes | None:
    try:
        return b64decode(data, validate=True)
    except ValueError:
        return None
