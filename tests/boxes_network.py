"""A proxy of a box on real sockets of this machine, with names that only it knows and servers behind them."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address

import anyio
import anyio.lowlevel
from anyio.abc import SocketAttribute, SocketStream

from agentcore_sandbox.network.addresses import Address
from agentcore_sandbox.network.policy import Allow
from agentcore_sandbox.network.proxy import DEFAULT_LIMITS, Proxy, ProxyLimits
from agentcore_sandbox.network.refusals import NetworkRefusal, Reason

__all__ = [
    "Names",
    "ProxyWorld",
    "Responder",
    "client_hello",
    "echo",
    "listening",
    "open_proxy",
    "read_all",
    "status_of",
]

Handle = Callable[[SocketStream], Awaitable[None]]


@asynccontextmanager
async def listening(handle: Handle) -> AsyncGenerator[int]:
    """Serve connections on a free port of 127.0.0.1, which this returns."""

    async def serve(stream: SocketStream) -> None:
        async with stream:
            await handle(stream)

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listeners, anyio.create_task_group() as tasks:
        tasks.start_soon(listeners.serve, serve)
        yield listeners.listeners[0].extra(SocketAttribute.local_port)
        tasks.cancel_scope.cancel()


class Names:
    """Names and what they resolve to: the first answer to the first question, and so on; the last one stays."""

    def __init__(self, **names: str | Sequence[str]) -> None:
        self.answers = {
            name.replace("_", "."): [each] if isinstance(each, str) else [*each] for name, each in names.items()
        }
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int) -> tuple[Address, ...]:
        del port
        self.asked.append(host)
        if host not in self.answers:
            raise OSError("no such name")
        answers = self.answers[host]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return tuple(ip_address(part) for part in answer.split())


class ProxyWorld:
    """A proxy that is listening. Made by `open_proxy`."""

    def __init__(self, proxy: Proxy, port: int, names: Names, refused: list[NetworkRefusal]) -> None:
        self.proxy = proxy
        self.port = port
        self.names = names
        self.refused = refused

    @property
    def reasons(self) -> list[tuple[str, Reason]]:
        return [(each.host, each.reason) for each in self.refused]

    async def idle(self) -> None:
        """Wait until the proxy serves no connection."""
        await self.wait_until(lambda: not self.proxy.connections)

    async def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait for a count of the proxy's, of which nobody is notified."""
        while True:
            await anyio.lowlevel.checkpoint()
            if holds():
                return

    async def connect(self) -> SocketStream:
        return await anyio.connect_tcp("127.0.0.1", self.port)

    async def ask(self, request: str | bytes) -> bytes:
        """Send bytes, and return everything that comes back."""
        async with await self.connect() as stream:
            await stream.send(request.encode() if isinstance(request, str) else request)
            return await read_all(stream)

    async def open_tunnel(self, target: str) -> SocketStream:
        """Return a stream on which CONNECT was answered with 200."""
        stream = await self.connect()
        await stream.send(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += await stream.receive(1)
        assert head.startswith(b"HTTP/1.1 200 "), head
        return stream


def permit_loopback(address: Address, port: int) -> bool:
    """Stand in for the check of addresses: the servers of these tests are public, and all else is private."""
    del port
    return address == ip_address("127.0.0.1")


@asynccontextmanager
async def open_proxy(
    *hosts: str, names: Names | None = None, limits: ProxyLimits = DEFAULT_LIMITS, ports: Sequence[int] = (443, 80)
) -> AsyncGenerator[ProxyWorld]:
    """Open a proxy that allows these hosts; where no names are passed, each of them is 127.0.0.1."""
    refused: list[NetworkRefusal] = []
    known = names or Names(**{host.rpartition(":")[0].replace(".", "_"): "127.0.0.1" for host in hosts})
    proxy = Proxy(
        Allow(*hosts, ports=ports),
        refused.append,
        resolve=known.resolve,
        permits_address=permit_loopback,
        limits=limits,
    )
    with anyio.fail_after(20):
        async with listening(proxy.handle) as port:
            yield ProxyWorld(proxy, port, known, refused)


async def read_all(stream: SocketStream) -> bytes:
    """Read to the end; a connection that is reset ends there too."""
    data = bytearray()
    try:
        while True:
            data += await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return bytes(data)


async def echo(stream: SocketStream) -> None:
    """Send back what comes, and end when it ends."""
    async for data in stream:
        await stream.send(data)
    await stream.send_eof()


class Responder:
    """A server that notes what it receives, answers when it has read so much, and reads on to the end."""

    def __init__(
        self, response: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", *, after: bytes = b"\r\n\r\n"
    ) -> None:
        self.received: list[bytes] = []
        """All of each connection that has ended."""
        self.accepted = 0
        self._response = response
        self._after = after
        self._ended = anyio.Event()

    async def handle(self, stream: SocketStream) -> None:
        self.accepted += 1
        data = bytearray()
        has_answered = False
        async for piece in stream:
            data += piece
            if self._after in data and not has_answered:
                has_answered = True
                await stream.send(self._response)
                await stream.send_eof()
        self.received.append(bytes(data))
        self._ended.set()
        self._ended = anyio.Event()

    async def wait_ended(self, count: int = 1) -> list[bytes]:
        """Wait until so many connections have ended, and return what came."""
        while len(self.received) < count:
            await self._ended.wait()
        return self.received


def client_hello(name: str | None) -> bytes:
    """Return the first message that Python's own TLS sends to a server of this name."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname = False
    try:
        context.wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError


def status_of(answer: bytes) -> int:
    """Return the status of what a proxy answered."""
    assert answer.startswith(b"HTTP/1.1 "), answer
    return int(answer[9:12])
