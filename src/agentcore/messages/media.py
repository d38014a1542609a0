"""Pictures and documents from files.

What a file is, is read from its first bytes: names lie, and providers look at the bytes as well.
"""

from __future__ import annotations

import os
import stat
from base64 import b64encode
from pathlib import Path
from typing import Final

from agentcore._threads import Threads
from agentcore.errors import MediaError
from agentcore.messages.blocks import DocumentBlock, ImageBlock

_LARGEST: Final = 50 * 1024 * 1024
"""Bytes; no provider takes more in one request."""
_THREADS: Final = Threads("media", 4)
"""A file may be large, and a disk slow; nothing else waits for these."""

_TAKEN: Final = "PNG, JPEG, GIF and WebP pictures, and PDF documents"
_CONVERT: Final = "convert it to one of these"
_LOOKED_AT: Final = 512

_OTHERS: Final = (
    (b"BM", "a BMP picture"),
    (b"II*\0", "a TIFF picture"),
    (b"MM\0*", "a TIFF picture"),
    (b"\0\0\1\0", "an icon"),
    (b"8BPS", "a Photoshop picture"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a document of an older Microsoft Office"),
    (b"PK\3\4", "a ZIP archive, as the documents of Word, Excel, PowerPoint and LibreOffice are"),
    (b"\x1f\x8b", "compressed by gzip"),
    (b"ID3", "an MP3 recording"),
    (b"OggS", "an Ogg recording"),
    (b"fLaC", "a FLAC recording"),
    (b"\x1aE\xdf\xa3", "a WebM or Matroska film"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
)
"""First bytes of files that models cannot read. The shorter ones also begin texts, which are detected first."""
_BRANDS: Final = {
    b"heic": "a HEIC picture",
    b"heix": "a HEIC picture",
    b"mif1": "a HEIF picture",
    b"avif": "an AVIF picture",
    b"M4A ": "an M4A recording",
}
"""Of the family of MP4."""


async def read_media(path: str | os.PathLike[str], *, max_bytes: int = _LARGEST) -> ImageBlock | DocumentBlock:
    """Read a picture (PNG, JPEG, GIF, WebP) or a document (PDF) from a file, for a message or for what a tool shows.

    It is read in a worker thread. What a certain model takes is looked at when it is asked.

    Args:
        path: The file.
        max_bytes: How large it may be. The usual 50 MiB is what the most generous provider takes.

    Raises:
        MediaError: it is something else, or too large.
        OSError: it can't be read.
    """
    # Left behind when cancelled: it only reads, and closes what it opened when the disk answers.
    return await _THREADS.run(_read, Path(path), max_bytes, abandon_on_cancel=True)


def _read(path: Path, max_bytes: int) -> ImageBlock | DocumentBlock:
    with open(path, "rb", opener=_open) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise MediaError(
                f"{str(path)!r} is a pipe or a device, which has no end that is known. Write it to a file."
            )
        head = file.read(_LOOKED_AT)
        kind = _kind(head)
        if kind is None:
            what, to_do = _named(head)
            raise MediaError(f"{str(path)!r} is {what}. Models are shown {_TAKEN}: {to_do}.")
        # One more than may be: a file may grow while it is read.
        content = head + file.read(max(max_bytes + 1 - len(head), 0))
    if len(content) > max_bytes:
        size = max(path.stat().st_size, len(content))
        raise MediaError(
            f"{str(path)!r} is too large: {size:,} bytes, and at most {max_bytes:,} are read. Make it smaller, or "
            "split it."
        )
    data = b64encode(content).decode("ascii")
    if kind == "application/pdf":
        return DocumentBlock(data=data, media_type=kind, name=path.name)
    return ImageBlock(data=data, media_type=kind)


def _open(path: str, flags: int) -> int:
    # Opening a pipe would wait for somebody who writes into it.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _kind(head: bytes) -> str | None:
    """Return the media type that begins with these bytes; None if it is another."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    # Readers of PDF pass over a mark of the byte order and blanks.
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"%PDF-"):
        return "application/pdf"
    return None


def _named(head: bytes) -> tuple[str, str]:
    """Describe what the file is instead, as far as its first bytes show, and what to do."""
    if not head:
        return "empty", "write one of these first"
    if b"<svg" in head:
        return "an SVG picture", _CONVERT
    if head.startswith(b"%!PS"):
        return "a PostScript document", _CONVERT
    if _is_text(head):
        return "text", "put its words into the message"
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "a film of the family of MP4"), _CONVERT
    if head.startswith(b"RIFF"):
        return "a WAV recording or an AVI film", _CONVERT
    unknown = f"of a kind that is not known (it begins with {head[:8].hex(' ')})"
    return next((name for begin, name in _OTHERS if head.startswith(begin)), unknown), _CONVERT


def _is_text(head: bytes) -> bool:
    # The last character may have been cut through.
    return b"\0" not in head and "\N{REPLACEMENT CHARACTER}" not in head.decode("utf-8", "replace")[:-1]
