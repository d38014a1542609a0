"""Answers that middleware sends itself, to HTTP requests and WebSockets alike, and the path as the app sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.types import Message, Receive, Scope, Send

from agentcore.wire.problems import Problem

REQUEST_ID: Final = "agentcore.request_id"


def app_path(scope: Scope) -> str:
    """Return the path below the place where the app is mounted."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path[len(root) :] or "/" if root and path.startswith(root) else path


def request_id_of(scope: Scope) -> str | None:
    """Return the id of a request."""
    found: str | None = scope.get(REQUEST_ID)
    return found


async def send_problem(
    problem: Problem, headers: Mapping[str, str], scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer with a problem. A WebSocket is refused with it, or closed with 4000 + status where the server cannot."""
    body = problem.model_dump_json().encode()
    raw = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        *((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()),
    ]
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": problem.status, "headers": raw})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
    elif "websocket.http.response" in scope.get("extensions", {}):
        await send({"type": "websocket.http.response.start", "status": problem.status, "headers": raw})
        await send({"type": "websocket.http.response.body", "body": body})
    else:
        await receive()  # the connection's first message, without which some servers take no answer
        await send(close_message(problem))


def close_message(problem: Problem) -> Message:
    """Return the message that closes a WebSocket for a problem."""
    return {"type": "websocket.close", "code": 4000 + problem.status, "reason": problem.code[:120]}
