"""The proxy of a box, outside of it: the only way out where the network is an `Allow`.

Above: the workspace, which passes on each connection that was accepted inside. Below: TCP of this machine. A request is decided by host
and port; the name is resolved here, once, every address of it is checked, and the connection goes to the address that was checked.
One request per connection: what follows it is dropped, so that nothing hides behind a request that was allowed.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NamedTuple, final

import anyio
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream, BufferedByteStream

from agentcore.workspace.tunnel import HALF_CLOSED_SECONDS, IDLE_SECONDS, LOST, IdleScope, pump, tunnel
from agentcore_sandbox.network.addresses import Address, parse_address, private_kind, resolve
from agentcore_sandbox.network.client_hello import UNRECOGNIZED_NAME, CheckedClient
from agentcore_sandbox.network.http_body import pass_body
from agentcore_sandbox.network.http_head import HEAD_END, MAX_HEAD, BadMessage, Request, parse_request, parse_response
from agentcore_sandbox.network.policy import Allow
from agentcore_sandbox.network.refusals import NetworkRefusal, Reason

PROXY_PORT: Final = 3128
"""The port inside at which the proxy is reached, on 127.0.0.1."""
_MAX_ADDRESSES: Final = 4
_LINGER_SECONDS: Final = 2.0
_LINGER_BYTES: Final = 1 << 20
_LONGEST_PHRASE: Final = 200

Resolve = Callable[[str, int], Awaitable[tuple[Address, ...]]]
PermitsAddress = Callable[[Address, int], bool]


class ProxyLimits(NamedTuple):
    """The bounds of a proxy."""

    connections: int = 64
    """How many it serves at once; one more is answered with 503."""
    head_seconds: float = 30.0
    """How long the head of a request may take."""
    connect_seconds: float = 10.0
    """How long looking up a name and connecting may take, together."""
    idle_seconds: float = IDLE_SECONDS
    """How long a connection may be silent, both ways."""
    half_closed_seconds: float = HALF_CLOSED_SECONDS
    """The same, once one side has ended."""


DEFAULT_LIMITS: Final = ProxyLimits()


def proxy_environment(port: int = PROXY_PORT) -> dict[str, str]:
    """Return the variables by which programs in a box find the proxy.

    ALL_PROXY is not among them: what reads it reads the other two, and other protocols than HTTP have no proxy here.
    """
    url = f"http://127.0.0.1:{port}"
    none = "localhost,127.0.0.1,::1"
    variables = {"HTTP_PROXY": url, "HTTPS_PROXY": url, "NO_PROXY": none}
    # Node looks at them since version 22.21, if it is asked to.
    return variables | {name.lower(): value for name, value in variables.items()} | {"NODE_USE_ENV_PROXY": "1"}


class _Answer(Exception):
    """A request ends with an answer of the proxy's own."""

    def __init__(self, status: int, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.advice = advice

    def encode(self) -> bytes:
        # The sentence is the status's phrase too: that is what pip, requests and programs in Go print when CONNECT fails.
        phrase = self.message.encode("ascii", "replace").replace(b"\r", b" ").replace(b"\n", b" ")[:_LONGEST_PHRASE]
        body = f"{self.message}\n{self.advice}".encode()
        return (
            b"HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
            % (
                self.status,
                phrase,
                len(body),
                body,
            )
        )


@final
class Proxy:
    """An HTTP proxy, which serves any number of byte streams.

    Args:
        allow: The hosts that may be reached.
        on_refused: Is called with each refusal, in the task that serves; as `Refusals.add`.
        resolve: How names are looked up.
        permits_address: Whether an address may be reached at a port, by default as `Allow.permits_address`.
        limits: Its bounds.
    """

    def __init__(
        self,
        allow: Allow,
        on_refused: Callable[[NetworkRefusal], None],
        *,
        resolve: Resolve = resolve,
        permits_address: PermitsAddress | None = None,
        limits: ProxyLimits = DEFAULT_LIMITS,
    ) -> None:
        self._allow = allow
        self._on_refused = on_refused
        self._resolve = resolve
        self._permits_address = permits_address or allow.permits_address
        self._limits = limits
        self._connections = 0

    @property
    def connections(self) -> int:
        """How many connections are served now."""
        return self._connections

    async def handle(self, stream: ByteStream) -> None:
        """Serve one connection to its end, and close it. A client that breaks off raises nothing here."""
        self._connections += 1
        try:
            async with stream:
                client = BufferedByteStream(stream)
                try:
                    await self._serve(client)
                except _Answer as answer:
                    with anyio.move_on_after(_LINGER_SECONDS):
                        await client.send(answer.encode())
                await _linger(client)
        except LOST:
            pass
        finally:
            self._connections -= 1

    async def _serve(self, client: BufferedByteStream) -> None:
        if self._connections > self._limits.connections:
            raise _Answer(503, f"The sandbox has more than {self._limits.connections} connections at once.")
        request = await _read_request(client, self._limits.head_seconds)
        if request is None:
            return
        if not request.is_consistent:
            raise self._refuse(request, "host_header", f"The Host header names another host than {_name(request)}.")
        server = await self._connect(request)
        async with server:
            if request.is_connect:
                await client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await self._tunnel(client, server, request)
            else:
                await self._exchange(client, server, request)

    async def _connect(self, request: Request) -> ByteStream:
        if not self._allow.permits(request.host, request.port):
            raise self._refuse(request, "host", f"{_name(request)} is not among the allowed hosts.")
        try:
            with anyio.fail_after(self._limits.connect_seconds):
                addresses = await self._find_addresses(request)
                return await self._connect_to_one(addresses[:_MAX_ADDRESSES], request)
        except TimeoutError:
            seconds = self._limits.connect_seconds
            raise _Answer(504, f"No connection to {_name(request)} within {seconds:g} s.") from None

    async def _connect_to_one(self, addresses: tuple[Address, ...], request: Request) -> ByteStream:
        failure = "no address"
        for address in addresses:
            try:
                with anyio.fail_after(self._limits.connect_seconds / len(addresses)):
                    # The address and not the name, which might lead elsewhere by now.
                    return await anyio.connect_tcp(address, request.port)
            except TimeoutError:
                failure = "no answer"
            except OSError as error:
                # Not its text, which is another one on each event loop.
                number = error.__cause__.errno if isinstance(error.__cause__, OSError) else error.errno
                failure = os.strerror(number) if number else "it failed"
        raise _Answer(502, f"No connection to {_name(request)}: {failure}.")

    async def _find_addresses(self, request: Request) -> tuple[Address, ...]:
        literal = parse_address(request.host)
        try:
            addresses = (literal,) if literal is not None else await self._resolve(request.host, request.port)
        except OSError as error:
            raise _Answer(502, f"{request.host} cannot be looked up: {error.strerror or error}.") from None
        for address in addresses:
            # All of them: a name with one private address is not one of those that were meant.
            if not self._permits_address(address, request.port):
                kind = private_kind(address) or "private"
                raise self._refuse(
                    request, "address", f"{_name(request)} leads to a {kind} address, which no box may reach."
                )
        return addresses

    async def _tunnel(self, client: BufferedByteStream, server: ByteStream, request: Request) -> None:
        # An address that is allowed is allowed whole, whoever is there.
        names = None if parse_address(request.host) is not None else frozenset({request.host})
        checked = CheckedClient(client, names)
        await tunnel(checked, server, self._idle_scope())
        if checked.is_refused:
            self._refuse(request, "server_name", f"TLS through the tunnel to {_name(request)} names another server.")
            with anyio.move_on_after(_LINGER_SECONDS):
                await client.send(UNRECOGNIZED_NAME)

    async def _exchange(self, client: BufferedByteStream, server: ByteStream, request: Request) -> None:
        idle = self._idle_scope()
        reader = BufferedByteReceiveStream(server)
        bad: list[BadMessage] = []
        has_begun = False

        async def send(data: bytes) -> None:
            await server.send(data)
            idle.touch()

        async def send_request() -> None:
            try:
                await send(request.encode())
                await pass_body(client, request.length, send)
                while True:  # another request on this connection is not answered
                    await client.receive()
            except anyio.EndOfStream:
                idle.half_close()
            except BadMessage as error:
                bad.append(error)
                idle.scope.cancel("the request's body is not one")
            except LOST:
                pass  # a server that has enough of a body answers all the same

        with idle.scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(send_request)
                try:
                    status = 0
                    while status < 200:
                        status, head = parse_response(await reader.receive_until(HEAD_END, MAX_HEAD))
                        has_begun = status >= 200
                        await client.send(head)
                        idle.touch()
                    await pump(reader, client, idle)
                except (anyio.IncompleteRead, anyio.DelimiterNotFound, BadMessage, *LOST):
                    pass
                tasks.cancel_scope.cancel("the response has ended")
        if not has_begun:
            if bad:
                raise _Answer(400, str(bad[0]))
            if idle.scope.cancelled_caught:
                raise _Answer(504, f"{_name(request)} did not answer.")
            raise _Answer(502, f"{_name(request)} gave no answer that is HTTP.")

    def _idle_scope(self) -> IdleScope:
        return IdleScope(self._limits.idle_seconds, self._limits.half_closed_seconds)

    def _refuse(self, request: Request, reason: Reason, message: str) -> _Answer:
        refusal = NetworkRefusal(request.host, request.port, reason, message)
        self._on_refused(refusal)
        ports = ", ".join(map(str, self._allow.ports))
        return _Answer(
            403,
            message,
            f"Allowed hosts: {self._allow} (ports {ports} where none is named).\n"
            "This is the network policy of the sandbox, which nothing inside can change. If the host is needed, ask the user to add it\n"
            f'where the sandbox is made: network=Allow(..., "{request.host}"), or --network on the command line.\n',
        )


async def _read_request(client: BufferedByteStream, seconds: float) -> Request | None:
    """Return the request, or None if the client has left."""
    try:
        with anyio.fail_after(seconds):
            head = await client.receive_until(HEAD_END, MAX_HEAD)
    except TimeoutError:
        raise _Answer(408, f"The request took more than {seconds:g} s to arrive.") from None
    except anyio.IncompleteRead:
        return None
    except anyio.DelimiterNotFound:
        head = bytes(MAX_HEAD)
    if len(head) + len(HEAD_END) > MAX_HEAD:
        raise _Answer(431, f"The head of the request has more than {MAX_HEAD} bytes.")
    try:
        return parse_request(head)
    except BadMessage as error:
        raise _Answer(400, str(error)) from None


async def _linger(client: BufferedByteStream) -> None:
    """Read what is still on its way: closing a socket before that takes back the answer."""
    with anyio.move_on_after(_LINGER_SECONDS):
        await client.send_eof()
        left = _LINGER_BYTES
        with suppress(anyio.EndOfStream):
            while left > 0:
                left -= len(await client.receive())


def _name(request: Request) -> str:
    host = f"[{request.host}]" if ":" in request.host else request.host
    return f"{host}:{request.port}"
