"""The logins of this user to MCP servers: their tokens by the servers' addresses, in one file that only the user may read.

Above: `oauth.py`, which uses and renews them; `login.py`, which gets them; the command line. A file that cannot be understood is
named where it is read, and set aside where it is written.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Final, TypeAlias, final
from urllib.parse import urlsplit

import anyio
from pydantic import Field, JsonValue, ValidationError

from agentcore._threads import Threads
from agentcore._value import Recorded
from agentcore.mcp.server import MCPServer
from agentcore.mcp.writing import write_private

_FILE: Final = "mcp-tokens.json"
_LOCK_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.05
_PORTS: Final = {"http": 80, "https": 443}
_THREADS: Final = Threads("mcp_tokens", 4)

_Change: TypeAlias = "Callable[[str, Login | None], str | None]"


class Login(Recorded):
    """The result of a login to a server: its tokens, and all that renewing them takes. Its repr shows none of it."""

    access_token: Annotated[str, Field(min_length=1)]
    refresh_token: str | None = None
    expires_at: float | None = None
    """When the access token ends, in seconds since 1970; None if the server did not say."""
    scope: str | None = None
    client: dict[str, JsonValue]
    """The registration of this program with the authorization server."""
    authorization: dict[str, JsonValue] | None = None
    """The metadata of the authorization server."""
    resource: dict[str, JsonValue] | None = None
    """The metadata of the server as a protected resource."""

    def __repr__(self) -> str:
        return f"Login(expires_at={self.expires_at!r})"

    @property
    def has_expired(self) -> bool:
        """True once the access token has ended."""
        return self.expires_at is not None and time.time() >= self.expires_at


class _Content(Recorded):
    servers: dict[str, Login] = {}


class TokensUnreadable(Exception):
    """The file is there and cannot be read."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"The file with the logins to MCP servers can't be read: {path} ({reason})")
        self.path = path


def wants_login(server: MCPServer) -> bool:
    """Return whether a login to a server is used: it says so, or has no credentials among its headers."""
    if server.transport == "stdio":
        return False
    return server.auth == "oauth" or not any(name.lower() == "authorization" for name in server.headers)


def needs_login(name: str) -> str:
    """Return what to do for a server that wants a login, in words that follow a colon."""
    return f"it needs login: run `agentcore mcp login {shlex.quote(name)}`"


def tokens_path() -> str:
    """Return the path of the file, in the folder for agentcore's configuration."""
    # Here because a program whose servers need no login need not import it.
    from platformdirs import user_config_path  # noqa: PLC0415

    return str(user_config_path("agentcore", appauthor=False) / _FILE)


def server_key(url: str) -> str:
    """Return what a login is filed under: the origin and the path of an address, without what may be a key in its query.

    Raises:
        ValueError: It is not an address.
    """
    parts = urlsplit(url)
    scheme, host = parts.scheme.lower(), parts.hostname
    if scheme not in _PORTS or not host:
        raise ValueError("An address begins with https:// or http://.")
    port = "" if parts.port in (None, _PORTS[scheme]) else f":{parts.port}"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}{port}{parts.path or '/'}"


@final
class TokenFile:
    """The file with the logins."""

    def __init__(self, path: str | None = None) -> None:
        """Take the file of this user, or another one, which need not be there yet."""
        self.path = tokens_path() if path is None else path

    async def read(self, key: str) -> Login | None:
        """Return the login to a server, if there is one.

        Raises:
            TokensUnreadable: The file cannot be read.
        """
        return (await _THREADS.run(self._read)).servers.get(key)

    @asynccontextmanager
    async def locked(self) -> AsyncGenerator[LockedTokens]:
        """Keep others, in other processes too, from changing the file while the block lasts.

        Raises:
            OSError: The lock cannot be made.
            TimeoutError: Another process has held it for a minute.
        """
        lock = _Lock(f"{self.path}.lock")
        try:
            with anyio.fail_after(_LOCK_SECONDS):
                while not await _THREADS.run(lock.try_take):  # noqa: ASYNC110 other processes set no event
                    await anyio.sleep(_POLL_SECONDS)
            yield LockedTokens(self, lock)
        finally:
            await _THREADS.tidy(lock.release)  # noqa: ASYNC102 shielded there

    def _read(self) -> _Content:
        try:
            with open(self.path, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return _Content()
        except OSError as error:
            raise TokensUnreadable(self.path, error.strerror or type(error).__name__) from None
        try:
            return _Content.model_validate_json(content)
        except ValidationError as error:
            detail = error.errors(include_url=False, include_input=False, include_context=False)[0]
            # A place is a key of the file, and the first two are ours or an address.
            where = ".".join(map(str, detail["loc"][:2]))
            raise TokensUnreadable(self.path, f"{where}: {detail['msg']}" if where else detail["msg"]) from None

    def change(self, key: str, login: Login | None) -> str | None:
        """Put a login in the place of another, or remove it; see `LockedTokens`, which holds the lock that this needs."""
        aside: str | None = None
        try:
            content = self._read()
        except TokensUnreadable:
            aside = _set_aside(self.path)
            content = _Content()
        servers = {known: each for known, each in content.servers.items() if known != key}
        if login is not None:
            servers[key] = login
        elif key not in content.servers:
            return aside
        changed = content.model_copy(update={"servers": servers})
        write_private(self.path, changed.model_dump_json(indent=2, exclude_none=True) + "\n")
        return aside


def _set_aside(path: str) -> str:
    real = os.path.realpath(path)
    names = (f"{real}.broken{number or ''}" for number in range(1_000))
    aside = next(name for name in names if not os.path.lexists(name))
    os.replace(real, aside)
    return aside


@final
class LockedTokens:
    """The file, while nobody else changes it."""

    def __init__(self, file: TokenFile, lock: _Lock) -> None:
        """Take the file and the lock that is held for it."""
        self._file = file
        self._lock = lock

    async def read(self, key: str) -> Login | None:
        """As `TokenFile.read`."""
        return await self._file.read(key)

    async def write(self, key: str, login: Login | None) -> str | None:
        """Keep a login, or remove it (None). Return where a file was put that could not be read, if it was one.

        Raises:
            OSError: The file cannot be written; what was there stays.
        """
        return await _THREADS.run(self._lock.run, self._file.change, key, login)


@final
class _Lock:
    """A lock between processes. A thread that was left behind by asyncio's own cancellation cannot take it after its release."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._mutex = threading.Lock()
        self._descriptor: int | None = None
        self._released = False

    def try_take(self) -> bool:
        with self._mutex:
            if self._released:
                return False
            if self._descriptor is None:
                os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
                self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    def run(self, change: _Change, key: str, login: Login | None) -> str | None:
        with self._mutex:
            if self._released:
                raise RuntimeError("the lock is released")
            return change(key, login)

    def release(self) -> None:
        with self._mutex:
            self._released = True
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None
