"""`ExecStream`: the input and the output of a command in a container as one byte stream; its standard error apart."""

from __future__ import annotations

from typing import Any, Final, final

import aiohttp
import anyio
from anyio.abc import ByteStream
from anyio.lowlevel import checkpoint

_KEPT: Final = 2048
_STDERR: Final = 2
# What aiodocker raises when the engine is gone: its own, asyncio's, and assertions that the connection is there.
_BROKEN: Final = (aiohttp.ClientError, OSError, AssertionError, RuntimeError)


@final
class ExecStream(ByteStream):
    """A command's stream. One task may send and one may receive."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._unread = b""
        self._ended = False
        self._closed = False
        self._last_words = bytearray()

    @property
    def last_words(self) -> str:
        """The end of what it wrote to its standard error."""
        return self._last_words.decode(errors="replace")

    async def receive(self, max_bytes: int = 65536) -> bytes:
        if self._closed:
            raise anyio.ClosedResourceError
        if self._unread:
            await checkpoint()
        while not self._unread:
            if self._ended:
                raise anyio.EndOfStream
            try:
                message = await self._stream.read_out()
            except _BROKEN as error:
                self._ended = True
                raise (anyio.ClosedResourceError if self._closed else anyio.BrokenResourceError) from error
            if message is None:
                self._ended = True
            elif message.stream == _STDERR:
                self._last_words += message.data
                del self._last_words[:-_KEPT]
            else:
                self._unread = message.data
        data, self._unread = self._unread[:max_bytes], self._unread[max_bytes:]
        return data

    async def send(self, item: bytes) -> None:
        if self._closed:
            raise anyio.ClosedResourceError
        try:
            # All of it is put into the transport before anything waits: a cancelled send is a whole one.
            await self._stream.write_in(item)
        except _BROKEN as error:
            raise anyio.BrokenResourceError from error

    async def send_eof(self) -> None:
        """Close the command's standard input."""
        await checkpoint()
        try:
            transport = self._stream._resp.connection.transport
            if transport.can_write_eof() and not transport.is_closing():
                transport.write_eof()
        except (AttributeError, *_BROKEN):
            return  # it has ended already

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        close_now(self._stream)
        await checkpoint()


def close_now(stream: Any) -> None:
    """Close aiodocker's stream, in whatever state it is: its own `close` asserts that the connection is there."""
    stream._closed = True
    if stream._resp is None:
        return
    connection = stream._resp.connection
    if connection is not None and connection.transport is not None:
        # Not `close`: what was sent and is not read by anybody would hold the connection open.
        connection.transport.abort()
    stream._resp.close()
