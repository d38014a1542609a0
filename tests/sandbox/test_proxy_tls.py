"""The first message of TLS in a tunnel of the proxy: it names the host that was asked for, or goes nowhere."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agentcore_sandbox.network.client_hello import UNRECOGNIZED_NAME, HelloReader
from boxes_network import Responder, client_hello, listening, open_proxy, read_all


async def test_tls_that_names_another_server_is_refused_within_the_tunnel() -> None:
    server = Responder(after=b"no answer")
    async with listening(server.handle) as port, open_proxy(f"files.test:{port}", f"other.test:{port}") as world:
        for name in ("evil.test", "other.test", "sub.files.test"):
            async with await world.open_tunnel(f"files.test:{port}") as stream:
                await stream.send(client_hello(name))
                assert await read_all(stream) == UNRECOGNIZED_NAME
        async with await world.open_tunnel(f"files.test:{port}") as stream:
            await stream.send(b"\x16\x03\x01\x00\x04nope")
            assert await read_all(stream) == UNRECOGNIZED_NAME
        assert world.reasons == [("files.test", "server_name")] * 4
        for name in ("files.test", "FILES.test", None):
            async with await world.open_tunnel(f"files.test:{port}") as stream:
                await stream.send(client_hello(name))
                await stream.send_eof()
                assert await read_all(stream) == b""
        assert sorted(data[:1] for data in await server.wait_ended(7)) == [b""] * 4 + [b"\x16"] * 3


async def test_a_first_message_in_pieces_is_read_as_one() -> None:
    server = Responder(after=b"no answer")
    hello = client_hello("evil.test")
    # The same message in records of one byte each.
    split = b"".join(hello[:3] + b"\x00\x01" + hello[at : at + 1] for at in range(5, len(hello)))
    async with listening(server.handle) as port, open_proxy(f"files.test:{port}") as world:
        for data in (split, hello):
            async with await world.open_tunnel(f"files.test:{port}") as stream:
                await stream.send(data[:7])
                await stream.send(data[7:])
                assert await read_all(stream) == UNRECOGNIZED_NAME
        # One that is never complete reaches nobody.
        async with await world.open_tunnel(f"files.test:{port}") as stream:
            await stream.send(hello[:-1])
            await stream.send_eof()
            assert await read_all(stream) == b""
        assert await server.wait_ended(3) == [b""] * 3


@given(st.lists(st.integers(1, 600), max_size=8), st.sampled_from(["a.test", "b" * 60 + ".test"]))
def test_the_server_is_read_wherever_the_message_is_cut(cuts: list[int], name: str) -> None:
    hello = client_hello(name)
    reader = HelloReader()
    places = sorted({0, len(hello), *(cut for cut in cuts if cut < len(hello))})
    results = [reader.feed(hello[begin:end]) for begin, end in pairwise(places)]
    assert results == [None] * (len(results) - 1) + [(name,)]


@given(st.binary(max_size=200), st.booleans())
def test_any_beginning_of_a_connection_is_read_or_refused(data: bytes, is_tls: bool) -> None:
    begun = b"\x16\x03\x01" + len(data).to_bytes(2) + data if is_tls else data
    try:
        found = HelloReader().feed(begun)
    except ValueError:
        assert begun[:1] == b"\x16"
    else:
        assert begun[:1] == b"\x16" or found == (() if begun else None)
