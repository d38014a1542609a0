"""Answers that are not quite what the interface says: read as they are meant, or errors with their words."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from agentcore.errors import (
    AuthenticationError,
    BadRequest,
    ContextWindowExceeded,
    ModelError,
    ModelUnavailable,
    RateLimited,
)
from agentcore.llm import LLM, Delta, Reply, TextDelta, ToolCallDelta
from model_route import ASK, KEY, REPLIES, canned
from model_route import read as read_all
from raw_server import just, serve_raw

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
CHAT: dict[str, Any] = {"model": "openai/m"}
RESPONSES: dict[str, Any] = {"model": "openai/m", "api_mode": "responses"}
ANTHROPIC: dict[str, Any] = {"model": "anthropic/claude-sonnet-4-5"}
WIRES = {"chat": CHAT, "responses": RESPONSES, "anthropic": ANTHROPIC, "gemini": {"model": "gemini/gemini-2.5-flash"}}


SAID = {"type": "message", "content": [{"type": "output_text", "text": "Hi."}]}


def events(*data: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in data)


def piece(finish_reason: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def call(arguments: Any, **more: Any) -> dict[str, Any]:
    return {"index": 0, "function": {"name": more.pop("name", "f"), "arguments": arguments}, **more}


def calls(*fragments: dict[str, Any]) -> bytes:
    return events(*(piece(tool_calls=[fragment]) for fragment in fragments), piece("tool_calls"))


def message(*blocks: dict[str, Any], delta: dict[str, Any] | None = None) -> bytes:
    told = [
        {"type": "content_block_start", "index": index, "content_block": block} for index, block in enumerate(blocks)
    ]
    more = [{"type": "content_block_delta", "index": 0, "delta": delta}] if delta else []
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}
    return events({"type": "message_start", "message": {}}, *told, *more, end, {"type": "message_stop"})


def response(**said: Any) -> bytes:
    return events({"type": "response.completed", "response": {"status": "completed", **said}})


TOO_LONG = ContextWindowExceeded


def refusal(kind: str, words: str = "Why?") -> bytes:
    return events({"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_1"})


async def asked(body: bytes, **settings: Any) -> tuple[list[Delta], Reply] | ModelError:
    with anyio.fail_after(30):
        async with serve_raw(just(HEAD + body)) as server:
            given = {"base_url": server.url, "api_key": KEY, "num_retries": 0} | settings
            try:
                async with LLM.model_validate(given).stream(ASK) as deltas:
                    told = [delta async for delta in deltas]
            except ModelError as error:
                return error
            return told, deltas.reply


async def read(body: bytes, **settings: Any) -> tuple[list[Delta], Reply]:
    answer = await asked(body, **settings)
    assert not isinstance(answer, ModelError), answer
    return answer


async def refused(body: bytes, **settings: Any) -> ModelError:
    answer = await asked(body, **settings)
    assert isinstance(answer, ModelError)
    return answer


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf" + events(piece(content="Hi.")) + events(piece("stop")),
        b"data:\n\n" + events(piece(content="Hi.")) + b"data: \n\n" + events(piece("stop")),
        events(piece(content="Hi.")) + b"data:  [DONE] \n\n",
        events({"choices": [{"index": 0, "message": {"content": "Hi."}, "finish_reason": "stop"}]}),
        events(piece(content="Hi."), piece("STOP")),
    ],
)
async def test_words_are_read_whatever_stands_around_them(body: bytes) -> None:
    told, reply = await read(body, **CHAT)
    assert told == [TextDelta(text="Hi.")]
    assert (reply.message.text, reply.stop_reason) == ("Hi.", "end")


MADE: list[tuple[bytes, list[tuple[str, Any]]]] = [
    (calls(call('{"a": 1}'), call('{"b": 2}')), [("call_0", {"a": 1}), ("call_1", {"b": 2})]),
    (calls(call('{"a": 1}', id=""), call("{}", id="")), [("call_0", {"a": 1}), ("call_1", {})]),
    (calls(call('{"a":', id=""), call("1}", id="")), [("call_0", {"a": 1})]),
    (calls(call('{"a": 1}', id="x"), call("")), [("x", {"a": 1})]),
    (calls(call("{}", id=5)), [("5", {})]),
    (calls(call("{}", id="x\ud800")), [("x\ufffd", {})]),
    (calls(call({"a": [1]}, id="x")), [("x", {"a": [1]})]),
    # No JSON, though Python would read it: sent back, nobody else could.
    (calls(call('{"a": NaN}', id="x")), [("x", '{"a": NaN}')]),
    (calls(call('{"a": 1e999}', id="x")), [("x", '{"a": 1e999}')]),
    (calls(call("  ", id="x")), [("x", {})]),
    (calls(call("[1]", id="x")), [("x", "[1]")]),
    (calls(call('"x"', id="x")), [("x", '"x"')]),
    (calls(call("[" * 100_000, id="x")), [("x", "[" * 100_000)]),
    (calls(call('{"a": "\\ud83d\\ude00 \\ud83d"}', id="x")), [("x", {"a": "\U0001f600 \ufffd"})]),
]


@pytest.mark.parametrize(("body", "made"), MADE)
async def test_calls_are_told_apart_and_read_whatever_ids_and_arguments_they_have(
    body: bytes, made: list[tuple[str, Any]]
) -> None:
    told, reply = await read(body, **CHAT)
    assert [(block.id, block.arguments) for block in reply.message.tool_calls] == made
    assert {delta.index for delta in told if isinstance(delta, ToolCallDelta)} == set(range(len(made)))


DEEP: dict[str, Any] = json.loads('{"a": ' * 120 + "{}" + "}" * 120)


@pytest.mark.parametrize(
    ("body", "settings", "made"),
    [
        (message({"type": "tool_use", "id": "x", "name": "f", "input": DEEP}), ANTHROPIC, json.dumps(DEEP)),
        (message({"type": "tool_use", "id": "x", "name": "f", "input": {"a": 1}}), ANTHROPIC, {"a": 1}),
        (
            response(output=[{"type": "function_call", "call_id": "x", "name": "f", "arguments": {"a": 1}}]),
            RESPONSES,
            {"a": 1},
        ),
    ],
)
async def test_arguments_that_came_as_the_object_they_are_are_read_as_others_are(
    body: bytes, settings: dict[str, Any], made: Any
) -> None:
    _, reply = await read(body, **settings)
    assert [block.arguments for block in reply.message.tool_calls] == [made]


@pytest.mark.parametrize(
    ("body", "settings"),
    [
        (message({"type": "text", "text": "Hi."}, delta={"type": "text_delta", "text": None}), ANTHROPIC),
        (events({"type": "response.output_text.delta", "delta": None}) + response(output=[SAID]), RESPONSES),
    ],
)
async def test_a_piece_without_words_is_no_reason_to_lose_the_others(body: bytes, settings: dict[str, Any]) -> None:
    _, reply = await read(body, **settings)
    assert reply.message.text == "Hi."


@pytest.mark.parametrize(
    ("body", "settings", "stop"),
    [
        (
            events(
                {"type": "message_start", "message": {}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi."}},
                {"type": "message_stop"},
            ),
            ANTHROPIC,
            "end",
        ),
        (
            events({"type": "response.incomplete", "response": {"status": "incomplete", "output": [SAID]}}),
            RESPONSES,
            "length",
        ),
    ],
)
async def test_words_that_nobody_began_or_ended_are_not_lost(body: bytes, settings: dict[str, Any], stop: str) -> None:
    _, reply = await read(body, **settings)
    assert (reply.message.text, reply.stop_reason) == ("Hi.", stop)


@pytest.mark.parametrize("reason", ["error", "abort", "network_error", "insufficient_system_resource"])
async def test_a_reply_that_its_provider_gave_up_is_an_error_that_may_pass_and_no_short_reply(reason: str) -> None:
    error = await refused(events(piece(content="Hi"), piece(reason)) + b"data: [DONE]\n\n", **CHAT)
    assert f"in the middle, and says why in a word: '{reason}'" in str(error)
    assert error.retryable


@pytest.mark.parametrize(
    ("body", "settings", "kind", "words"),
    [
        (events({"object": "error", "message": "out of memory", "code": 500}), CHAT, ModelUnavailable, "out of memory"),
        (events({"message": "slow down", "code": 429}), CHAT, RateLimited, "slow down"),
        (events({"detail": "try later"}), CHAT, ModelUnavailable, "try later"),
        (events({"error": {"message": "slow down", "code": 429}}), RESPONSES, RateLimited, "slow down"),
        (refusal("rate_limit_error"), ANTHROPIC, RateLimited, "Why?"),
        (refusal("overloaded_error"), ANTHROPIC, ModelUnavailable, "Why?"),
        (refusal("api_error"), ANTHROPIC, ModelUnavailable, "Why?"),
        (refusal("invalid_request_error"), ANTHROPIC, BadRequest, "Why?"),
        (refusal("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"), ANTHROPIC, TOO_LONG, "9 tokens"),
        (refusal("request_too_large"), ANTHROPIC, TOO_LONG, "Why?"),
        (refusal("authentication_error"), ANTHROPIC, AuthenticationError, "Why?"),
        (events({"type": "error", "message": "It burns."}), RESPONSES, ModelUnavailable, "It burns."),
        (events({"type": "error", "message": "try later"}), ANTHROPIC, ModelUnavailable, "try later"),
        (events({"type": "response.failed", "response": {"error": None}}), RESPONSES, ModelError, "without a reason"),
        (events({"message": "try later"}), RESPONSES, ModelUnavailable, "try later"),
        (events({"message": "try later"}), ANTHROPIC, ModelUnavailable, "try later"),
        (response(), RESPONSES, ModelUnavailable, "no"),
        (response(status="cancelled", output=[]), RESPONSES, ModelUnavailable, "the reply was cancelled"),
        (response(status="queued", output=[]), RESPONSES, BadRequest, "in the background"),
        (response(status="failed", error={"message": "It burns."}), RESPONSES, ModelUnavailable, "It burns."),
        (b"upstream connect error: no healthy upstream", CHAT, ModelUnavailable, "no healthy upstream"),
        (b": alive\n\nplain words\n", ANTHROPIC, ModelUnavailable, "'plain words'"),
    ],
)
async def test_what_is_said_in_place_of_a_reply_is_passed_on(
    body: bytes, settings: dict[str, Any], kind: type[ModelError], words: str
) -> None:
    error = await refused(body, **settings)
    assert isinstance(error, kind)
    assert words in str(error)


async def test_json_that_never_ends_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentcore.llm.native.model.LONGEST_ANSWER", 1000)
    error = await refused(b'{"a": "' + b"x" * 100_000, **CHAT)
    assert "more bytes than any reply has" in str(error)


ODD: list[tuple[Any, str]] = [
    ({}, "nothing"),
    ({"message": "upstream failure"}, "upstream failure"),
    ({"detail": "upstream failure"}, "upstream failure"),
    ({"object": "error", "message": "upstream failure"}, "upstream failure"),
    ({"success": False, "reason": "upstream failure"}, "upstream failure"),
    ({"error": {"message": "upstream failure"}}, "upstream failure"),
    ({"error": "upstream failure"}, "upstream failure"),
]


@pytest.mark.parametrize("wire", WIRES)
async def test_json_that_is_no_reply_is_an_error_with_its_words_streamed_or_not(wire: str) -> None:
    others = [(reply, "Check base_url") for name, reply in REPLIES.items() if name != wire]
    for body, words in [*ODD, *others]:
        data = json.dumps(body).encode()
        async with canned(data, data) as server:
            llm = LLM.model_validate({"base_url": server.url, "api_key": KEY, "num_retries": 0} | WIRES[wire])
            with pytest.raises(ModelError) as whole:
                await llm.complete(ASK)
            with pytest.raises(ModelError) as streamed:
                await read_all(llm)
        assert words in str(whole.value)
        assert str(streamed.value) == str(whole.value)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -4, "completion_tokens": "many"},
        {"prompt_tokens": 1e400, "completion_tokens": True},
        [1],
        7,
        {"prompt_tokens_details": [1], "prompt_tokens": None},
    ],
)
async def test_a_bill_that_cannot_be_read_costs_no_reply(usage: Any) -> None:
    choice = {"index": 0, "finish_reason": 5, "message": {"role": "assistant", "content": "Hi."}}
    whole = json.dumps({"id": 1, "model": 2, "choices": [choice], "usage": usage}).encode()
    async with canned(whole) as server:
        reply = await LLM(model="some-model", base_url=server.url, num_retries=0).complete(ASK)
    delta = {"choices": [{"index": 0, "finish_reason": 5, "delta": {"content": "Hi."}}]}
    _, streamed = await read(events(delta, {"choices": [], "usage": usage}) + b"data: [DONE]\n\n", **CHAT)
    for each in (reply, streamed):
        assert (each.message.text, each.stop_reason, each.usage.unpriced_requests) == ("Hi.", "5", 1)
