"""A provider of models on the loopback that plays a script, for tests and demos of everything between here and the wire.

It speaks Chat Completions, streamed and not, to any client. Errors of the script become what a provider would send:

    RateLimited("slow down", retry_after=2)   429 with Retry-After
    AuthenticationError("no")                 401, and so on; `status=` of the error, where it is given, wins
    ModelConnectionError("gone")              the connection is reset
    truncated("half a reply")                the stream ends like a sound one, without its last word
    truncated(..., error=ModelConnectionError("gone"))    the connection is reset in the middle
    truncated(..., error=ModelUnavailable("overloaded"))  the stream says so in the middle
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
from agentcore.llm import Delta, ReasoningDelta, Reply, TextDelta, ToolCallDelta
from agentcore.messages import (
    Block,
    DocumentBlock,
    ImageBlock,
    Message,
    ResultBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSchema,
)
from agentcore.testing.script import Playback, Request, Script, ScriptLine, arguments_text
from agentcore.usage import Usage

if TYPE_CHECKING:
    from agentcore.testing.http import HTTPRequest, HTTPServer, Responder

_FINISH_REASONS = {"end": "stop", "pause": "stop", "stop_sequence": "stop"}


def read_request(body: dict[str, Any]) -> Request:
    """Read what the client asks."""
    messages: list[Message] = []
    names: dict[str, str] = {}  # of the calls so far, by id: a result names only the id
    for sent in body["messages"]:
        message = _read_message(sent, names)
        names |= {call.id: call.name for call in message.tool_calls}
        messages.append(message)
    return Request(tuple(messages), tuple(_read_tool(tool["function"]) for tool in body.get("tools") or ()))


def _read_tool(function: dict[str, Any]) -> ToolSchema:
    return ToolSchema(
        name=function["name"], description=function.get("description", ""), parameters=function.get("parameters", {})
    )


def _read_message(sent: dict[str, Any], names: dict[str, str]) -> Message:
    content = _read_content(sent.get("content"))
    if sent["role"] == "tool":
        call_id = sent["tool_call_id"]
        result = ToolResultBlock(call_id=call_id, name=names.get(call_id) or sent.get("name") or "", content=content)
        return Message(role="tool", content=(result,))
    thinking = sent.get("reasoning_content")
    calls = [
        ToolCallBlock(
            id=call["id"], name=call["function"]["name"], arguments=_read_arguments(call["function"]["arguments"])
        )
        for call in sent.get("tool_calls") or ()
    ]
    blocks: tuple[Block, ...] = (*([ThinkingBlock(text=thinking)] if thinking else ()), *content, *calls)
    return Message(role="system" if sent["role"] == "developer" else sent["role"], content=blocks)


def _read_content(content: str | list[dict[str, Any]] | None) -> tuple[ResultBlock, ...]:
    if not content:
        return ()
    if isinstance(content, str):
        return (TextBlock(text=content),)
    return tuple(map(_read_part, content))


def _read_part(part: dict[str, Any]) -> ResultBlock:
    if part["type"] == "text":
        return TextBlock(text=part["text"])
    if part["type"] == "file":
        file = part["file"]
        return DocumentBlock.model_validate({"name": file.get("filename"), **_read_address(file["file_data"])})
    return ImageBlock.model_validate(_read_address(part["image_url"]["url"]))


def _read_address(url: str) -> dict[str, str]:
    if not url.startswith("data:"):
        return {"url": url}
    media_type, _, data = url.removeprefix("data:").partition(";base64,")
    return {"data": data, "media_type": media_type}


def _read_arguments(text: str) -> dict[str, JsonValue] | str:
    try:
        arguments = json.loads(text)
    except ValueError:
        return text
    return cast("dict[str, JsonValue]", arguments) if isinstance(arguments, dict) else text


def write_usage(usage: Usage, asked: int) -> dict[str, JsonValue]:
    """Write what a reply used; a script that says nothing of it is taken to mean a token for four bytes asked."""
    read = usage.input_tokens or (0 if usage.total_tokens else asked // 4)
    return {
        "prompt_tokens": read,
        "completion_tokens": usage.output_tokens,
        "total_tokens": read + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def write_reply(reply: Reply, usage: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Write a reply, whole."""
    scripted = reply.message
    thinking = "".join(block.text for block in scripted.content if isinstance(block, ThinkingBlock))
    message: dict[str, JsonValue] = {"role": "assistant", "content": scripted.text or None}
    if thinking:
        message["reasoning_content"] = thinking
    if scripted.tool_calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments_text(call)}}
            for call in scripted.tool_calls
        ]
    choice: JsonValue = {"index": 0, "message": message, "finish_reason": _finish_reason(reply)}
    return {**_envelope(reply, "chat.completion"), "choices": [choice], "usage": usage}


def write_chunk(reply: Reply, delta: Delta | None) -> dict[str, JsonValue]:
    """Write one piece of a reply; None for the last one, which says why it ended."""
    choice: dict[str, JsonValue] = {"index": 0, "delta": _write_delta(delta), "finish_reason": None}
    if delta is None:
        choice["finish_reason"] = _finish_reason(reply)
    return {**_envelope(reply, "chat.completion.chunk"), "choices": [choice]}


def _write_delta(delta: Delta | None) -> dict[str, JsonValue]:
    if isinstance(delta, TextDelta):
        return {"role": "assistant", "content": delta.text}
    if isinstance(delta, ReasoningDelta):
        return {"role": "assistant", "reasoning_content": delta.text}
    if isinstance(delta, ToolCallDelta):
        function: dict[str, JsonValue] = {"arguments": delta.arguments}
        call: dict[str, JsonValue] = {"index": delta.index, "function": function}
        if delta.name is not None:
            function["name"] = delta.name
            call |= {"id": delta.id, "type": "function"}
        return {"role": "assistant", "tool_calls": [call]}
    return {}


def _finish_reason(reply: Reply) -> str:
    return _FINISH_REASONS.get(reply.stop_reason, reply.stop_reason)


def _envelope(reply: Reply, what: str) -> dict[str, JsonValue]:
    return {"id": f"chatcmpl-{reply.provider_id}", "object": what, "created": 1_700_000_000, "model": reply.model}


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

    def __init__(self, server: HTTPServer, script: Script) -> None:
        self.base_url = f"{server.url}/v1"
        """The address for a client."""
        self.requests: list[HTTPRequest] = []
        """The chat requests that came in, in order."""
        self._server = server
        self._script = script
        self._scripts: dict[str, Script] = {}

    @property
    def connections(self) -> int:
        """Connections open now."""
        return self._server.connections

    async def idle(self) -> None:
        """Wait until no connection is open."""
        await self._server.idle()

    def add_script(
        self, replies: Iterable[ScriptLine] | Callable[[Request], ScriptLine], *, repeat: bool = False
    ) -> str:
        """Play another script besides, and return the name of the model that plays it.

        Args:
            replies: See `agentcore.testing.script`.
            repeat: Whether the script starts over after its last line.
        """
        name = f"scripted-{len(self._scripts) + 2}"
        self._scripts[name] = Script(replies, name=name, repeat=repeat)
        return name

    def script_of(self, model: object) -> Script:
        """Return the script of a model: one that was added, or the first one for any other name."""
        return self._scripts.get(model, self._script) if isinstance(model, str) else self._script


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
            await _answer(provider.script_of(request.json().get("model")), request, responder)
        else:
            await _send_error(responder, BadRequest(f"There is no {request.method} {request.path}.", status=404))

    async with _serve_http()(answer) as server:
        provider = ChatProvider(server, script)
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
    performance: Playback | None = None
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
        if performance is not None and performance.scripted.just_ends and responder.started:
            await responder.end()
        else:
            await responder.abort()
    except Exception as error:  # what a script raises is what its client is to see
        await _send_error(responder, error)


async def _stream(performance: Playback, responder: Responder, usage: dict[str, JsonValue] | None) -> None:
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
