"""Tunnels to ports in a box, and from there."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from boxes_raw import ANSWER, CANCEL, DATA, EACH_PYTHON, EOF, OPEN, RESULT, WINDOW, RawHelper, open_helper


@pytest.fixture(params=EACH_PYTHON)
def helper(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RawHelper]:
    with open_helper(request.param, tmp_path) as helper:
        yield helper


@contextmanager
def echo_server(address: str = "127.0.0.1") -> Generator[int]:
    """Return each connection's bytes in reverse when it has sent all of them."""
    with socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection, connection.makefile("rb") as file:
                    connection.sendall(file.read()[::-1])

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_bytes_go_both_ways_and_each_way_ends_by_itself(helper: RawHelper) -> None:
    data = bytes(range(256)) * 20_000
    with echo_server() as port:
        channel = helper.open("connect", port=port)
        assert helper.answer(channel) == {"id": 0, "port": port}
        left = memoryview(data)
        helper.send_data(channel, bytes(left[:WINDOW]))
        sent = WINDOW
        while sent < len(data):
            # As much as was used up.
            room = int.from_bytes(helper.wait_for(8, channel).payload[1:], "big")
            helper.send_data(channel, bytes(left[sent : sent + room]))
            sent += room
        helper.send(EOF, channel, b"\0")
        reply = helper.finish(channel)
    assert reply.data == data[::-1]
    assert reply.result == {}
    assert [frame.payload for frame in reply.frames if frame.kind == EOF] == [b"\1"]


def test_a_server_that_listens_on_the_newer_localhost_only_is_found(helper: RawHelper) -> None:
    try:
        with echo_server("::1") as port:
            assert helper.ask("connect", port=port, data=b"abc").data == b"cba"
    except OSError:
        pytest.skip("needs the address ::1 on lo: ip addr add ::1/128 dev lo")


def test_a_port_where_nobody_listens_is_said(helper: RawHelper) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    error = helper.ask("connect", port=port).result["error"]
    assert error["kind"] == "workspace"
    assert f"port {port}" in error["message"]
    for wrong in (0, -1, 65536, "80", None, True):
        assert "error" in helper.ask("connect", port=wrong).result


def test_a_connection_that_is_left_is_closed(helper: RawHelper) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        channel = helper.open("connect", port=server.getsockname()[1])
        connection, _ = server.accept()
        with connection:
            helper.wait_for(ANSWER, channel)
            helper.send(CANCEL, channel)
            assert helper.finish(channel).result == {"cancelled": True}
            assert connection.recv(1) == b""


def test_a_connection_that_breaks_is_an_error(helper: RawHelper) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        channel = helper.open("connect", port=server.getsockname()[1])
        connection, _ = server.accept()
        helper.wait_for(ANSWER, channel)
        # It is reset, and not ended.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.close()
        assert helper.finish(channel).result["error"]["kind"] == "broken"


def test_connections_that_come_to_a_port_inside_are_channels(helper: RawHelper) -> None:
    listener = helper.open("listen", port=0)
    port = helper.answer(listener)["port"]
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
    channels: list[int] = []
    while len(channels) < 3:
        frame = helper.frame()
        assert frame.kind == OPEN
        assert frame.value == {"op": "accept", "listener": listener}
        channels.append(frame.channel)
    assert channels == [2, 4, 6]
    for channel, client in zip(channels, clients, strict=True):
        client.sendall(b"hello")
        assert helper.wait_for(DATA, channel).payload == b"hello"
        helper.send(DATA, channel, b"answer")
        assert client.recv(100) == b"answer"
    # One ends after the other, the other is left by the client outside.
    clients[0].close()
    helper.send(EOF, channels[0], b"\0")
    assert helper.wait_for(RESULT, channels[0]).value == {}
    helper.send(CANCEL, channels[1])
    assert helper.wait_for(RESULT, channels[1]).value == {"cancelled": True}
    assert clients[1].recv(1) == b""
    assert "Cannot listen" in helper.ask("listen", port=port).message
    helper.send(CANCEL, listener)
    helper.finish(listener)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    # What was accepted lives on.
    helper.send(DATA, channels[2], b"still")
    assert clients[2].recv(100) == b"still"
    for client in clients:
        client.close()


def test_a_program_inside_cannot_use_up_the_helpers_files(helper: RawHelper) -> None:
    listener = helper.open("listen", port=0)
    port = helper.answer(listener)["port"]
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(160)]
    helper.ping()
    assert helper.ask("process", argv=["echo", "fine"]).data == b"fine\n"
    accepted = {frame.channel for frame in helper.waiting if frame.kind == OPEN}
    assert 0 < len(accepted) <= 128
    for client in clients:
        client.close()
