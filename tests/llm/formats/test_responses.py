from __future__ import annotations

from typing import Any

import pytest
from pydantic import JsonValue

from agentcore.errors import BadRequest, ModelConnectionError, ModelUnavailable
from agentcore.llm import LLM, CallContext, Delta
from agentcore.llm.formats.responses import decode_items, encode_function_tools, encode_items
from agentcore.llm.formats.responses_reply import read_response
from agentcore.llm.litellm_route.wires import ResponsesWire
from agentcore.llm.model import Features
from agentcore.messages import (
    DocumentBlock,
    ImageBlock,
    Message,
    ProviderBlock,
    ReasoningBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSchema,
)

SETTINGS = LLM(model="openai/gpt-5")
SAID = [
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "e"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Look"}, {"text": "ing."}]},
    {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "read", "arguments": '{"path": "x"}'},
]
BLOCKS = (
    ReasoningBlock(id="rs_1", summary=("Hm.",), encrypted_content="e", provider="openai"),
    ProviderBlock(provider="openai", data={"type": "web_search_call", "id": "ws_1", "status": "completed"}),
    TextBlock(text="Looking."),
    ToolCallBlock(id="a", name="read", arguments={"path": "x"}),
)


def test_what_was_said_goes_back_in_its_order_and_only_what_the_provider_can_use() -> None:
    said = Message.assistant(*BLOCKS, ReasoningBlock(id="rs_2"), ThinkingBlock(text="hm"))
    _, items = encode_items([said], "openai/gpt-5")
    kinds = [item["type"] for item in items if isinstance(item, dict)]
    assert kinds == ["reasoning", "web_search_call", "message", "function_call"]
    assert items[0] == SAID[0]
    assert items[1] == SAID[1]
    assert items[3] == {"type": "function_call", "call_id": "a", "name": "read", "arguments": '{"path": "x"}'}
    _, elsewhere = encode_items([said], "azure/gpt-5")
    assert [item["type"] for item in elsewhere if isinstance(item, dict)] == ["message", "function_call"]


def test_system_messages_at_the_start_are_the_instructions_and_later_ones_are_items() -> None:
    messages = [Message.system("Be brief."), Message.system("Be kind."), Message.user("Hi."), Message.system("Hurry.")]
    instructions, items = encode_items(messages, "openai/gpt-5")
    assert instructions == "Be brief.\n\nBe kind."
    assert items == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi."}]},
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "Hurry."}]},
    ]
    assert encode_items([], "openai/gpt-5") == (None, [])


def test_answers_may_hold_pictures() -> None:
    picture = ImageBlock(data="aGk=", media_type="image/png")
    plain = ToolResultBlock(call_id="a", name="t", content=(TextBlock(text="ok"),))
    shown = ToolResultBlock(call_id="b", name="t", content=(TextBlock(text="Shot."), picture))
    _, items = encode_items([Message(role="tool", content=(plain, shown))], "openai/gpt-5")
    image = {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"}
    assert items == [
        {"type": "function_call_output", "call_id": "a", "output": "ok"},
        {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "Shot."}, image]},
    ]


def test_documents_go_as_files_or_by_address_in_answers_too() -> None:
    named, nameless = DocumentBlock(data="aGk=", name="plan.pdf"), DocumentBlock(url="data:application/pdf;base64,aGk=")
    address = DocumentBlock(url="https://example.com/a.pdf", name="a.pdf")
    shown = ToolResultBlock(call_id="a", name="t", content=(TextBlock(text="ok"), named))
    said, answer = encode_items(
        [Message.user("See:", named, nameless, address), Message(role="tool", content=(shown,))], "openai/gpt-5"
    )[1]
    file = {"type": "input_file", "filename": "plan.pdf", "file_data": "data:application/pdf;base64,aGk="}
    assert said == {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "See:"},
            file,
            {**file, "filename": "document.pdf"},
            {"type": "input_file", "file_url": "https://example.com/a.pdf"},
        ],
    }
    output = [{"type": "input_text", "text": "ok"}, file]
    assert answer == {"type": "function_call_output", "call_id": "a", "output": output}


def test_nothing_is_left_at_the_provider_and_reasoning_comes_encrypted_from_models_that_reason() -> None:
    wire, messages = ResponsesWire(), [Message.user("Hi.")]
    tools = [ToolSchema(name="read", description="Reads.", parameters={"type": "object"})]
    context = CallContext(prompt_cache_key="key")
    options = wire.options(SETTINGS, messages, tools, context, Features(reasoning=True))
    assert options["store"] is False
    assert options["include"] == ["reasoning.encrypted_content"]
    assert options["prompt_cache_key"] == "key"
    assert options["tools"] == encode_function_tools(tools)
    plain = wire.options(SETTINGS, messages, [], None, Features())
    assert not {"include", "reasoning", "prompt_cache_key", "tools", "instructions"} & set(plain)
    thinking = SETTINGS.model_copy(update={"reasoning_effort": "low", "max_output_tokens": 9})
    asked = wire.options(thinking, messages, [], None, Features())
    assert asked["reasoning"] == {"effort": "low", "summary": "auto"}
    assert asked["max_output_tokens"] == 9


def read(*events: dict[str, Any]) -> tuple[list[Delta], Any]:
    reader = ResponsesWire().decoder(SETTINGS)
    return [delta for event in events for delta in reader.read(event)], reader


EVENTS: list[dict[str, Any]] = [
    {"type": "response.created", "response": {"id": "resp_1"}},
    {"type": "response.reasoning_summary_text.delta", "delta": "Hm."},
    {"type": "response.output_text.delta", "delta": "Looking."},
    {"type": "response.output_item.added", "output_index": 3, "item": {**SAID[3], "arguments": ""}},
    {"type": "response.function_call_arguments.delta", "output_index": 3, "delta": '{"path":'},
    {"type": "response.function_call_arguments.delta", "output_index": 3, "delta": ' "x"}'},
    *({"type": "response.output_item.done", "output_index": index, "item": item} for index, item in enumerate(SAID)),
]


def test_a_stream_without_its_last_event_is_no_reply() -> None:
    _, reader = read(*EVENTS)
    with pytest.raises(ModelConnectionError, match="broke off") as raised:
        reader.answer()
    assert raised.value.retryable


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "It burns."}}},
        {"type": "error", "message": "It burns."},
    ],
)
def test_a_failure_in_the_stream_is_raised(event: dict[str, Any]) -> None:
    with pytest.raises(ModelUnavailable, match="It burns"):
        read(event)


def test_a_failure_that_comes_at_once_is_raised() -> None:
    with pytest.raises(ModelUnavailable, match="It burns"):
        ResponsesWire().answer(SETTINGS, {"status": "failed", "error": {"message": "It burns."}})


def test_what_was_cited_for_a_text_and_when_it_was_said_comes_back_with_it() -> None:
    citation: JsonValue = {"type": "url_citation", "url": "https://example.com", "start_index": 0, "end_index": 2}
    item: dict[str, JsonValue] = {
        "type": "message",
        "role": "assistant",
        "phase": "commentary",
        "content": [
            {"type": "output_text", "text": "It is ", "annotations": []},
            {"type": "output_text", "text": "so.", "annotations": [citation]},
        ],
    }
    message = decode_items([item], "openai")
    assert message.text == "It is so."
    assert encode_items([message], "openai/gpt-5")[1] == [item]
    (elsewhere,) = encode_items([message], "azure/gpt-5")[1]
    assert "phase" not in str(elsewhere)
    changed = message.model_copy(update={"content": (TextBlock(text="It was."), *message.content[1:])})
    (other,) = encode_items([changed], "openai/gpt-5")[1]
    assert other == {
        "type": "message",
        "role": "assistant",
        "phase": "commentary",
        "content": [{"type": "output_text", "text": "It was.", "annotations": []}],
    }


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_a_reply_that_is_still_to_come_is_no_empty_one(status: str) -> None:
    with pytest.raises(BadRequest, match="in the background"):
        read_response(SETTINGS, {"status": status, "output": []})


def test_a_reply_that_was_cancelled_is_an_error() -> None:
    with pytest.raises(ModelUnavailable, match="the reply was cancelled"):
        read_response(SETTINGS, {"status": "cancelled", "output": []})


def test_encrypted_reasoning_goes_only_to_whose_it_is() -> None:
    thought = ReasoningBlock(id="rs_1", encrypted_content="e", provider="openai")
    said = [Message.user("Hi."), Message.assistant(thought, TextBlock(text="Hello."))]
    assert [item["type"] for item in items_of(said, "openai/gpt-5")] == ["message", "reasoning", "message"]
    assert [item["type"] for item in items_of(said, "deepseek/some-model")] == ["message", "message"]


def items_of(messages: list[Message], model: str) -> list[Any]:
    return encode_items(messages, model)[1]
