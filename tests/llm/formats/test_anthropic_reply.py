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
from agentcore.llm import Delta
from agentcore.llm.formats.anthropic_reply import MessagesDecoder, decode_content, read_reply
from agentcore.llm.formats.decoding import DecodedReply
from agentcore.llm.settings import LLMSettings
from agentcore.messages import (
    Message,
)
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


def read(*events: dict[str, Any]) -> tuple[list[Delta], DecodedReply]:
    reader = MessagesDecoder(SETTINGS)
    deltas = [delta for event in events for delta in reader.read(event)]
    return deltas, reader.answer()


def assemble(events: list[dict[str, Any]]) -> dict[str, Any]:
    decoder = MessagesDecoder(SETTINGS)
    for event in events:
        decoder.read(event)
    return decoder.joined()


def test_no_content_is_an_error_and_empty_content_a_reply() -> None:
    assert read_reply(SETTINGS, reply(content=[], stop_reason="refusal")).message.content == ()
    with pytest.raises(ModelUnavailable, match="nothing"):
        read_reply(SETTINGS, {})


def test_arguments_that_are_cut_off_stay_the_text_they_are() -> None:
    call = start(0, type="tool_use", id="a", name="t", input={})
    _, answer = read(BEGIN, call, piece(0, "input_json_delta", partial_json='{"x": "\ud83d'), *end("max_tokens"))
    assert answer.message.tool_calls[0].arguments == '{"x": "\ufffd'
    assert answer.stop_reason == "length"


def test_the_last_count_holds_where_it_is_said() -> None:
    whole = assemble([BEGIN, *end(input_tokens=30, output_tokens=4, cache_read_input_tokens=None)])
    assert whole["usage"] == {"input_tokens": 30, "output_tokens": 4}
    whole = assemble([BEGIN, *end(input_tokens=0, output_tokens=4)])
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


@pytest.mark.parametrize("body", [{"error": {"message": "boom"}}, {"message": "boom"}, {"detail": "boom"}])
def test_an_error_without_a_type_keeps_its_words(body: dict[str, Any]) -> None:
    with pytest.raises(ModelUnavailable, match="boom"):
        read_reply(SETTINGS, body)
