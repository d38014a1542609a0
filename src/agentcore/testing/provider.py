"""A provider of models on the loopback that plays a script, for tests and demos of everything between here and the wire.

It speaks Chat Completions, streamed and not, to any client. Errors of the script become what a provider would send:

    RateLimited("slow down", retry_after=2)   429 with Retry-After
    AuthenticationError("no")                 401, and so on; `status=` of the error, where it is given, wins
    ModelConnectionError("gone")              the connection is reset
    broken_off("half a reply")                the stream ends like a sound one, without its last word
    broken_off(..., error=ModelConnectionError("gone"))    the connection is reset in the middle
    broken_off(..., error=ModelUnavailable("overloaded"))  the stream says so in the middle
    hang                                      nothing comes, ever
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from pydantic import JsonValue

from agentcore.errors import (
    AuthenticationError,
    BadRequest,
    ContentPolicy,
    ContextWindowExceeded,
    MalformedHistory,
    MissingExtra,
    ModelConnectionError,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    RateLimited,
    ScriptExhausted,
)
from agentcore.testing.chat_wire import read_request, write_chunk, write_reply, write_usage
from agentcore.testing.script import Performance, Request, Script, ScriptLine

if TYPE_CHECKING:
    from agentcore.testing.http import HTTPRequest, HTTPServer, Responder

__all__ = ["ChatProvider", "serve_provider"]

_AS_SENT: dict[type[ModelError], tuple[int, str]] = {
    AuthenticationError: (401, "invalid_api_key"),
    RateLimited: (429, "rate_limit_exceeded"),
    ContextWindowExceeded: (400, "context_length_exceeded"),
    ContentPolicy: (400, "content_policy_violation"),
    BadRequest: (400, "invalid_request_error"),
    MalformedHistory: (400, "invalid_request_error"),
    ModelTimeout: (504, "timeout"),
    ModelUnavailable: (503, "overloaded"),
    # A mistake of the test, not of the network: no client should try it again.
    ScriptExhausted: (400, "script_exhausted"),
}


class ChatProvider:
    """A provider that is listening. Made by `serve_provider`."""

    def __init__(self, server: HTTPServer) -> None:
        self.base_url = f"{server.url}/v1"
        """What a client is told to talk to."""
        self.requests: list[HTTPRequest] = []
        """The chat requests that came in, in order."""
        self._server = server

    @property
    def connections(self) -> int:
        """Connections open now."""
        return self._server.connections

    async def idle(self) -> None:
        """Wait until no connection is open."""
        await self._server.idle()


@asynccontextmanager
async def serve_provider(
    replies: Iterable[ScriptLine] | Callable[[Request], ScriptLine],
    *,
    api_key: str | None = None,
    models: Iterable[str] = ("scripted",),
    repeat: bool = False,
) -> AsyncGenerator[ChatProvider]:
    """Serve a script over HTTP while the context is open.

    Args:
        replies: See `agentcore.testing.script`.
        api_key: The key that clients must send; None to take any.
        models: What `GET /v1/models` lists. A request may name any model.
        repeat: Whether the script starts over after its last line.

    Raises:
        MissingExtra: h11 is not installed.
    """
    script = Script(replies, name="scripted", repeat=repeat)
    listed: list[JsonValue] = [
        {"id": name, "object": "model", "created": 0, "owned_by": "agentcore"} for name in models
    ]

    async def answer(request: HTTPRequest, responder: Responder) -> None:
        if api_key is not None and request.headers.get("authorization") != f"Bearer {api_key}":
            await _send_error(responder, AuthenticationError("Incorrect API key provided."))
        elif (request.method, request.path) == ("GET", "/v1/models"):
            await responder.send_json(200, {"object": "list", "data": listed})
        elif (request.method, request.path) == ("POST", "/v1/chat/completions"):
            provider.requests.append(request)
            await _answer(script, request, responder)
        else:
            await _send_error(responder, BadRequest(f"There is no {request.method} {request.path}.", status=404))

    async with _serve_http()(answer) as server:
        provider = ChatProvider(server)
        yield provider


def _serve_http() -> Callable[..., AbstractAsyncContextManager[HTTPServer]]:
    # Not at the top: the scripted model, of which this folder's index tells too, is of use where h11 is not installed.
    try:
        module = import_module("agentcore.testing.http")
    except ImportError:
        raise MissingExtra("A provider served over HTTP", "test") from None
    return cast("Callable[..., AbstractAsyncContextManager[HTTPServer]]", module.serve_http)


async def _answer(script: Script, request: HTTPRequest, responder: Responder) -> None:
    body: dict[str, Any] = request.json()
    performance: Performance | None = None
    try:
        performance = await script.next(lambda: read_request(body))
        performance.reply = performance.reply.model_copy(update={"model": body["model"]})
        usage = write_usage(performance.reply.usage, len(request.content))
        if body.get("stream"):
            options: dict[str, Any] = body.get("stream_options") or {}
            await _stream(performance, responder, usage if options.get("include_usage") else None)
        else:
            while await performance.next() is not None:
                pass
            await responder.send_json(200, write_reply(performance.reply, usage))
    except ModelConnectionError:
        if performance is not None and performance.said.just_ends and responder.started:
            await responder.end()
        else:
            await responder.abort()
    except Exception as error:  # what a script raises is what its client is to see
        await _send_error(responder, error)


async def _stream(performance: Performance, responder: Responder, usage: dict[str, JsonValue] | None) -> None:
    await responder.start(200, {"Content-Type": "text/event-stream"})
    while (delta := await performance.next()) is not None:
        await _event(responder, write_chunk(performance.reply, delta))
    last = write_chunk(performance.reply, None)
    await _event(responder, last)
    if usage is not None:
        await _event(responder, {**last, "choices": [], "usage": usage})
    await responder.write(b"data: [DONE]\n\n")
    await responder.end()


async def _event(responder: Responder, data: dict[str, JsonValue]) -> None:
    await responder.write(f"data: {json.dumps(data)}\n\n".encode())


async def _send_error(responder: Responder, error: Exception) -> None:
    status, code = _AS_SENT.get(type(error), (500, "server_error")) if isinstance(error, ModelError) else (500, "bug")
    headers: dict[str, str] = {}
    if isinstance(error, ModelError):
        status = error.status or status
        if error.retry_after is not None:
            headers["Retry-After"] = f"{math.ceil(error.retry_after)}"
    body: dict[str, JsonValue] = {"message": str(error) or repr(error), "type": code, "code": code, "param": None}
    if responder.started:
        await _event(responder, {"error": body})
        await responder.end()
    else:
        await responder.send_json(status, {"error": body}, headers)
