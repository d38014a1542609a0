"""`ServerClient`: requests to one server, repeated over cuts, and its errors as the classes they were there.

Above: `RemoteWorkspace` and the link of a remote conversation. Below: httpx, and httpx-ws for sockets (`agentcore.remote.socket`).
It knows no route: what a path means is for those above.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Self, final
from urllib.parse import urlsplit

import anyio
import httpx
from pydantic import SecretStr, ValidationError

from agentcore.errors import ConnectionLost, NotAuthorized, ServerError, TooManyRequests
from agentcore.remote.address import find_key, is_loopback, parse_address
from agentcore.remote.socket import Socket, load_library, open_socket
from agentcore.wire.problems import Problem, error_of

API: Final = "api/v1"
BOOT_HEADER: Final = "Agentcore-Boot"
"""On a repeated request: which start of the server the first attempt went to. Another one does not know what came of that."""
READ_SECONDS: Final = 40.0
"""How long an answer may take. What takes longer is asked for again and again (`wait` of a command is 20 s)."""
_CONNECT_SECONDS: Final = 10.0
_MAY_PASS: Final = frozenset({429, 502, 503, 504})
_FIRST_DELAY: Final = 0.1
_LONGEST_DELAY: Final = 8.0
# No byte of these reached the server.
_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

Body = Callable[[], AsyncIterable[bytes]]
"""Makes the content of a request, anew for each attempt."""


@final
class ServerClient:
    """Requests to one server, inside `async with`. The key is in no repr, URL or error.

    Args:
        url: Where the server is.
        api_key: The key; by default `AGENTCORE_SERVER_KEY` of the environment, else none.
        reconnect_seconds: How long a server that cannot be reached, or is busy, is tried again.
        insecure: Allow http:// to another machine.

    Raises:
        ValueError: The url is not one of a server, or an unprotected one.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | SecretStr | None = None,
        reconnect_seconds: float = 300,
        insecure: bool = False,
    ) -> None:
        self._address = parse_address(url, insecure=insecure)
        self._key = find_key(api_key)
        self._reconnect = reconnect_seconds
        self._http: httpx.AsyncClient | None = None
        self._boot: str | None = None

    def __repr__(self) -> str:
        return f"ServerClient({self.url!r})"

    @property
    def url(self) -> str:
        """The server's address, without the key."""
        return self._address

    async def __aenter__(self) -> Self:
        headers = {"Authorization": f"Bearer {self._key.get_secret_value()}"} if self._key else {}
        self._http = httpx.AsyncClient(
            base_url=f"{self._address}/",
            headers=headers,
            # Each process is a connection. Idle ones are let go before hypercorn closes them (5 s).
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=4),
            # A proxy is not on the way to this machine.
            trust_env=not is_loopback(urlsplit(self._address).hostname or ""),
        )
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        http, self._http = self._http, None
        if http is not None:
            with anyio.move_on_after(5, shield=True):
                await http.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: Mapping[str, str | int] | None = None,
        content: Body | bytes | None = None,
        headers: Mapping[str, str] | None = None,
        reconnect_seconds: float | None = None,
        read_seconds: float | None = None,
    ) -> httpx.Response:
        """Send a request until it is answered, and return the answer with its content.

        It is sent again after a cut, so it has to be one that may arrive twice: by its nature, or by an id in it that the
        server remembers.

        Args:
            method: The method.
            path: Below `/api/v1`, as in "workspaces/ws_1".
            json: The body as JSON.
            params: The query.
            content: The body as bytes, or what makes it.
            headers: Headers to add.
            reconnect_seconds: How long to try, instead of the client's.
            read_seconds: How long the answer may take.

        Raises:
            ConnectionLost: The server could not be reached for that long.
            NotAuthorized, TooManyRequests, ServerError: As the server answered.
            AgentcoreError: The error that was raised there.
        """
        async with self.stream(
            method,
            path,
            json=json,
            params=params,
            content=content,
            headers=headers,
            reconnect_seconds=reconnect_seconds,
            read_seconds=read_seconds,
        ) as response:
            return response

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: Mapping[str, str | int] | None = None,
        content: Body | bytes | None = None,
        headers: Mapping[str, str] | None = None,
        reconnect_seconds: float | None = None,
        read_seconds: float | None = None,
        whole: bool = True,
    ) -> AsyncGenerator[httpx.Response]:
        """Send a request as `request` does, and hold the answer. Without `whole` its content is still to be read."""
        tries = _Tries(
            self.url,
            self._reconnect if reconnect_seconds is None else reconnect_seconds,
            reached=self._boot is not None,
        )
        sent_to: str | None = None
        while True:
            again = {BOOT_HEADER: sent_to} if sent_to is not None else {}
            request = self._client().build_request(
                method,
                f"{API}/{path.lstrip('/')}",
                json=json,
                params=params,
                content=content() if callable(content) else content,
                headers={**(headers or {}), **again},
                timeout=httpx.Timeout(read_seconds or READ_SECONDS, connect=_CONNECT_SECONDS, pool=None),
            )
            try:
                response = await self._client().send(request, stream=True)
            except httpx.TransportError as error:
                if not isinstance(error, _NOT_SENT):
                    sent_to = sent_to or self._boot or "unknown"
                await tries.wait(error)
                continue
            try:
                if response.status_code >= 300:
                    try:
                        refusal = _refusal_of(response, await response.aread())
                    except httpx.TransportError as error:
                        sent_to = sent_to or self._boot or "unknown"
                        await tries.wait(error)
                        continue
                    if response.status_code not in _MAY_PASS or not isinstance(refusal, ServerError):
                        raise refusal
                    if response.status_code in (502, 504):
                        sent_to = sent_to or self._boot or "unknown"
                    await tries.wait(refusal, _retry_after(response))
                    continue
                self._boot = response.headers.get(BOOT_HEADER, self._boot)
                if whole:
                    try:
                        await response.aread()
                    except httpx.TransportError as error:
                        sent_to = sent_to or self._boot or "unknown"
                        await tries.wait(error)
                        continue
                yield response
                return
            finally:
                with anyio.move_on_after(5, shield=True):
                    await response.aclose()

    def check_sockets(self) -> None:
        """Check that WebSockets can be opened.

        Raises:
            MissingExtra: The extra "remote" is not installed.
        """
        load_library()

    def stream_socket(self, path: str) -> AbstractAsyncContextManager[Socket]:
        """Open a WebSocket below `/api/v1`, once: whether and when to try again is for those who know what was on it.

        Raises:
            ConnectionLost: The server can't be reached.
            NotAuthorized, ServerError: It refuses.
            MissingExtra: The extra "remote" is not installed.
        """
        address = httpx.URL(f"{self._address}/{API}/{path.lstrip('/')}")
        return open_socket(self._client(), address, self.url)

    def _client(self) -> httpx.AsyncClient:
        if self._http is None:
            raise RuntimeError(f"{self!r} is not open. Use it inside `async with`.")
        return self._http


@final
class _Tries:
    """The delays between attempts of one request: growing, with jitter, and over when the time is up."""

    def __init__(self, url: str, seconds: float, *, reached: bool) -> None:
        self._url = url
        self.reached = reached
        """True once the server has answered."""
        self._seconds = seconds
        self._began = anyio.current_time()
        self._delay = _FIRST_DELAY

    async def wait(self, error: Exception, after: float | None = None) -> None:
        delay = max(after or 0.0, random.uniform(self._delay / 2, self._delay))  # noqa: S311 - jitter is no secret
        self._delay = min(self._delay * 2, _LONGEST_DELAY)
        if anyio.current_time() + delay - self._began > self._seconds:
            raise self._give_up(error) from error
        await anyio.sleep(delay)

    def _give_up(self, error: Exception) -> Exception:
        if isinstance(error, ServerError):
            return error
        # Not the text of httpx alone: it is empty for some.
        reason = str(error) or type(error).__name__
        return ConnectionLost(self._url, f"{reason} (tried for {self._seconds:g} s)", reached=self.reached)


def _refusal_of(response: httpx.Response, content: bytes) -> Exception:
    try:
        return error_of(Problem.model_validate_json(content))
    except ValidationError:
        return error_of_status(response.status_code)


def error_of_status(status: int) -> Exception:
    """Return the error of an answer that is not a problem of agentcore's, as a proxy gives it."""
    text = f"The server answered with status {status}, and did not say why."
    if status in (401, 403):
        return NotAuthorized(text, status=status, code="not_authorized")
    if status == 429:
        return TooManyRequests(text)
    return ServerError(text, status=status, code="unknown")


def _retry_after(response: httpx.Response) -> float | None:
    try:
        return float(response.headers.get("Retry-After", ""))
    except ValueError:
        return None
