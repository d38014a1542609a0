from __future__ import annotations

from typing import Any

import pytest
from pydantic import JsonValue

from agentcore.errors import (
    AuthenticationError,
    BadRequest,
    ContextWindowExceeded,
    ModelConnectionError,
    ModelError,
    ModelUnavailable,
    RateLimited,
)
from agentcore.llm import Delta, ReasoningDelta, RefusalDelta, TextDelta, ToolCallDelta
from agentcore.llm.decoding import Answer
from agentcore.llm.formats.anthropic import encode_message
from agentcore.llm.formats.anthropic_reply import MessagesReader, assemble, decode_content, decode_usage, read_reply
from agentcore.llm.settings import LLMSettings
from agentcore.messages import (
    Message,
    ProviderBlock,
    RedactedThinkingBlock,
    RefusalBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from agentcore.messages.message import CITED
from agentcore.usage import Usage

SETTINGS = LLMSettings(model="anthropic/claude-sonnet-4-5")
USE: dict[str, JsonValue] = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "x"},
}
FOUND: dict[str, JsonValue] = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
CITATION: dict[str, JsonValue] = {"type": "web_search_result_location", "url": "https://example.com"}


def decode(*content: dict[str, Any]) -> Message:
    return decode_content(content, "anthropic")


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def reply(**fields: Any) -> dict[str, Any]:
    return {"type": "message", "id": "msg_1", "model": "claude-x", "content": [text("Hi.")]} | fields


def start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def piece(index: int, kind: str, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **delta}}


def end(stop_reason: str | None = "end_turn", **usage: Any) -> list[dict[str, Any]]:
    return [
        {"type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


BEGIN: dict[str, Any] = {
    "type": "message_start",
    "message": reply(content=[], stop_reason=None, usage={"input_tokens": 9, "output_tokens": 1}),
}


def read(*events: dict[str, Any]) -> tuple[list[Delta], Answer]:
    reader = MessagesReader(SETTINGS)
    deltas = [delta for event in events for delta in reader.read(event)]
    return deltas, reader.answer()


def test_blocks_keep_their_order_and_what_is_the_providers_own_is_kept_as_it_came() -> None:
    content: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "hm", "signature": "s1"},
        {"type": "redacted_thinking", "data": "xyz"},
        text("Let me see."),
        USE,
        FOUND,
        text("And:"),
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "x"}},
    ]
    message = decode(*content)
    assert message.content == (
        ThinkingBlock(text="hm", signature="s1", provider="anthropic"),
        RedactedThinkingBlock(data="xyz", provider="anthropic"),
        TextBlock(text="Let me see."),
        ProviderBlock(provider="anthropic", data=USE),
        ProviderBlock(provider="anthropic", data=FOUND),
        TextBlock(text="And:"),
        ToolCallBlock(id="toolu_1", name="read", arguments={"path": "x"}),
    )
    assert list(encode_message(message, "anthropic").blocks) == content


def test_a_text_with_citations_reads_as_one_and_goes_back_as_it_came() -> None:
    content = [text("It is "), text("42", citations=[CITATION]), text(".", citations=None)]
    message = decode(*content)
    assert message.text == "It is 42."
    assert isinstance(message.content[1], ProviderBlock)
    assert message.content[1].data == {
        "type": CITED,
        "parts": [{"length": 6}, {"length": 2, "citations": [CITATION]}, {"length": 1}],
    }
    back = list(encode_message(message, "anthropic").blocks)
    assert back == [text("It is "), text("42", citations=[CITATION]), text(".")]


def test_empty_texts_and_empty_unsigned_thinking_are_no_blocks() -> None:
    assert decode(text(""), {"type": "thinking", "thinking": "", "signature": ""}).content == ()
    hidden = decode({"type": "thinking", "thinking": "", "signature": "s1"})
    assert hidden.content == (ThinkingBlock(text="", signature="s1", provider="anthropic"),)


def test_halves_of_characters_are_made_whole() -> None:
    message = decode(text("\ud83d\ude00"), {"type": "tool_use", "id": "a", "name": "t", "input": {"x": "\ud83d"}})
    assert message.text == "😀"
    assert message.tool_calls[0].arguments == {"x": "\ufffd"}


def test_what_the_provider_kept_counts_as_read() -> None:
    usage = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 418,
        "cache_read_input_tokens": 1111,
        "output_tokens": 145,
        "output_tokens_details": {"thinking_tokens": 47},
        "server_tool_use": {"web_search_requests": 1},
    }
    assert decode_usage(usage) == Usage(
        requests=1,
        input_tokens=1532,
        output_tokens=145,
        cache_read_tokens=1111,
        cache_write_tokens=418,
        reasoning_tokens=47,
    )
    assert decode_usage({"input_tokens": 5, "cache_read_input_tokens": None}).input_tokens == 5


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("end_turn", "end"),
        (None, "end"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("stop_sequence", "stop_sequence"),
        ("pause_turn", "pause"),
        ("refusal", "content_filter"),
        ("compaction", "compaction"),
    ],
)
def test_the_reason_to_stop_is_said_in_our_words(theirs: str | None, ours: str) -> None:
    answer = read_reply(SETTINGS, reply(stop_reason=theirs))
    assert (answer.stop_reason, answer.model, answer.provider_id) == (ours, "claude-x", "msg_1")


def test_a_reply_with_calls_has_stopped_for_them_whatever_a_compatible_server_says() -> None:
    call: dict[str, Any] = {"type": "tool_use", "id": "a", "name": "t", "input": {}}
    assert read_reply(SETTINGS, reply(content=[call], stop_reason="end_turn")).stop_reason == "tool_calls"


def test_no_content_is_an_error_and_empty_content_a_reply() -> None:
    assert read_reply(SETTINGS, reply(content=[], stop_reason="refusal")).message.content == ()
    with pytest.raises(ModelUnavailable, match="nothing"):
        read_reply(SETTINGS, {})


def test_the_events_of_a_stream_make_the_reply_that_would_have_come_at_once() -> None:
    deltas, answer = read(
        BEGIN,
        start(0, type="thinking", thinking="", signature=""),
        piece(0, "thinking_delta", thinking="Let me "),
        {"type": "ping"},
        piece(0, "thinking_delta", thinking="see."),
        piece(0, "signature_delta", signature="s1"),
        {"type": "content_block_stop", "index": 0},
        start(1, type="text", text=""),
        piece(1, "text_delta", text="It "),
        piece(1, "text_delta", text="is:"),
        start(2, **{**USE, "input": {}}),
        piece(2, "input_json_delta", partial_json=""),
        piece(2, "input_json_delta", partial_json='{"query": "x"}'),
        start(3, **FOUND),
        start(4, type="tool_use", id="toolu_1", name="read", input={}),
        start(5, type="tool_use", id="toolu_2", name="stop", input={}),
        piece(4, "input_json_delta", partial_json='{"path":'),
        piece(5, "input_json_delta", partial_json=""),
        piece(4, "input_json_delta", partial_json=' "x"}'),
        *end("tool_use", output_tokens=20, output_tokens_details={"thinking_tokens": 7}),
    )
    assert answer.message.content == (
        ThinkingBlock(text="Let me see.", signature="s1", provider="anthropic"),
        TextBlock(text="It is:"),
        ProviderBlock(provider="anthropic", data=USE),
        ProviderBlock(provider="anthropic", data=FOUND),
        ToolCallBlock(id="toolu_1", name="read", arguments={"path": "x"}),
        ToolCallBlock(id="toolu_2", name="stop", arguments={}),
    )
    assert answer.stop_reason == "tool_calls"
    assert answer.usage == Usage(requests=1, input_tokens=9, output_tokens=20, reasoning_tokens=7)
    assert (answer.model, answer.provider_id) == ("claude-x", "msg_1")
    assert deltas == [
        ReasoningDelta(text="Let me "),
        ReasoningDelta(text="see."),
        TextDelta(text="It "),
        TextDelta(text="is:"),
        ToolCallDelta(index=0, id="toolu_1", name="read"),
        ToolCallDelta(index=1, id="toolu_2", name="stop"),
        ToolCallDelta(index=0, arguments='{"path":'),
        ToolCallDelta(index=0, arguments=' "x"}'),
    ]


def test_citations_come_in_pieces_too_and_what_is_not_known_is_passed_over() -> None:
    _, answer = read(
        BEGIN,
        start(0, type="text", text="", citations=[]),
        piece(0, "text_delta", text="42"),
        piece(0, "citations_delta", citation=CITATION),
        piece(0, "hologram_delta", hologram="x"),
        {"type": "hologram_start", "index": 0},
        piece(9, "text_delta", text=""),
        start(1, type="compaction", content=None),
        piece(1, "compaction_delta", content="So far: nothing."),
        *end(),
    )
    kept = decode(text("42", citations=[CITATION]), {"type": "compaction", "content": "So far: nothing."})
    assert answer.message == kept


def test_arguments_that_are_cut_off_stay_the_text_they_are() -> None:
    call = start(0, type="tool_use", id="a", name="t", input={})
    _, answer = read(BEGIN, call, piece(0, "input_json_delta", partial_json='{"x": "\ud83d'), *end("max_tokens"))
    assert answer.message.tool_calls[0].arguments == '{"x": "\ufffd'
    assert answer.stop_reason == "length"


def test_arguments_that_come_with_the_call_itself_are_taken() -> None:
    _, answer = read(BEGIN, start(0, type="tool_use", id="a", name="t", input={"x": 1}), *end("tool_use"))
    assert answer.message.tool_calls[0].arguments == {"x": 1}


def test_the_last_count_holds_where_it_is_said() -> None:
    whole = assemble([BEGIN, *end(input_tokens=30, output_tokens=4, cache_read_input_tokens=None)])
    assert whole is not None
    assert whole["usage"] == {"input_tokens": 30, "output_tokens": 4}
    whole = assemble([BEGIN, *end(input_tokens=0, output_tokens=4)])
    assert whole is not None
    assert whole["usage"]["input_tokens"] == 9


@pytest.mark.parametrize("events", [[], [BEGIN, start(0, type="text", text="Hi")], [BEGIN, *end()[:1]], end()])
def test_a_stream_without_its_last_word_is_no_short_reply(events: list[dict[str, Any]]) -> None:
    with pytest.raises(ModelConnectionError, match="broke off"):
        read(*events)


@pytest.mark.parametrize(
    ("kind", "words", "error", "status", "retryable"),
    [
        ("overloaded_error", "Overloaded", ModelUnavailable, 529, True),
        ("rate_limit_error", "Slow down", RateLimited, 429, True),
        ("api_error", "Internal server error", ModelUnavailable, 500, True),
        ("invalid_request_error", "What?", BadRequest, 400, False),
        ("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", ContextWindowExceeded, 400, False),
        ("authentication_error", "invalid x-api-key", AuthenticationError, 401, False),
        ("request_too_large", "Too large", ContextWindowExceeded, 413, False),
    ],
)
def test_an_error_is_one_of_ours_in_a_stream_and_in_a_body(
    kind: str, words: str, error: type[ModelError], status: int, retryable: bool
) -> None:
    event = {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_1"}
    for attempt in (lambda: read(BEGIN, event), lambda: read_reply(SETTINGS, event)):
        with pytest.raises(error, match="anthropic/claude-sonnet-4-5") as raised:
            attempt()
        assert (type(raised.value), raised.value.status, raised.value.retryable) == (error, status, retryable)
        assert words in str(raised.value)


def counts(fresh: int, wrote: int, output: int, kind: str = "message", **more: Any) -> dict[str, Any]:
    counted = {"input_tokens": fresh, "cache_creation_input_tokens": wrote, "cache_read_input_tokens": 0}
    return {**counted, "output_tokens": output, "type": kind, **more}


COMPACTED = [counts(100, 55_096, 131, "compaction"), counts(229, 0, 5)]


def test_a_reply_that_took_several_calls_of_the_model_counts_them_all() -> None:
    usage = {**counts(229, 0, 5), "iterations": COMPACTED}
    answer = read_reply(SETTINGS, reply(usage=usage))
    assert answer.usage == Usage(requests=1, input_tokens=55_425, output_tokens=136, cache_write_tokens=55_096)
    begin = {"type": "message_start", "message": reply(content=[], usage=counts(100, 55_096, 1))}
    whole = assemble([begin, *end("end_turn", **usage)])
    assert whole is not None
    assert read_reply(SETTINGS, whole).usage == answer.usage


def test_the_calls_of_an_adviser_are_not_the_models_own() -> None:
    advice = counts(2500, 0, 20, "advisor_message", model="claude-opus-4-8")
    answer = read_reply(SETTINGS, reply(usage={**counts(10, 0, 5), "iterations": [counts(10, 0, 5), advice]}))
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (10, 5)
    ((model, used),) = answer.surcharges.other_models
    assert (model, used.input_tokens, used.output_tokens) == ("anthropic/claude-opus-4-8", 2500, 20)


@pytest.mark.parametrize("iterations", [None, "odd", [], ["odd"], 7])
def test_calls_that_cannot_be_read_are_counted_as_the_whole_says(iterations: Any) -> None:
    answer = read_reply(SETTINGS, reply(usage={**counts(10, 0, 5), "iterations": iterations}))
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (10, 5)


def test_what_is_kept_for_an_hour_and_what_is_searched_is_noted_for_the_price() -> None:
    kept = {"ephemeral_1h_input_tokens": 700, "ephemeral_5m_input_tokens": 300}
    usage = {**counts(10, 1000, 5), "cache_creation": kept, "server_tool_use": {"web_search_requests": 2}}
    answer = read_reply(SETTINGS, reply(usage=usage))
    assert (answer.surcharges.hour_cache_tokens, answer.surcharges.searches) == (700, 2)
    assert answer.reported_usage == usage


def test_a_refusal_says_why_in_a_block_and_a_delta_of_its_own() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "It is dangerous."}
    whole = read_reply(SETTINGS, reply(stop_reason="refusal", stop_details=details))
    assert whole.message.content == (TextBlock(text="Hi."), RefusalBlock(text="It is dangerous."))
    assert whole.stop_reason == "content_filter"
    reader = MessagesReader(SETTINGS)
    last = {"stop_reason": "refusal", "stop_details": details}
    events = [BEGIN, {"type": "message_delta", "delta": last}, {"type": "message_stop"}]
    deltas = [delta for event in events for delta in reader.read(event)]
    assert deltas == [RefusalDelta(text="It is dangerous.")]
    assert reader.answer().message.content == (RefusalBlock(text="It is dangerous."),)


@pytest.mark.parametrize("body", [{"error": {"message": "boom"}}, {"message": "boom"}, {"detail": "boom"}])
def test_an_error_without_a_type_keeps_its_words(body: dict[str, Any]) -> None:
    with pytest.raises(ModelUnavailable, match="boom"):
        read_reply(SETTINGS, body)
