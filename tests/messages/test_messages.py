"""Messages and their blocks."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from agentcore.messages import (
    DocumentBlock,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSchema,
    UnknownBlock,
)

CALL = ToolCallBlock(id="c1", name="look", arguments={"path": "a"})


def test_words_and_blocks_make_a_message() -> None:
    image = ImageBlock(url="https://example.org/a.png")
    message = Message.user("Look:", image, "Well?")
    assert (message.role, message.content) == ("user", (TextBlock(text="Look:"), image, TextBlock(text="Well?")))
    assert (Message.system("s").role, Message.assistant("a").role) == ("system", "assistant")
    with pytest.raises(ValidationError, match="frozen"):
        message.role = "system"  # pyright: ignore[reportAttributeAccessIssue]
    said = Message.assistant(ThinkingBlock(text="hm"), "One.", CALL, "Two.")
    assert (said.text, said.tool_calls) == ("One.\nTwo.", (CALL,))


@pytest.mark.parametrize("block", ['{"type":"text"}', '{"type":"tool_call","id":"c"}', '{"text":"no type"}', '"words"'])
def test_a_damaged_block_is_no_unknown_block(block: str) -> None:
    with pytest.raises(ValidationError):
        Message.model_validate_json(f'{{"role":"user","content":[{block}]}}')


def test_a_block_of_an_unknown_type_keeps_its_fields() -> None:
    stored = '{"role":"user","content":[{"type":"video","data":"aGk=","rate":16000}]}'
    (block,) = Message.model_validate_json(stored).content
    assert isinstance(block, UnknownBlock)
    assert block.model_dump() == {"type": "video", "data": "aGk=", "rate": 16000}
    schema = ToolSchema.model_validate_json('{"name":"n","description":"d","parameters":{},"strict":true}')
    assert schema.model_dump()["strict"] is True


def test_a_document_is_stored_as_a_block_of_its_own_type() -> None:
    document = DocumentBlock(data="aGk=", name="plan.pdf")
    stored = document.model_dump(mode="json")
    assert stored == {
        "type": "document",
        "data": "aGk=",
        "media_type": "application/pdf",
        "url": None,
        "name": "plan.pdf",
    }
    message = Message.user("See:", document, DocumentBlock(url="https://example.org/a.pdf"))
    assert Message.model_validate_json(message.model_dump_json()) == message
    result = ToolResultBlock(call_id="c1", name="look", content=(TextBlock(text="a"), document))
    assert ToolResultBlock.model_validate_json(result.model_dump_json()) == result
    assert result.text == "a"
