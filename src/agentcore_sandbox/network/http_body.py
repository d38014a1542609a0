"""The body of a request, passed on to exactly its end, so that a second request cannot hide behind it.

Above: the proxy. A body in chunks is taken apart and put together again: its extensions and trailers are left out.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from agentcore_sandbox.network.http_head import BadMessage

_PIECE: Final = 65536
_SIZE_LINE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(;[^\x00-\x08\x0a-\x1f\x7f]*)?")
_MAX_LINE: Final = 1024
_MAX_TRAILERS: Final = 64

Send = Callable[[bytes], Awaitable[None]]


async def pass_body(reader: BufferedByteReceiveStream, length: int | None, send: Send) -> None:
    """Read a body of so many bytes, or one in chunks (None), and pass it on.

    Raises:
        BadMessage: It is not a body in chunks, or ends too early.
    """
    try:
        if length is not None:
            await _pass_bytes(reader, length, send)
        else:
            await _pass_chunks(reader, send)
    except (anyio.EndOfStream, anyio.IncompleteRead):
        raise BadMessage("The body ends too early.") from None
    except anyio.DelimiterNotFound:
        raise BadMessage("A line between chunks is too long.") from None


async def _pass_chunks(reader: BufferedByteReceiveStream, send: Send) -> None:
    while size := await _read_size(reader):
        await send(b"%x\r\n" % size)
        await _pass_bytes(reader, size, send)
        if await reader.receive_exactly(2) != b"\r\n":
            raise BadMessage("A chunk is longer than its size.")
        await send(b"\r\n")
    for _ in range(_MAX_TRAILERS):
        if not await reader.receive_until(b"\r\n", _MAX_LINE):
            await send(b"0\r\n\r\n")
            return
    raise BadMessage("There are too many trailers.")


async def _pass_bytes(reader: BufferedByteReceiveStream, count: int, send: Send) -> None:
    while count:
        piece = await reader.receive(min(count, _PIECE))
        count -= len(piece)
        await send(piece)


async def _read_size(reader: BufferedByteReceiveStream) -> int:
    match = _SIZE_LINE.fullmatch(await reader.receive_until(b"\r\n", _MAX_LINE))
    if match is None:
        raise BadMessage("The size of a chunk is not a number.")
    return int(match[1], 16)
