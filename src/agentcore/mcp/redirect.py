"""The end of a login in a browser: it is sent to an address of this machine, where one request is waited for and answered.

Above: `login.py`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import escape
from secrets import compare_digest
from typing import Final, final
from urllib.parse import parse_qs, urlsplit

import anyio
from anyio.abc import SocketAttribute, SocketStream

_PATH: Final = "/callback"
_MOST_BYTES: Final = 16_384
_REQUEST_SECONDS: Final = 10.0


@dataclass(frozen=True)
class RedirectAnswer:
    """The answer that the browser brought."""

    code: str = ""
    state: str | None = None
    issuer: str | None = None
    error: str | None = None
    """Why there is no code, in words that follow a colon."""


@final
class RedirectListener:
    """Waits for the browser. Made by `listen_for_redirect`."""

    def __init__(self, port: int) -> None:
        """Take the port that is listened on."""
        self.url = f"http://127.0.0.1:{port}{_PATH}"
        """Where the browser is to be sent."""
        self._state: str | None = None
        self._answer: RedirectAnswer | None = None
        self._answered = anyio.Event()

    def expect(self, state: str) -> None:
        """Begin to wait for the end of the login with this state."""
        self._state = state

    async def wait(self) -> RedirectAnswer:
        """Wait for the browser, and return what it brought."""
        await self._answered.wait()
        assert self._answer is not None
        return self._answer

    async def serve(self, stream: SocketStream) -> None:
        """Answer a connection."""
        async with stream:
            try:
                with anyio.move_on_after(_REQUEST_SECONDS):
                    if (target := await _read_target(stream)) is not None:
                        await self._respond(stream, target)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
                pass  # a browser opens connections that it does not use

    async def _respond(self, stream: SocketStream, target: str) -> None:
        parts = urlsplit(target)
        if parts.path != _PATH or self._state is None or self._answer is not None:
            await stream.send(_page(404, "Nothing is here."))
            return
        answer = self._answer = _read_answer(parts.query, self._state)
        try:
            if answer.error is None:
                await stream.send(_page(200, "Done. Close this page, and go back to the terminal."))
            else:
                await stream.send(_page(400, f"There was no login: {answer.error}."))
        finally:
            self._answered.set()


@asynccontextmanager
async def listen_for_redirect(port: int = 0) -> AsyncGenerator[RedirectListener]:
    """Listen on a port of this machine, or on one that is free.

    Raises:
        OSError: The port is taken.
    """
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port) as listener:
        redirect = RedirectListener(listener.extra(SocketAttribute.local_port))  # noqa: S610 - of anyio
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, redirect.serve)  # noqa: ASYNC113 it listens since it was made
            yield redirect
            tasks.cancel_scope.cancel()


async def _read_target(stream: SocketStream) -> str | None:
    head = b""
    while b"\r\n\r\n" not in head:
        if len(head) > _MOST_BYTES:
            return None
        head += await stream.receive()
    words = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
    return words[1] if len(words) == 3 and words[0] == "GET" else None


def _read_answer(query: str, expected: str) -> RedirectAnswer:
    values = {name: each[0] for name, each in parse_qs(query).items()}
    state = values.get("state", "")
    if not compare_digest(state.encode(), expected.encode()):
        return RedirectAnswer(error="the answer is not one to this login (its state is another)")
    if "error" in values:
        why = values.get("error_description", "")
        return RedirectAnswer(
            error=f"it was refused ({values['error'][:100]}{f': {why[:300]}' if why else ''})", state=state
        )
    if not values.get("code"):
        return RedirectAnswer(error="the answer has no code", state=state)
    return RedirectAnswer(code=values["code"], state=state, issuer=values.get("iss"))


def _page(status: int, text: str) -> bytes:
    content = (
        '<!doctype html><meta charset="utf-8"><title>agentcore</title>'
        f'<body style="font: 1.2em sans-serif; margin: 4em auto; max-width: 30em"><p>{escape(text)}</p>'
    ).encode()
    reason = {200: "OK", 400: "Bad Request", 404: "Not Found"}[status]
    head = (
        f"HTTP/1.1 {status} {reason}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(content)}\r\n"
        "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\nCache-Control: no-store\r\n"
        "Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + content
