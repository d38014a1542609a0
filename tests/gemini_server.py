"""A server that answers as Google's generateContent interface does, with events that a test gives."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio

from agentcore.llm import LLM, Delta, Reply
from agentcore.messages import Message
from agentcore.testing.http import HTTPRequest, Responder, serve_http
from model_route import ASK, KEY

__all__ = ["SAID", "Google", "Json", "google", "read"]

Json = dict[str, Any]

SAID: Json = {"candidates": [{"content": {"parts": [{"text": "Hi."}]}, "finishReason": "STOP"}]}


class Google:
    """A server that answers each request with the next answer: events as a stream, or the only one at once."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[HTTPRequest] = []

    def model(self, name: str = "gemini-2.5-flash", **settings: Any) -> LLM:
        given = {"model": f"gemini/{name}", "base_url": self.url, "api_key": KEY, "num_retries": 0}
        return LLM.model_validate(given | settings)

    @property
    def sent(self) -> Json:
        """The body of the last request."""
        return self.asked[-1].json()


@asynccontextmanager
async def google(*answers: Sequence[Json], piece: int = 4096, status: int = 200) -> AsyncGenerator[Google]:
    left = list(answers)

    async def answer(request: HTTPRequest, responder: Responder) -> None:
        server.asked.append(request)
        events = left.pop(0) if len(left) > 1 else left[0]
        if "streamGenerateContent" not in request.path or status != 200:
            (event,) = events
            await responder.send_json(status, event)
            return
        await responder.start(200, {"Content-Type": "text/event-stream"})
        data = "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events).encode()
        for start in range(0, len(data), piece):
            await responder.write(data[start : start + piece])
        await responder.end()

    with anyio.fail_after(60):
        async with serve_http(answer) as listening:
            server = Google(listening.url)
            yield server


async def read(model: LLM, messages: Sequence[Message] = ASK) -> tuple[list[Delta], Reply]:
    async with model.stream(messages) as stream:
        deltas = [delta async for delta in stream]
    return deltas, stream.reply
