"""One request of a browser, passed on to the program inside; and the page that a ticket opens.

Above: the server of views. Below: a stream to the program. Each request has a connection of its own inside, so that no answer can be taken
for that to another request; a WebSocket is passed on as bytes.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Final

import anyio
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.stapled import StapledByteStream

from agentcore.workspace.tunnel import LOST, IdleScope, pump, tunnel
from agentcore_sandbox.network.http_body import pass_body
from agentcore_sandbox.network.http_head import HEAD_END, MAX_HEAD, STATUS_LINE, BadMessage, Headers, split_head
from agentcore_sandbox.network.port_headers import request_headers, response_headers
from agentcore_sandbox.views.gate import PageRequest
from agentcore_sandbox.views.policy import OWN_PAGE_POLICY, PAGE_HEADERS, first_page_link, format_page, page_policy

_SILENT_SECONDS: Final = 24 * 3600.0
"""A person may look away for long: what ends a connection is one of its ends, or the workspace."""
_MOST_INTERIM: Final = 8
_SWITCHING: Final = 101
_WEBSOCKET: Final = (b"sec-websocket-",)
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    421: "Misdirected Request",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
}


async def pass_request(
    client: ByteStream,
    reader: BufferedByteReceiveStream,
    request: PageRequest,
    inside: ByteStream,
    *,
    port: int,
    authority: str,
) -> None:
    """Pass on a request and its answer, to the end of both; cancel it if the browser leaves.

    Args:
        client: The browser.
        reader: What of it is not read yet.
        request: Its head.
        inside: The program.
        port: The port inside.
        authority: The host and port at which the browser asks.

    Raises:
        BadMessage: One of the two does not speak HTTP. Nothing was answered.
    """
    answered = BufferedByteReceiveStream(inside)
    async with anyio.create_task_group() as tasks:

        async def send_on() -> None:
            await inside.send(_format_request(request, port))
            await pass_body(reader, request.length, inside.send)
            if not request.is_websocket:
                await _read_to_end(reader)
                tasks.cancel_scope.cancel("the browser has left")

        tasks.start_soon(send_on)
        status, head = await _read_answer(answered, port, authority, is_websocket=request.is_websocket)
        await client.send(head)
        if status == _SWITCHING:
            # The browser sends nothing of its own until it has this answer.
            await tunnel(
                StapledByteStream(client, reader), StapledByteStream(inside, answered), IdleScope(_SILENT_SECONDS)
            )
        else:
            await pump(answered, client, IdleScope(_SILENT_SECONDS))
            await client.send_eof()
        tasks.cancel_scope.cancel("the answer has ended")


async def _read_to_end(reader: BufferedByteReceiveStream) -> None:
    try:
        while True:
            await reader.receive()
    except (anyio.EndOfStream, *LOST):
        return


def _format_request(request: PageRequest, port: int) -> bytes:
    headers = request_headers(request.headers, port)
    if request.is_websocket:
        headers += _websocket_headers(request.headers)
    else:
        headers.append((b"Connection", b"close"))
    return _format_head(b"%b %b HTTP/1.1" % (request.method, request.target), headers)


async def _read_answer(
    reader: BufferedByteReceiveStream, port: int, authority: str, *, is_websocket: bool
) -> tuple[int, bytes]:
    for _ in range(_MOST_INTERIM):
        try:
            first, headers = split_head(await reader.receive_until(HEAD_END, MAX_HEAD))
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.DelimiterNotFound, *LOST) as error:
            raise BadMessage("The program does not answer.") from error
        matched = STATUS_LINE.fullmatch(first)
        if matched is None:
            raise BadMessage("The program does not speak HTTP.")
        status = int(matched[1])
        if status == _SWITCHING:
            if not is_websocket:
                raise BadMessage("The program changes to another protocol, which the request did not ask for.")
            return status, _format_head(first, _websocket_headers(headers))
        if status >= 200:
            passed = response_headers(headers, port, "", page_policy(f"ws://{authority}"))
            return status, _format_head(first, [*passed, (b"Connection", b"close"), *PAGE_HEADERS])
    raise BadMessage("The program does not come to its answer.")


def _websocket_headers(headers: Headers) -> list[tuple[bytes, bytes]]:
    kept = [(name, value) for name, value in headers if name.lower().startswith(_WEBSOCKET)]
    return [*kept, (b"Connection", b"Upgrade"), (b"Upgrade", b"websocket")]


def _format_head(first: bytes, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    return b"\r\n".join([first, *(name + b": " + value for name, value in headers)]) + HEAD_END


async def send_text(client: ByteStream, status: int, text: str) -> None:
    """Answer with a sentence for a person."""
    await _send_page(client, status, f"<p>{html.escape(text)}</p>")


async def send_to_first_page(client: ByteStream, path: str, cookie: str | None) -> None:
    """Answer with a page that goes on to the view, and sets a cookie first."""
    await _send_page(client, 200, first_page_link(path), cookie)


async def _send_page(client: ByteStream, status: int, body: str, cookie: str | None = None) -> None:
    page = format_page(body)
    headers = [
        (b"Content-Type", b"text/html; charset=utf-8"),
        (b"Content-Length", b"%d" % len(page)),
        (b"Content-Security-Policy", OWN_PAGE_POLICY),
        (b"Cache-Control", b"no-store"),
        (b"Referrer-Policy", b"no-referrer"),
        (b"X-Content-Type-Options", b"nosniff"),
        (b"Connection", b"close"),
    ]
    if cookie is not None:
        headers.append((b"Set-Cookie", cookie.encode()))
    await client.send(_format_head(b"HTTP/1.1 %d %b" % (status, _REASONS[status].encode()), headers) + page)
