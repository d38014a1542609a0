"""What every route to providers does, whoever speaks: a contract, for each route to subclass."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Literal

import anyio
import anyio.to_thread
import pytest

from agentcore.errors import (
    AuthenticationError,
    ContentPolicy,
    ContextWindowExceeded,
    MalformedHistory,
    ModelConnectionError,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    RateLimited,
)
from agentcore.llm import (
    LLM,
    CallContext,
    Delta,
    Model,
    ReasoningDelta,
    Reply,
    ResetDelta,
    RetryReport,
    TextDelta,
    ToolCallDelta,
)
from agentcore.messages import Message, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock, ToolSchema
from agentcore.testing import (
    ChatProvider,
    Gate,
    ModelContract,
    Request,
    ScriptLine,
    call,
    calls,
    hang,
    say,
    serve_provider,
    truncated,
)
from agentcore.testing.http import HTTPRequest, Responder, serve_http
from agentcore.usage import Usage

__all__ = [
    "ASK",
    "COUNTED",
    "KEY",
    "REPLIES",
    "Canned",
    "Route",
    "RouteContract",
    "canned",
    "chunk",
    "read",
    "request_body",
]

KEY = "sk-of-the-test"
ASK = [Message.user("Hello?")]
USED = Usage(input_tokens=100, output_tokens=9, cache_read_tokens=40, reasoning_tokens=3)
COUNTED = Usage(requests=1, input_tokens=100, output_tokens=9, cache_read_tokens=40, reasoning_tokens=3)


async def read(model: LLM, context: CallContext | None = None) -> tuple[list[Delta], Reply]:
    async with model.stream(ASK, context=context) as stream:
        deltas = [delta async for delta in stream]
    return deltas, stream.reply


@dataclass
class Canned:
    """A server that answers each request with the next of its bodies, and keeps what it was asked."""

    url: str
    asked: list[HTTPRequest]


@asynccontextmanager
async def canned(*bodies: bytes, content_type: str = "application/json", status: int = 200) -> AsyncGenerator[Canned]:
    left = list(bodies)
    asked: list[HTTPRequest] = []

    async def answer(request: HTTPRequest, responder: Responder) -> None:
        asked.append(request)
        await responder.send(status, left.pop(0), {"Content-Type": content_type})

    with anyio.fail_after(120):
        async with serve_http(answer) as server:
            yield Canned(server.url, asked)


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def chunk(text: bytes, finish_reason: bytes = b"null") -> bytes:
    head = b'data: {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, '
    return head + b'"delta": {"role": "assistant", "content": "%s"}, "finish_reason": %s}]}\n\n' % (text, finish_reason)


REPLIES: dict[str, dict[str, Any]] = {
    "chat": {"choices": [{"message": {"content": "Hi."}}]},
    "responses": {"status": "completed", "output": []},
    "anthropic": {"content": [{"type": "text", "text": "Hi."}]},
    "gemini": {"candidates": [{"content": {"parts": [{"text": "Hi."}]}, "finishReason": "STOP"}]},
}
"""A short reply on each interface."""


async def request_body(
    messages: Sequence[Message], tools: Sequence[ToolSchema] = (), context: CallContext | None = None, **settings: Any
) -> dict[str, Any]:
    """Ask a server, and return the body that it got."""
    wire = "anthropic" if settings["model"].startswith("anthropic/") else settings.get("api_mode", "chat")
    async with canned(json.dumps(REPLIES[wire]).encode()) as server:
        given = {"base_url": f"{server.url}/v1", "api_key": KEY, "num_retries": 0}
        await LLM.model_validate(given | settings).complete(messages, tools, context=context)
        return server.asked[0].json()


class Route:
    """How a contract speaks to a model. Subclass a contract, and say which route."""

    route: ClassVar[Literal["native", "litellm"]]

    def model_at(self, base_url: str, **settings: Any) -> LLM:
        """A model at a server, by this route, that does not wait between attempts."""
        given = {"model": "openai/gpt-4o-mini", "base_url": base_url, "api_key": KEY, "num_retries": 0}
        given |= {"retry_min_wait": 0, "retry_max_wait": 0, "route": self.route}
        return LLM.model_validate(given | settings)

    @asynccontextmanager
    async def asked(
        self, *lines: ScriptLine, repeat: bool = False, **settings: Any
    ) -> AsyncGenerator[tuple[LLM, ChatProvider]]:
        """A model at a provider that plays a script; when it is over, no call may be left."""
        with anyio.fail_after(120):
            async with serve_provider(lines, api_key=KEY, repeat=repeat) as provider:
                yield self.model_at(provider.base_url, **settings), provider
                assert not [task for task in anyio.get_running_tasks() if task.name == "agentcore model call"]


class RouteContract(Route, ModelContract):
    """Replies, streams, errors and connections: what all models share, and what a route to a provider has besides."""

    @asynccontextmanager
    async def playing(
        self, lines: Iterable[ScriptLine] | Callable[[Request], ScriptLine], *, repeat: bool = False
    ) -> AsyncGenerator[Model]:
        async with serve_provider(lines, api_key=KEY, repeat=repeat) as provider:
            yield self.model_at(provider.base_url)

    async def test_a_reply_comes_whole_with_what_it_used_and_cost(self) -> None:
        line = calls(call("read", path="x"), text="Looking.", thinking="hm", usage=USED)
        prices: dict[str, Any] = {
            "input_cost_per_token": "0.00000015",
            "cache_read_cost_per_token": "0.000000075",
            "output_cost_per_token": "0.0000006",
        }
        async with self.asked(line, **prices) as (model, _):
            reply = await model.complete(ASK)
        assert [type(block) for block in reply.message.content] == [ThinkingBlock, TextBlock, ToolCallBlock]
        assert reply.message.text == "Looking."
        assert reply.message.tool_calls[0].arguments == {"path": "x"}
        assert (reply.stop_reason, reply.model) == ("tool_calls", "openai/gpt-4o-mini")
        # 60 read at 0.15, 40 from the cache at 0.075, 9 written at 0.60 dollars a million.
        assert reply.usage == COUNTED.model_copy(update={"known_cost": Decimal("0.0000174")})
        assert reply.usage.cost == Decimal("0.0000174")

    async def test_a_server_that_cannot_stream_is_not_asked_to(self) -> None:
        line = calls(call("read", path="x"), text="Looking.", thinking="hm")
        async with self.asked(line, streaming=False) as (model, provider):
            async with model.stream(ASK) as stream:
                first = await anext(stream)
                with pytest.raises(RuntimeError, match="has not ended yet"):
                    _ = stream.reply
                rest = [delta async for delta in stream]
            assert "stream" not in provider.requests[0].json()
        assert [first, *rest] == [
            ReasoningDelta(text="hm"),
            TextDelta(text="Looking."),
            ToolCallDelta(index=0, id=stream.reply.message.tool_calls[0].id, name="read", arguments='{"path": "x"}'),
        ]

    async def test_the_request_says_all_that_was_set(self) -> None:
        tools = [ToolSchema(name="read", description="Reads.", parameters={"type": "object", "properties": {}})]
        answered = ToolResultBlock(call_id="a", name="read", content=(TextBlock(text="contents"),))
        messages = [
            Message.system("Be brief."),
            Message.user("Read."),
            Message.assistant(ToolCallBlock(id="a", name="read", arguments={"n": 1})),
            Message(role="tool", content=(answered,)),
        ]
        settings: dict[str, Any] = {
            "temperature": 0.5,
            "top_p": 0.9,
            "max_output_tokens": 77,
            "extra_headers": {"X-Team": "core"},
            "secret_headers": {"X-Gateway-Key": "hush"},
            "extra_body": {"min_p": 0.1},
        }
        async with self.asked("Hi.", **settings) as (model, provider):
            await model.complete(messages, tools, context=CallContext(prompt_cache_key="c"))
            request = provider.requests[0]
            body = request.json()
        assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "tool"]
        assert body["messages"][2]["tool_calls"][0]["function"] == {"name": "read", "arguments": '{"n": 1}'}
        assert body["messages"][3] == {"role": "tool", "tool_call_id": "a", "content": "contents"}
        assert body["tools"][0]["function"]["name"] == "read"
        assert (body["temperature"], body["top_p"], body["max_tokens"], body["min_p"]) == (0.5, 0.9, 77, 0.1)
        assert (request.headers["x-team"], request.headers["x-gateway-key"]) == ("core", "hush")
        # A server that is merely compatible may not know it.
        assert "prompt_cache_key" not in body

    @pytest.mark.parametrize(
        ("line", "kind", "words"),
        [
            (RateLimited("slow down", retry_after=7), RateLimited, "slow down"),
            (ContextWindowExceeded("too long"), ContextWindowExceeded, "longer than the model can read"),
            (MalformedHistory("roles must alternate"), MalformedHistory, "order of the messages"),
            (ContentPolicy("flagged"), ContentPolicy, "refused the content"),
            (ModelUnavailable("overloaded"), ModelUnavailable, "overloaded"),
            (ModelConnectionError("gone"), ModelConnectionError, "http://127.0.0.1"),
            (AuthenticationError("no"), AuthenticationError, "api_key"),
        ],
    )
    async def test_every_error_is_one_of_ours_streamed_or_not(
        self, line: ModelError, kind: type[ModelError], words: str
    ) -> None:
        async with self.asked(line, line) as (model, _):
            with pytest.raises(kind, match=words) as whole:
                await model.complete(ASK)
            with pytest.raises(kind, match=words) as streamed:
                await read(model)
        for raised in (whole.value, streamed.value):
            assert type(raised) is kind
            assert raised.model == "openai/gpt-4o-mini"
            assert raised.retry_after == line.retry_after
            assert KEY not in str(raised)

    async def test_a_server_that_is_not_there_is_named(self) -> None:
        async with self.asked() as (model, _):
            pass
        assert model.base_url is not None
        with pytest.raises(ModelConnectionError, match=model.base_url):
            await model.complete(ASK)
        with pytest.raises(ModelConnectionError, match=model.base_url):
            await read(model)

    async def test_without_a_key_nothing_is_sent_and_the_variable_to_set_is_named(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
        monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
        async with self.asked("never") as (_, provider):
            model = LLM(
                model="anthropic/claude-sonnet-4-5", base_url=provider.base_url, num_retries=0, route=self.route
            )
            with pytest.raises(AuthenticationError, match="Set ANTHROPIC_API_KEY, or pass"):
                await model.complete(ASK)
            assert provider.requests == []

    async def test_a_server_of_ones_own_needs_no_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        async with serve_provider(["Hi."]) as provider:
            model = LLM(model="some-model", base_url=provider.base_url, num_retries=0, route=self.route)
            reply = await model.complete(ASK)
            assert provider.requests[0].json()["model"] == "some-model"
        assert reply.model == "openai/some-model"

    async def test_a_stream_that_breaks_starts_over_and_says_so(self) -> None:
        reports: list[RetryReport] = []

        async def report(retry: RetryReport) -> None:
            await anyio.lowlevel.checkpoint()
            reports.append(retry)

        lines = [
            RateLimited("slow down", retry_after=0),
            truncated("one two"),
            truncated("three four", error=ModelConnectionError("gone")),
            truncated("five six", error=ModelUnavailable("overloaded")),
            "seven",
        ]
        async with self.asked(*lines, num_retries=4) as (model, _):
            deltas, reply = await read(model, CallContext(on_retry=report))
        assert [type(report.error) for report in reports] == [
            RateLimited,
            ModelConnectionError,
            ModelConnectionError,
            ModelUnavailable,
        ]
        assert [report.attempt for report in reports] == [1, 2, 3, 4]
        said = ["reset" if isinstance(delta, ResetDelta) else delta for delta in deltas]
        words = [TextDelta(text=word) for word in ("one", "three", "five", "seven")]
        assert said == [words[0], "reset", words[1], "reset", words[2], "reset", words[3]]
        assert reply.message.text == "seven"

    async def test_a_reply_that_does_not_begin_is_given_up(self) -> None:
        async with self.asked(hang, repeat=True, timeout=0.2) as (model, provider):
            with pytest.raises(ModelTimeout, match=r"no reply within 0\.2 s.*LLM\(timeout="):
                await model.complete(ASK)
            with pytest.raises(ModelTimeout, match=r"no reply began within 0\.2 s.*LLM\(timeout="):
                await read(model)
            await provider.idle()

    async def test_a_reply_that_falls_silent_is_given_up(self) -> None:
        gate = Gate()
        async with self.asked(gate.hold(say("one two"), after=1), stream_idle_timeout=0.2) as (model, provider):
            with pytest.raises(ModelTimeout, match=r"nothing more came within 0\.2 s.*LLM\(stream_idle_timeout="):
                await read(model)
            await gate.left()
            await provider.idle()

    async def test_an_unknown_price_is_said_to_be_unknown(self) -> None:
        line = say("Hi.", usage=USED)
        async with self.asked(line, line, model="openai/a-model-nobody-sells") as (model, _):
            unknown = (await model.complete(ASK)).usage
            own = model.model_copy(update={"input_cost_per_token": "0.01", "output_cost_per_token": "0.1"})
            known = (await own.complete(ASK)).usage
        assert (unknown.cost, unknown.unpriced_requests) == (None, 1)
        assert (known.cost, known.unpriced_requests) == (Decimal("1.9"), 0)

    async def test_leaving_a_stream_closes_its_connection(self) -> None:
        gate = Gate()
        async with self.asked(gate.hold(say("one two"), after=1)) as (model, provider):
            async with model.stream(ASK) as deltas:
                assert await anext(deltas) == TextDelta(text="one")
                assert provider.connections == 1
            await gate.left()
            await provider.idle()

    async def test_connections_are_closed_with_the_event_loop_that_opened_them(self) -> None:
        async def ask() -> None:
            model = self.model_at(provider.base_url)
            await model.complete(ASK)
            await read(model)
            assert provider.connections >= 1

        with anyio.fail_after(60):
            async with serve_provider(["one", "two"], api_key=KEY) as provider:
                await anyio.to_thread.run_sync(anyio.run, ask)
                await provider.idle()

    async def test_the_responses_interface_is_spoken_streamed_and_not(self) -> None:
        words: dict[str, Any] = {"type": "output_text", "text": "Looking.", "annotations": []}
        call = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "read", "arguments": "{}"}
        output: list[Any] = [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [words]},
            {**call, "status": "completed"},
        ]
        used = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 40}, "output_tokens": 9}
        used |= {"output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 109}
        response: dict[str, Any] = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed"}
        response |= {"model": "gpt-5-mini", "output": output, "usage": used}
        response |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        where = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
        events = sse(
            {"type": "response.created", "response": response | {"status": "in_progress", "output": [], "usage": None}},
            {"type": "response.output_text.delta", "delta": "Look", "sequence_number": 1, **where},
            {"type": "response.output_text.delta", "delta": "ing.", "sequence_number": 2, **where},
            {"type": "response.completed", "response": response},
        )
        cut_short = events[: events.index(b"event: response.completed")]
        async with canned(json.dumps(response).encode()) as server:
            model = self.model_at(f"{server.url}/v1", model="openai/gpt-5-mini", api_mode="responses")
            whole = await model.complete([Message.system("Be brief."), *ASK])
            sent = server.asked[0].json()
        async with canned(events, cut_short, content_type="text/event-stream") as server:
            model = model.model_copy(update={"base_url": f"{server.url}/v1"})
            deltas, streamed = await read(model)
            with pytest.raises(ModelConnectionError):
                await read(model)
        assert (sent["store"], sent["instructions"]) == (False, "Be brief.")
        assert sent["include"] == ["reasoning.encrypted_content"]
        assert deltas == [TextDelta(text="Look"), TextDelta(text="ing.")]
        # litellm counts the same in other words where it streams.
        untimed: dict[str, Any] = {"latency": None, "time_to_first_token": None, "reported_usage": {}}
        assert streamed.model_copy(update=untimed) == whole.model_copy(update=untimed)
        assert (whole.message.text, whole.message.tool_calls[0].id) == ("Looking.", "a")
        assert (whole.stop_reason, whole.model, whole.provider_id) == ("tool_calls", "openai/gpt-5-mini", "resp_1")
        # It is a name of OpenAI's, at a server of one's own.
        assert whole.usage == COUNTED.model_copy(update={"unpriced_requests": 1})

    async def test_halves_of_characters_arrive_as_whole_ones(self) -> None:
        body = chunk(b"half \\ud83d") + chunk(b"\\ude00, lone \\ud83d!") + chunk(b"", b'"stop"') + b"data: [DONE]\n\n"
        async with canned(body, content_type="text/event-stream") as server:
            _, reply = await read(self.model_at(f"{server.url}/v1"))
        assert reply.message.text == "half \U0001f600, lone \ufffd!"
        reply.model_dump_json()

    @pytest.mark.parametrize(
        ("body", "content_type", "status", "words"),
        [
            (b"data: [DONE]\n\n", "text/event-stream", 200, "broke off"),
            (chunk(b"one") + chunk(b"two"), "text/event-stream", 200, "broke off"),
            (chunk(b"bytes \xff\xfe"), "text/event-stream", 200, "."),
            (b"<html><body>Bad gateway</body></html>", "text/html", 200, "."),
            (b"<html><body>Bad gateway</body></html>", "text/html", 502, "."),
        ],
    )
    async def test_what_is_no_reply_is_an_error_that_may_pass_and_never_a_short_reply(
        self, body: bytes, content_type: str, status: int, words: str
    ) -> None:
        async with canned(body, body, content_type=content_type, status=status) as server:
            model = self.model_at(f"{server.url}/v1")
            with pytest.raises(ModelError, match=words) as streamed:
                await read(model)
            assert streamed.value.retryable
            if content_type == "text/html":
                with pytest.raises(ModelError) as whole:
                    await model.complete(ASK)
                assert whole.value.retryable

    async def test_a_reply_says_how_long_it_took(self) -> None:
        async with serve_provider([say("One two.")], repeat=True) as provider:
            model = LLM(model="some-model", base_url=provider.base_url, route=self.route)
            whole = await model.complete(ASK)
            _, streamed = await read(model)
        assert whole.latency is not None
        assert whole.time_to_first_token is None
        assert streamed.latency is not None
        assert streamed.time_to_first_token is not None
        assert 0 < streamed.time_to_first_token <= streamed.latency
