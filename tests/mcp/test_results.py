"""Results: what a model is shown of them, and what is recorded."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from agentcore.errors import ToolError
from agentcore.messages import DocumentBlock, ImageBlock, TextBlock
from mcp_opened import Opened, opened, program

DATA = b64encode(b"not really a picture").decode()


async def shown(it: Opened, *content: dict[str, Any], **fields: Any) -> tuple[Any, ...]:
    return (await it.call("result", result={"content": list(content), **fields})).blocks()


async def test_words_that_follow_each_other_are_one_text(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        link = {"type": "resource_link", "uri": "note://one", "name": "one", "description": "A note."}
        texts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, link]
        assert await shown(it, *texts) == (TextBlock(text="a\nb\n[Resource note://one: one (A note.)]"),)


async def test_pictures_and_documents_are_shown_and_the_rest_is_kept_in_files(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        picture = {"type": "image", "data": DATA, "mimeType": "image/png"}
        pdf = {"type": "resource", "resource": {"uri": "file:///a.pdf", "blob": DATA, "mimeType": "application/pdf"}}
        svg = {"type": "image", "data": DATA, "mimeType": "image/svg+xml"}
        sound = {"type": "audio", "data": DATA, "mimeType": "audio/wav"}
        image, document, words = await shown(it, picture, pdf, svg, sound)
        assert image == ImageBlock(data=DATA, media_type="image/png")
        assert document == DocumentBlock(data=DATA, media_type="application/pdf")
        for line in words.text.splitlines():
            assert Path(line.rpartition("in the file ")[2].removesuffix("]")).read_bytes() == b"not really a picture"
        it.host.seeing = False
        (words,) = await shown(it, picture)
        assert words.text.startswith("[A picture of type 'image/png', 20 bytes, which can't be shown to you.")


async def test_what_is_no_base64_is_not_shown(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        (words,) = await shown(it, {"type": "image", "data": "@@@", "mimeType": "image/png"})
        assert words.text == "[A picture of type 'image/png', which is not valid base64.]"


async def test_a_flood_of_pictures_is_bounded(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        blocks = await shown(it, *[{"type": "image", "data": DATA, "mimeType": "image/png"}] * 200)
        assert [type(block) for block in blocks] == [ImageBlock] * 20 + [TextBlock]


async def test_structured_content_is_recorded_and_shown_where_nothing_else_is(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        observation = await it.call("structured", value={"n": 1})
        assert observation.to_data() == {"structured": {"n": 1}}
        assert observation.blocks() == (TextBlock(text='{"n": 1}'),)
        assert not observation.is_error


async def test_structured_content_that_does_not_fit_is_an_error_with_its_beginning(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        observation = await it.call("structured", value={"n": "one"})
        assert observation.is_error
        text = observation.blocks()[0]
        assert isinstance(text, TextBlock)
        assert text.text.startswith("The server's structured result does not fit the tool's output schema: `n`: ")
        assert text.text.endswith('It begins: {"n": "one"}')


async def test_an_error_of_the_protocol_is_the_answer(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        with pytest.raises(ToolError, match=r"answered with an error \(code -32603\): broken"):
            await it.call("error", code=-32603, message="broken")


async def test_an_empty_result_says_so(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        assert await shown(it) == (TextBlock(text="Done. The server answered with nothing."),)
