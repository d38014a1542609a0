"""Pictures and documents from files: what they are is read from their bytes."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import anyio
import pytest

from agentcore.errors import AgentcoreError, MediaError
from agentcore.messages import DocumentBlock, ImageBlock, Message, read_media

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj"


def file(folder: Path, content: bytes, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        (b"GIF87a\1\0", "image/gif"),
        (b"GIF89a\1\0", "image/gif"),
        (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
async def test_a_picture_is_known_by_its_bytes_whatever_it_is_called(
    tmp_path: Path, content: bytes, media_type: str
) -> None:
    block = await read_media(file(tmp_path, content, "picture.pdf"))
    assert block == ImageBlock(data=base64.b64encode(content).decode(), media_type=media_type)


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\r\n "])
async def test_a_document_keeps_its_name(tmp_path: Path, before: bytes) -> None:
    path = file(tmp_path, before + PDF, "plan.png")
    block = await read_media(str(path))
    assert block == DocumentBlock(
        data=base64.b64encode(before + PDF).decode(), media_type="application/pdf", name="plan.png"
    )
    assert Message.user("What is in it?", block).content[1] is block


async def test_all_of_a_large_file_is_read(tmp_path: Path) -> None:
    content = PNG + bytes(range(256)) * 4_000
    block = await read_media(file(tmp_path, content))
    assert block.data is not None
    assert base64.b64decode(block.data) == content


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"Hello.\n", "is text.*put its words into the message"),
        ("x" * 511 + "ä", "is text"),
        (b"BM a text that begins as a picture does", "is text"),
        (b"BM\x36\0\0\0\0\0", "is a BMP picture.*convert it to one of these"),
        (b"II*\0\x08\0", "is a TIFF picture"),
        (b"<?xml version='1.0'?><svg/>", "is an SVG picture.*convert"),
        (b"%!PS-Adobe-3.0", "is a PostScript document"),
        (b"PK\3\4\x14\0\0\0", "is a ZIP archive, as the documents of Word"),
        (b"\0\0\0\x18ftypheic\0\0", "is a HEIC picture"),
        (b"\0\0\0\x18ftypisom\0\0", "is a film"),
        (b"RIFF\x24\0\0\0WAVEfmt ", "is a WAV recording"),
        (b"\x7fELF\2\1\1\0", "is a program"),
        (b"\1\2\3\0", r"a kind that is not known \(it begins with 01 02 03 00\)"),
    ],
)
async def test_anything_else_is_named_with_what_is_taken_and_what_to_do(
    tmp_path: Path, content: bytes | str, said: str
) -> None:
    path = file(tmp_path, content.encode() if isinstance(content, str) else content, "a.png")
    with pytest.raises(MediaError, match=said) as caught:
        await read_media(path)
    assert str(path) in str(caught.value)
    assert "PNG, JPEG, GIF and WebP pictures, and PDF documents" in str(caught.value)
    assert isinstance(caught.value, AgentcoreError)
    assert isinstance(caught.value, ValueError)


async def test_a_file_that_is_too_large_is_refused_with_both_sizes(tmp_path: Path) -> None:
    path = file(tmp_path, PDF + bytes(2_000))
    size = path.stat().st_size
    assert isinstance(await read_media(path, max_bytes=size), DocumentBlock)
    for most in (size - 1, 4):
        with pytest.raises(MediaError, match=rf"too large: {size:,} bytes, and at most {most:,}"):
            await read_media(path, max_bytes=most)


async def test_what_can_not_be_read_is_the_systems_own_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        await read_media(tmp_path / "nowhere")
    with pytest.raises(OSError, match=tmp_path.name):
        await read_media(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
async def test_a_pipe_that_nobody_writes_into_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with anyio.fail_after(30), pytest.raises(MediaError, match="a pipe or a device"):
        await read_media(tmp_path / "pipe")


async def test_many_files_are_read_at_once(tmp_path: Path) -> None:
    paths = [file(tmp_path, PDF + str(number).encode(), f"{number}.pdf") for number in range(20)]
    read: dict[str | None, str | None] = {}

    async def one(path: Path) -> None:
        block = await read_media(path)
        assert isinstance(block, DocumentBlock)
        read[block.name] = block.data

    async with anyio.create_task_group() as tasks:
        for path in paths:
            tasks.start_soon(one, path)
    assert read == {path.name: base64.b64encode(path.read_bytes()).decode() for path in paths}
