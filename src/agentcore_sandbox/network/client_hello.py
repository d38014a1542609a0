"""The names of the server in the first message of TLS, so that a tunnel to one host is not used to reach another one behind the same address.

Above: the proxy. It sees the name in the first message only: the request inside is encrypted, and may name another host of the same server.
"""

from __future__ import annotations

from typing import Final, final

import anyio
from anyio.abc import ByteStream

from agentcore_sandbox.network.policy import normalize_host

MAX_HELLO: Final = 64 * 1024
"""The longest first message. With the keys of today's browsers it has about 2 KB."""

_HANDSHAKE: Final = 0x16
_CLIENT_HELLO: Final = 1
_MAX_RECORD: Final = 16384
_SERVER_NAME: Final = 0
_HOST_NAME: Final = 0

UNRECOGNIZED_NAME: Final = b"\x15\x03\x01\x00\x02\x02\x70"
"""The message of TLS by which a server refuses a name."""


@final
class HelloReader:
    """Reads the first message of TLS, piece by piece."""

    def __init__(self) -> None:
        self._records = bytearray()
        self._message = bytearray()

    def feed(self, data: bytes) -> tuple[str, ...] | None:
        """Add what a connection begins with; return the names of servers in its first message (none if it is not TLS), or None for more.

        Raises:
            ValueError: It begins as TLS does, and then is not, or is too long.
        """
        self._records += data
        if self._records and not self._message and self._records[0] != _HANDSHAKE:
            return ()
        # One message may be in many records, each with a piece of it.
        at = 0
        while len(self._records) >= at + 5:
            length = int.from_bytes(self._records[at + 3 : at + 5])
            if self._records[at] != _HANDSHAKE or self._records[at + 1] != 3 or not 0 < length <= _MAX_RECORD:
                raise ValueError("That is not a record of TLS.")
            if len(self._records) < at + 5 + length:
                break
            self._message += self._records[at + 5 : at + 5 + length]
            at += 5 + length
        del self._records[:at]
        if len(self._message) < 4:
            return None
        size = int.from_bytes(self._message[1:4])
        if self._message[0] != _CLIENT_HELLO or size > MAX_HELLO:
            raise ValueError("That is not the first message of TLS.")
        return None if len(self._message) < 4 + size else _names(bytes(self._message[4 : 4 + size]))


def _names(body: bytes) -> tuple[str, ...]:
    fields = _Fields(body)
    fields.take(2 + 32)  # version and random bytes
    fields.block(1)  # the session's id
    fields.block(2)  # ciphers
    fields.block(1)  # compressions
    if fields.is_empty:
        return ()
    found: list[str] = []
    extensions = _Fields(fields.block(2))
    while not extensions.is_empty:
        kind = extensions.number(2)
        content = extensions.block(2)
        if kind == _SERVER_NAME:
            names = _Fields(_Fields(content).block(2))
            while not names.is_empty:
                name_kind = names.number(1)
                name = names.block(2)
                if name_kind == _HOST_NAME:
                    found.append(name.decode("ascii"))  # UnicodeDecodeError is a ValueError
    return tuple(found)


@final
class _Fields:
    """A message's bytes, read from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_empty(self) -> bool:
        return self._at == len(self._data)

    def take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) != count:
            raise ValueError("The first message of TLS ends too early.")
        self._at += count
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def block(self, size: int) -> bytes:
        return self.take(self.number(size))


@final
class CheckedClient(ByteStream):
    """A client's stream that ends as if it were closed when its TLS names another server than these; None is any."""

    def __init__(self, client: ByteStream, names: frozenset[str] | None) -> None:
        self._client = client
        self._names = names
        self._hello = HelloReader() if names is not None else None
        self.is_refused = False
        """True once it has."""

    async def receive(self, max_bytes: int = 65536) -> bytes:
        if self._hello is None:
            return await self._client.receive(max_bytes)
        begun = bytearray()
        try:
            while True:
                data = await self._client.receive(max_bytes)
                begun += data
                if (found := self._hello.feed(data)) is not None:
                    break
            self.is_refused = any(normalize_host(name) not in (self._names or ()) for name in found)
        except anyio.EndOfStream:
            if not begun:
                raise
            # The rest of a first message cannot follow, and what is there is for nobody.
            raise anyio.ClosedResourceError from None
        except ValueError:
            self.is_refused = True
        if self.is_refused:
            raise anyio.ClosedResourceError
        self._hello = None
        return bytes(begun)

    async def send(self, item: bytes) -> None:
        await self._client.send(item)

    async def send_eof(self) -> None:
        await self._client.send_eof()

    async def aclose(self) -> None:
        await self._client.aclose()
