"""Short answers of providers, and the reply that each has to give: written by hand, from the interfaces' references.

The answers are in `chat_exchanges`, `responses_exchanges` and `anthropic_exchanges`; `gemini_exchanges` has a form of its own.
An answer is written as it comes at once; its stream is made from it, unless the exchange has one.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import anyio

from agentcore.llm import LLM, Delta
from agentcore.messages import Block
from agentcore.testing.http import HTTPRequest, Responder, serve_http
from model_route import KEY

__all__ = ["Exchange", "Json", "Provider", "halves", "serve_exchange", "stream_of"]

Json = dict[str, Any]


@dataclass(frozen=True)
class Exchange:
    """An answer and its reply."""

    name: str
    model: str
    body: Json
    blocks: tuple[Block, ...]
    stop: str = "end"
    usage: tuple[int, int, int, int, int] = (10, 4, 0, 0, 0)
    """Tokens read and written, read from and written to the cache, thought."""
    sent: list[Json] | None = None
    """The model's part of the next request; None where it is not compared."""
    cited: list[tuple[str, str | None]] = field(default_factory=list[tuple[str, "str | None"]])
    """Words and the address of the source."""
    deltas: list[Delta] | None = None
    """The deltas of the stream; None where they are not compared."""
    events: list[Json] | None = None
    """The stream; None where it is made from the body."""
    settings: Json = field(default_factory=Json)
    fields: Json = field(default_factory=Json)
    """Other fields of the reply, by name."""
    cost: Decimal | None = None
    asked: Json = field(default_factory=Json)
    """Fields that the request has to have."""

    @property
    def wire(self) -> str:
        """The interface."""
        return "anthropic" if self.model.startswith("anthropic/") else self.settings.get("api_mode", "chat")


def halves(text: str) -> Iterator[str]:
    """Cut a text in two."""
    yield text[: len(text) // 2]
    yield text[len(text) // 2 :]


def stream_of(exchange: Exchange) -> list[Json]:
    """Return the events of an exchange's stream."""
    if exchange.events is not None:
        return exchange.events
    build = {"chat": _chat_events, "responses": _responses_events, "anthropic": _anthropic_events}[exchange.wire]
    return list(build(exchange.body))


def _chat_events(body: Json) -> Iterator[Json]:
    choice: Json = body["choices"][0]
    message: Json = choice["message"]
    head = {name: value for name, value in body.items() if name not in {"choices", "usage"}}
    pieces: list[Json] = [{name: value} for name, value in message.items() if name not in {"content", "tool_calls"}]
    content = message.get("content")
    pieces += [{"content": half} for half in halves(content)] if isinstance(content, str) else [{"content": content}]
    for index, call in enumerate(message.get("tool_calls", ())):
        arguments = call["function"]["arguments"]
        first, second = halves(arguments) if isinstance(arguments, str) else (arguments, "")
        pieces.append({"tool_calls": [{**call, "index": index, "function": {**call["function"], "arguments": first}}]})
        pieces.append({"tool_calls": [{"index": index, "function": {"arguments": second}}]})
    for piece in pieces:
        yield {**head, "choices": [{"index": 0, "delta": piece}]}
    last = {name: value for name, value in choice.items() if name != "message"}
    yield {**body, "choices": [{**last, "delta": {}}]}


def _responses_events(body: Json) -> Iterator[Json]:
    for at, item in enumerate(body["output"]):
        yield {"type": "response.output_item.added", "output_index": at, "item": {**item, "arguments": ""}}
        for half in halves(item.get("arguments", "")):
            yield {"type": "response.function_call_arguments.delta", "output_index": at, "delta": half}
        for number, part in enumerate(item.get("summary", ())):
            yield {"type": "response.reasoning_summary_part.added", "summary_index": number}
            yield {"type": "response.reasoning_summary_text.delta", "delta": part["text"]}
        for part in item.get("content", ()):
            kind = "refusal" if "refusal" in part else part["type"]
            for half in halves(part.get(kind.removeprefix("output_").removeprefix("reasoning_"), "")):
                yield {"type": f"response.{kind}.delta", "delta": half}
        yield {"type": "response.output_item.done", "output_index": at, "item": item}
    yield {"type": "response.incomplete" if "incomplete_details" in body else "response.completed", "response": body}


def _anthropic_events(body: Json) -> Iterator[Json]:
    yield {"type": "message_start", "message": {**body, "content": [], "stop_reason": None}}
    for at, block in enumerate(body["content"]):
        empty = dict(block)
        pieces: list[Json] = []
        for name in ("text", "thinking"):
            if name in block:
                empty[name] = ""
                pieces += [{"type": f"{name}_delta", name: half} for half in halves(block[name])]
        if "signature" in block:
            empty["signature"] = ""
            pieces.append({"type": "signature_delta", "signature": block["signature"]})
        for citation in block.get("citations") or ():
            empty["citations"] = []
            pieces.append({"type": "citations_delta", "citation": citation})
        if "input" in block:
            empty["input"] = {}
            pieces += [
                {"type": "input_json_delta", "partial_json": half} for half in halves(json.dumps(block["input"]))
            ]
        yield {"type": "content_block_start", "index": at, "content_block": empty}
        yield {"type": "ping"}
        for piece in pieces:
            yield {"type": "content_block_delta", "index": at, "delta": piece}
        yield {"type": "content_block_stop", "index": at}
    last = {name: body[name] for name in ("stop_reason", "stop_details", "container") if name in body}
    yield {"type": "message_delta", "delta": last, "usage": body["usage"]}
    yield {"type": "message_stop"}


class Provider:
    """A server that answers each request with one exchange's answer."""

    def __init__(self, exchange: Exchange, url: str) -> None:
        self.exchange = exchange
        self.url = url
        self.asked: list[Json] = []

    def model(self, **settings: Any) -> LLM:
        given: Json = {"model": self.exchange.model, "base_url": f"{self.url}/v1", "api_key": KEY, "num_retries": 0}
        return LLM.model_validate(given | {"api_mode": "chat"} | self.exchange.settings | settings)

    @property
    def sent(self) -> list[Json]:
        """The part of the last request that is the model's own."""
        body = self.asked[-1]
        if self.exchange.wire == "responses":
            return body["input"][1:-1]
        said = [message for message in body["messages"] if message["role"] == "assistant"]
        return said if self.exchange.wire == "chat" else [block for turn in said for block in turn["content"]]


@asynccontextmanager
async def serve_exchange(exchange: Exchange, *, piece: int = 4096, streams: bool = True) -> AsyncGenerator[Provider]:
    """Serve an answer while the context is open, streams in pieces of so many bytes, or never as a stream."""

    async def answer(request: HTTPRequest, responder: Responder) -> None:
        provider.asked.append(request.json())
        if not (streams and provider.asked[-1].get("stream")):
            await responder.send_json(200, exchange.body)
            return
        await responder.start(200, {"Content-Type": "text/event-stream"})
        data = "".join(f"data: {json.dumps(event)}\n\n" for event in stream_of(exchange)).encode()
        for start in range(0, len(data), piece):
            await responder.write(data[start : start + piece])
        await responder.end()

    with anyio.fail_after(60):
        async with serve_http(answer) as server:
            provider = Provider(exchange, server.url)
            yield provider
