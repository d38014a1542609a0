"""Tunnels: connections to ports inside that begin outside, and the other way round."""

from __future__ import annotations

# Without the module `socket`, which takes as long to import as the rest of the helper.
import _socket
import errno
import os
from _socket import (
    AF_INET,
    AF_INET6,
    SHUT_WR,
    SO_ERROR,
    SO_REUSEADDR,
    SOCK_CLOEXEC,
    SOCK_NONBLOCK,
    SOCK_STREAM,
    SOL_SOCKET,
)

from agentcore_sandbox.helper.channel import Channel, number_of
from agentcore_sandbox.helper.errors import Refused
from agentcore_sandbox.helper.loop import Flag
from agentcore_sandbox.helper.stream import DATA, STREAM_IN, STREAM_OUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from agentcore_sandbox.helper.loop import Loop, Steps

Socket = _socket.socket
_KIND = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC
_BACKLOG = 64
# Of all listeners. The rest waits in the backlog, so that no program inside can use up the helper's descriptors.
_MOST_CONNECTIONS = 128
_PAUSE = 0.1
_LAST_PORT = 65535
# A program that listens on "localhost" may mean either.
_HERE = ((AF_INET, "127.0.0.1"), (AF_INET6, "::1"))


def connect(channel: Channel, asked: dict[str, Any]) -> Steps[dict[str, Any]]:
    """Connect to a port inside."""
    port = number_of(asked, "port", 1, _LAST_PORT)
    connection = yield from _connect(channel.loop, port)
    channel.answer(0, port=port)
    return (yield from carry(channel, connection))


def _connect(loop: Loop, port: int) -> Steps[Socket]:
    failure = errno.ECONNREFUSED
    for family, address in _HERE:
        try:
            connection = Socket(family, _KIND)
        except OSError as error:
            failure = error.errno or failure
            continue
        try:
            number = connection.connect_ex((address, port))
            if number == errno.EINPROGRESS:
                yield loop.writable(connection.fileno())
                number = connection.getsockopt(SOL_SOCKET, SO_ERROR)
        except BaseException:
            _close(loop, connection)
            raise
        if number == 0:
            return connection
        _close(loop, connection)
        failure = number
    raise Refused(f"Cannot connect to port {port} in the box: {os.strerror(failure)}.")


def listen(
    channel: Channel, asked: dict[str, Any], accept: Callable[[Channel, Socket], Flag], connections: set[Flag]
) -> Steps[dict[str, Any]]:
    """Listen on a port inside.

    `accept` gives a connection a channel, and returns the flag that is fired at its end; the flags of those that are open are kept in
    `connections`, which all listeners share.
    """
    loop = channel.loop
    listener = Socket(AF_INET, _KIND)
    try:
        try:
            listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", number_of(asked, "port", 0, _LAST_PORT)))
            listener.listen(_BACKLOG)
        except OSError as error:
            raise Refused(f"Cannot listen on port {asked['port']} in the box: {error.strerror}.") from None
        channel.answer(0, port=listener.getsockname()[1])
        while True:
            if len(connections) >= _MOST_CONNECTIONS:
                yield _PAUSE
                continue
            try:
                descriptor = _accept(listener)
            except BlockingIOError:
                yield loop.readable(listener.fileno())
                continue
            except OSError:
                # As when there are no descriptors left: those that are open end some time.
                yield _PAUSE
                continue
            connection = Socket(AF_INET, SOCK_STREAM, 0, descriptor)
            connection.setblocking(False)
            ended = accept(channel, connection)
            connections.add(ended)
            loop.start(_forget(connections, ended))
    finally:
        _close(loop, listener)


def _accept(listener: Any) -> int:
    """Accept a connection. The public function for it belongs to the module `socket`."""
    return listener._accept()[0]


def _forget(connections: set[Flag], ended: Flag) -> Steps[None]:
    yield ended
    connections.discard(ended)


def carry(channel: Channel, connection: Socket) -> Steps[dict[str, Any]]:
    """Carry bytes in both directions until both have ended."""
    loop = channel.loop
    feeding = loop.start(_feed(channel, connection))
    try:
        while True:
            room = yield from channel.room()
            try:
                data = connection.recv(room)
            except BlockingIOError:
                yield loop.readable(connection.fileno())
                continue
            except OSError as error:
                raise Refused(f"The connection broke: {error.strerror}.", "broken") from None
            if not data:
                break
            yield from channel.send(data, DATA)
        channel.end_stream(STREAM_OUT)
        while not feeding.done:
            yield feeding.ended
        return {}
    finally:
        feeding.cancel()
        _close(loop, connection)


def _feed(channel: Channel, connection: Socket) -> Steps[None]:
    broken = False
    while True:
        data = yield from channel.receive()
        if data is None:
            break
        view = memoryview(data)
        while view and not broken:
            try:
                view = view[connection.send(view) :]
            except BlockingIOError:
                yield channel.loop.writable(connection.fileno())
            except OSError:
                # Nobody reads there any more; what still comes is thrown away, so that nobody waits for room.
                broken = True
                channel.end_stream(STREAM_IN)
    try:
        connection.shutdown(SHUT_WR)
    except OSError:
        pass


def _close(loop: Loop, connection: Socket) -> None:
    loop.forget(connection.fileno())
    connection.close()
