"""Requests as httpx knows them, made so that nothing of them is left to the garbage collector."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Self

import httpx

__all__ = ["CONNECT_SECONDS", "Body", "post"]

CONNECT_SECONDS = 30.0
"""How long a connection may take to be made."""

_TIMEOUT = httpx.Timeout(None, connect=CONNECT_SECONDS).as_dict()
_HEADERS = {"accept": "*/*", "accept-encoding": "gzip, deflate", "user-agent": "agentcore"}
_PIECE = 1024 * 1024


class Body(httpx.AsyncByteStream):
    """A request's body. httpx's own is an async generator, which a cancelled request leaves to the garbage collector."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Pieces(self.data)


class _Pieces:
    """A body of many megabytes is sent in turns with what else the event loop has to do."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._at >= len(self._data):
            raise StopAsyncIteration
        piece = self._data[self._at : self._at + _PIECE]
        self._at += _PIECE
        return piece


@lru_cache(maxsize=256)
def _address(url: str) -> tuple[httpx.URL, dict[str, str]]:
    """Give an address, and the headers that belong to it. A name and a password in it are a header, as ever."""
    try:
        address = httpx.URL(url)
        address.host.encode("idna")
    except UnicodeError as error:
        raise httpx.InvalidURL(str(error)) from None
    if address.scheme not in {"http", "https"} or not address.host:
        raise httpx.InvalidURL("it begins with neither http:// nor https://")
    if not 0 < (address.port or 80) < 65536:
        raise httpx.InvalidURL(f"there is no port {address.port}")
    if not address.userinfo:
        return address, {}
    who = next(httpx.BasicAuth(address.username, address.password).auth_flow(httpx.Request("POST", address)))
    return address.copy_with(userinfo=b""), {"authorization": who.headers["authorization"]}


def post(url: str, headers: dict[str, str], body: bytes) -> httpx.Request:
    """Make a request that posts a body. The names of the headers are in lower case, so that none is there twice.

    Raises:
        httpx.InvalidURL: It is no address.
    """
    address, own = _address(url)
    return httpx.Request(
        "POST",
        address,
        headers={
            "host": address.netloc.decode("ascii"),
            **_HEADERS,
            **headers,
            **own,
            "content-length": str(len(body)),
        },
        stream=Body(body),
        extensions={"timeout": _TIMEOUT},
    )
