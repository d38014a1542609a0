"""A provider that answers every request with the same bytes, in a process of its own, so that its CPU counts for nobody.

It plays an agent's turn: as long as a request holds fewer answers of tools than were asked for, it calls a tool.
"""

from __future__ import annotations

import asyncio  # noqa: TID251 - the cheapest server that there is: a protocol, without streams
import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from subprocess import PIPE, Popen
from typing import Any

__all__ = ["CALLED", "SAID", "provider"]

_USAGE: dict[str, Any] = {"prompt_tokens": 1200, "completion_tokens": 60, "total_tokens": 1260}
_CALL: dict[str, Any] = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "read_part", "arguments": '{"path": "src/prices/rounding.py", "first": 1, "last": 15}'},
}
CALLED: dict[str, Any] = {"role": "assistant", "content": "I read its next part.", "tool_calls": [_CALL]}
SAID: dict[str, Any] = {"role": "assistant", "content": "It is done, and the tests pass."}


def _whole(message: dict[str, Any]) -> bytes:
    reason = "tool_calls" if "tool_calls" in message else "stop"
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": reason}
    body: dict[str, Any] = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": _USAGE,
    }
    return _http(json.dumps(body).encode(), "application/json")


def _streamed(message: dict[str, Any]) -> bytes:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": f"{word} "} for word in str(message["content"]).split()]
    reason = "stop"
    if "tool_calls" in message:
        reason = "tool_calls"
        function = _CALL["function"]
        deltas.append({"tool_calls": [{**_CALL, "index": 0, "function": {**function, "arguments": ""}}]})
        arguments = '{"path": "src/prices/rounding.py", "first": 1, "last": 15}'
        pieces = [arguments[at : at + 8] for at in range(0, len(arguments), 8)]
        deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces]
    head: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    events: list[dict[str, Any]] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    events.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    events.append({**head, "choices": [], "usage": _USAGE})
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    return _http(body.encode(), "text/event-stream")


_GEMINI_USAGE = {"promptTokenCount": 1200, "candidatesTokenCount": 60, "totalTokenCount": 1260}


def _gemini(message: dict[str, Any], *, streamed: bool) -> bytes:
    """Say the same as Google's own interface does, a signature on the call."""
    words = [f"{word} " for word in str(message["content"]).split()]
    parts: list[dict[str, Any]] = [{"text": word} for word in words] if streamed else [{"text": "".join(words)}]
    if "tool_calls" in message:
        function = _CALL["function"]
        call = {"name": function["name"], "args": json.loads(function["arguments"]), "id": _CALL["id"]}
        parts.append({"functionCall": call, "thoughtSignature": "c2lnbmVk" * 40})
    pieces = [[part] for part in parts] if streamed else [parts]
    events: list[dict[str, Any]] = [
        {"candidates": [{"content": {"parts": piece, "role": "model"}, "index": 0}], "usageMetadata": _GEMINI_USAGE}
        for piece in pieces
    ]
    events[-1]["candidates"][0]["finishReason"] = "STOP"
    if not streamed:
        return _http(json.dumps(events[0]).encode(), "application/json")
    return _http("".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events).encode(), "text/event-stream")


def _http(body: bytes, kind: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


class _Connection(asyncio.Protocol):
    def __init__(self, latency: float, turns: int) -> None:
        self._latency = latency
        self._turns = turns
        self._read = bytearray()
        self._transport: asyncio.Transport | None = None
        self._answers = {
            (streamed, called): (_streamed if streamed else _whole)(CALLED if called else SAID)
            for streamed in (True, False)
            for called in (True, False)
        }
        self._gemini = {
            (streamed, called): _gemini(CALLED if called else SAID, streamed=streamed)
            for streamed in (True, False)
            for called in (True, False)
        }

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._read += data
        head_end = self._read.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = bytes(self._read[:head_end]).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        if len(self._read) < head_end + 4 + length:
            return
        body = bytes(self._read[head_end + 4 : head_end + 4 + length])
        del self._read[: head_end + 4 + length]
        if b"generatecontent" in head:
            answered = body.count(b'"functionResponse"') + body.count(b'"function_response"')
            answer = self._gemini[b":streamgeneratecontent" in head, answered < self._turns]
        else:
            answered = body.count(b'"role":"tool"') + body.count(b'"role": "tool"')
            streamed = b'"stream":true' in body or b'"stream": true' in body
            answer = self._answers[streamed, answered < self._turns]
        if self._latency:
            asyncio.get_running_loop().call_later(self._latency, self._answer, answer)
        else:
            self._answer(answer)

    def _answer(self, answer: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(answer)


async def _serve(latency: float, turns: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(latency, turns), "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)  # until whoever started it goes away
    server.close()


@contextmanager
def provider(*, latency: float = 0.0, turns: int = 0) -> Generator[str]:
    """Serve while the context is open; give the address for `base_url`."""
    command = [sys.executable, __file__, str(latency), str(turns)]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        finally:
            server.stdin.close()
            server.wait(timeout=10)


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1]), int(sys.argv[2])))
