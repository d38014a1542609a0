from __future__ import annotations

import http.client
import json
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, Self
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import pytest

from agentcore.errors import (
    AuthenticationError,
    ContextWindowExceeded,
    ModelConnectionError,
    ModelUnavailable,
    RateLimited,
)
from agentcore.messages import DocumentBlock, ImageBlock, Message, TextBlock, ToolCallBlock, ToolResultBlock, ToolSchema
from agentcore.testing import ChatProvider, Gate, Request, ScriptLine, call, calls, say, serve_provider, truncated
from agentcore.usage import Usage

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hello?"}]}


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.content = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def events(self) -> list[Any]:
        lines = [line.removeprefix("data: ") for line in self.content.decode().splitlines() if line]
        return [json.loads(line) for line in lines if line != "[DONE]"]


class Client:
    """Any client, one connection: the standard library's, in a thread."""

    def __init__(self, provider: ChatProvider) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(provider.base_url).netloc, timeout=30)

    async def ask(self, body: dict[str, Any] = ASK, *, method: str = "POST", path: str = "/v1/chat/completions",
                  key: str | None = None) -> Answer:  # fmt: skip
        def exchange() -> Answer:
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            self.connection.request(method, path, json.dumps(body), headers)
            return Answer(self.connection.getresponse())

        with anyio.fail_after(30):
            return await anyio.to_thread.run_sync(exchange)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()


@asynccontextmanager
async def asking(
    lines: Iterable[ScriptLine] | Callable[[Request], ScriptLine], **options: Any
) -> AsyncGenerator[tuple[Client, ChatProvider]]:
    async with serve_provider(lines, **options) as provider:
        with Client(provider) as client:
            yield client, provider


async def answers(*lines: ScriptLine, body: dict[str, Any] = ASK) -> list[Answer]:
    async with asking(lines) as (client, _):
        return [await client.ask(body) for _ in lines]


async def test_a_reply_comes_as_the_format_has_it() -> None:
    usage = Usage(input_tokens=9, output_tokens=5, cache_read_tokens=4, reasoning_tokens=2)
    (answer,) = await answers(calls(call("read", path="x"), text="Looking.", thinking="hm", usage=usage))
    assert answer.status == 200
    choice = answer.json["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == "Looking."
    assert choice["message"]["reasoning_content"] == "hm"
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "read", "arguments": '{"path": "x"}'}
    assert answer.json["model"] == "m"
    assert answer.json["usage"] == {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "total_tokens": 14,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }


async def test_a_stream_says_the_same_in_pieces_and_counts_when_it_is_asked_to() -> None:
    said = calls(call("read", path="x y"), text="Let me see.", thinking="a file", usage=Usage(input_tokens=9))
    plain, counted = [
        (await answers(said, body=ASK | {"stream": True} | options))[0]
        for options in ({}, {"stream_options": {"include_usage": True}})
    ]
    assert plain.headers["content-type"] == "text/event-stream"
    assert plain.content.endswith(b"data: [DONE]\n\n")
    deltas = [event["choices"][0]["delta"] for event in plain.events]
    assert "".join(delta.get("content", "") for delta in deltas) == "Let me see."
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "a file"
    fragments = [fragment for delta in deltas for fragment in delta.get("tool_calls", ())]
    assert fragments[0]["function"]["name"] == "read"
    assert "".join(fragment["function"]["arguments"] for fragment in fragments) == '{"path": "x y"}'
    assert [event["choices"][0]["finish_reason"] for event in plain.events][-2:] == [None, "tool_calls"]
    assert counted.events[-1]["choices"] == []
    assert counted.events[-1]["usage"]["prompt_tokens"] == 9


async def test_a_script_that_says_nothing_of_usage_gets_a_guess() -> None:
    (answer,) = await answers("Hi.")
    assert answer.json["usage"]["prompt_tokens"] == len(json.dumps(ASK)) // 4


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (AuthenticationError("no"), 401, "invalid_api_key"),
        (RateLimited("slow down", retry_after=1.2), 429, "rate_limit_exceeded"),
        (ContextWindowExceeded("too long"), 400, "context_length_exceeded"),
        (ModelUnavailable("overloaded", status=529), 529, "overloaded"),
        (ZeroDivisionError("a bug"), 500, "bug"),
    ],
)
async def test_an_error_is_sent_as_providers_send_theirs(error: Exception, status: int, code: str) -> None:
    (answer,) = await answers(error)
    assert answer.status == status
    assert answer.json["error"]["code"] == code
    assert answer.json["error"]["message"] == str(error)
    assert answer.headers.get("retry-after") == ("2" if status == 429 else None)


async def test_an_empty_script_is_an_error_that_nobody_tries_again() -> None:
    async with asking([]) as (client, _):
        answer = await client.ask()
    assert (answer.status, answer.json["error"]["code"]) == (400, "script_exhausted")


async def test_a_connection_error_is_a_reset() -> None:
    async with serve_provider([ModelConnectionError("gone"), "Hi."]) as provider:
        with Client(provider) as client, pytest.raises(ConnectionResetError):
            await client.ask()
        with Client(provider) as client:
            assert (await client.ask()).status == 200


async def test_half_a_stream_ends_well_for_http_and_says_no_last_word() -> None:
    (answer,) = await answers(truncated("one two three", after=2), body=ASK | {"stream": True})
    assert [event["choices"][0]["delta"]["content"] for event in answer.events] == ["one", " two"]
    assert b"DONE" not in answer.content


async def test_a_stream_may_be_reset_or_fail_in_the_middle() -> None:
    lines = [
        truncated("one two", error=ModelUnavailable("overloaded")),
        truncated("one two", error=ModelConnectionError("gone")),
    ]
    async with asking(lines) as (client, _):
        told = await client.ask(ASK | {"stream": True})
        assert told.events[-1]["error"]["message"] == "overloaded"
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            await client.ask(ASK | {"stream": True})


async def test_a_key_is_asked_for_where_there_is_one() -> None:
    async with asking(["Hi."], api_key="right") as (client, provider):
        assert (await client.ask(key="wrong")).status == 401
        assert (await client.ask()).status == 401
        assert (await client.ask(key="right")).status == 200
        assert len(provider.requests) == 1


async def test_models_are_listed_and_other_addresses_are_not_there() -> None:
    async with asking([], models=["a", "b"]) as (client, _):
        listed = await client.ask(method="GET", path="/v1/models")
        assert [model["id"] for model in listed.json["data"]] == ["a", "b"]
        assert (await client.ask(path="/v1/embeddings")).status == 404


async def test_a_function_of_the_request_reads_it_as_messages() -> None:
    seen: list[Request] = []

    def answer(request: Request) -> ScriptLine:
        seen.append(request)
        return "Hi."

    body = {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "See:"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}, {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}, {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "read", "arguments": '{"n": 1}'}}]},
            {"role": "tool", "tool_call_id": "a", "content": "contents"},
        ],
        "tools": [{"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": {"type": "object"}}}],
    }  # fmt: skip
    async with asking(answer) as (client, provider):
        assert (await client.ask(body)).status == 200
        assert provider.requests[0].json() == body
    assert seen[0].messages == (
        Message.system("Be brief."),
        Message.user(
            "See:",
            ImageBlock(data="aGk=", media_type="image/png"),
            ImageBlock(url="https://example.com/a.png"),
            DocumentBlock(data="aGk=", media_type="application/pdf", name="a.pdf"),
        ),
        Message.assistant(ToolCallBlock(id="a", name="read", arguments={"n": 1})),
        Message(
            role="tool", content=(ToolResultBlock(call_id="a", name="read", content=(TextBlock(text="contents"),)),)
        ),
    )
    assert seen[0].tools == (ToolSchema(name="read", description="Reads.", parameters={"type": "object"}),)


async def test_a_client_that_goes_away_ends_its_answer_and_leaves_no_connection() -> None:
    gate = Gate()
    async with serve_provider([gate.hold("never")]) as provider:
        with anyio.fail_after(30):
            with Client(provider) as client:
                client.connection.request("POST", "/v1/chat/completions", json.dumps(ASK))
                await gate.arrived()
            await gate.left()
            await provider.idle()
        assert provider.connections == 0


async def test_what_is_no_http_is_hung_up_on() -> None:
    async with serve_provider([]) as provider:
        address = urlsplit(provider.base_url)
        with anyio.fail_after(30):
            async with await anyio.connect_tcp(str(address.hostname), int(address.port or 0)) as stream:
                await stream.send(b"\x00 what is this \r\n\r\n")
                with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                    await stream.receive()
            await provider.idle()


async def test_a_connection_serves_one_request_after_the_other() -> None:
    async with asking(["one", say("two")]) as (client, provider):
        texts = [(await client.ask()).json["choices"][0]["message"]["content"] for _ in range(2)]
        assert provider.connections == 1
    assert texts == ["one", "two"]
