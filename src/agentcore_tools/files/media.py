"""Files that a model looks at instead of reading them: pictures and PDF documents, known by their first bytes."""

from __future__ import annotations

import posixpath
from base64 import b64encode
from typing import Final

from agentcore.errors import ToolError
from agentcore.messages import DocumentBlock, ImageBlock
from agentcore.tools import Medium, ToolContext

__all__ = ["medium_of", "shown_medium"]

_PICTURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_PDF: Final = "application/pdf"
# What Anthropic takes of a picture as base64 text; others take more.
_LARGEST_PICTURE: Final = 5 * 1024 * 1024 * 3 // 4


def medium_of(data: bytes) -> str | None:
    """Give the media type of a picture or a PDF; None for anything else."""
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    if data.startswith(b"%PDF-"):
        return _PDF
    return next((media_type for beginning, media_type in _PICTURES if data.startswith(beginning)), None)


async def shown_medium(data: bytes, media_type: str, path: str, ctx: ToolContext) -> ImageBlock | DocumentBlock:
    """Make what a model is shown of a picture or a PDF.

    Raises:
        ToolError: the model can't look at such, or it is too large. Sending it would break the conversation.
    """
    medium: Medium = "pdf" if media_type == _PDF else "image"
    if await ctx.model_accepts(medium) is False:
        what, advice = ("a PDF", "pdftotext") if medium == "pdf" else ("a picture", "file, identify or exiftool")
        raise ToolError(
            f"{path!r} is {what} ({media_type}, {len(data):,} bytes), which the model that you are can't look at. "
            f"Find out about it with commands, such as {advice}."
        )
    if medium == "image" and len(data) > _LARGEST_PICTURE:
        raise ToolError(
            f"{path!r} is a picture of {len(data):,} bytes, and at most {_LARGEST_PICTURE:,} can be shown. "
            "Make a smaller copy (with `convert -resize`, say) and view that."
        )
    text = b64encode(data).decode()
    if medium == "pdf":
        return DocumentBlock(data=text, media_type=media_type, name=posixpath.basename(path))
    return ImageBlock(data=text, media_type=media_type)
