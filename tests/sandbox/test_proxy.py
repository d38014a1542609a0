"""The proxy of a box: what it passes on, and what it refuses whatever a program inside tries."""

from __future__ import annotations

from contextlib import suppress

import anyio
import httpx
import pytest
from anyio.abc import SocketStream
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcore_sandbox.network.proxy import ProxyLimits, proxy_environment
from agentcore_sandbox.network.refusals import NetworkRefusal, Refusals
from boxes_network import Names, Responder, echo, listening, open_proxy, read_all, status_of


async def test_a_tunnel_to_an_allowed_host_carries_bytes_both_ways() -> None:
    async with listening(echo) as port, open_proxy(f"files.test:{port}") as world:
        async with await world.open_tunnel(f"Files.TEST.:{port}") as stream:
            await stream.send(b"hello" * 100_000)
            await stream.send_eof()
            assert await read_all(stream) == b"hello" * 100_000
        assert world.names.asked == ["files.test"]
        assert world.refused == []


async def test_the_end_of_one_way_leaves_the_other_open() -> None:
    async def answer_after_the_end(stream: SocketStream) -> None:
        data = await read_all(stream)
        await stream.send(b"%d bytes, and more after the end" % len(data))

    async with listening(answer_after_the_end) as port, open_proxy(f"files.test:{port}") as world:
        async with await world.open_tunnel(f"files.test:{port}") as stream:
            await stream.send(b"question")
            await stream.send_eof()
            assert await read_all(stream) == b"8 bytes, and more after the end"


async def test_a_server_that_speaks_first_is_heard() -> None:
    async def greet(stream: SocketStream) -> None:
        await stream.send(b"SSH-2.0-x\r\n")
        await read_all(stream)

    async with listening(greet) as port, open_proxy(f"git.test:{port}") as world:
        async with await world.open_tunnel(f"git.test:{port}") as stream:
            assert await stream.receive() == b"SSH-2.0-x\r\n"


async def test_plain_http_is_passed_on_without_what_belongs_to_the_connection() -> None:
    response = (
        b"HTTP/1.1 200 Fine\r\nX-Kept: 1\r\nKeep-Alive: timeout=5\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n"
        b"Content-Length: 2\r\n\r\nok"
    )
    server = Responder(response)
    async with listening(server.handle) as port, open_proxy(f"files.test:{port}") as world:
        answer = await world.ask(
            f"GET http://files.test:{port}/a%20b?c=d HTTP/1.1\r\nHost: files.test:{port}\r\nAccept: */*\r\n"
            "Proxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\nConnection: keep-alive, X-Private, Host\r\n"
            "X-Private: 1\r\nUpgrade: websocket\r\nTE: trailers\r\nKeep-Alive: 5\r\n\r\n"
        )
        await server.wait_ended()
    assert answer == b"HTTP/1.1 200 Fine\r\nX-Kept: 1\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
    assert server.received == [
        f"GET /a%20b?c=d HTTP/1.1\r\nHost: files.test:{port}\r\nAccept: */*\r\nConnection: close\r\n\r\n".encode()
    ]


async def test_a_body_is_passed_on_to_its_end_and_what_follows_is_dropped() -> None:
    smuggled = b"GET http://other.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n"
    for framing, body, sent in (
        ("Content-Length: 5", b"12345", b"12345"),
        (
            "Transfer-Encoding: chunked",
            b"3;name=value\r\nabc\r\n0A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n",
            b"3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n",
        ),
    ):
        server = Responder(after=sent)
        async with listening(server.handle) as port, open_proxy(f"files.test:{port}") as world:
            head = f"POST http://files.test:{port}/ HTTP/1.1\r\nHost: files.test:{port}\r\n{framing}\r\n\r\n"
            assert (await world.ask(head.encode() + body + smuggled)).endswith(b"ok")
            passed = f"POST / HTTP/1.1\r\nHost: files.test:{port}\r\nConnection: close\r\n{framing}\r\n\r\n"
            assert await server.wait_ended() == [passed.encode() + sent]


async def test_a_response_before_the_last_one_is_passed_on_too() -> None:
    async def continue_first(stream: SocketStream) -> None:
        await stream.receive()
        await stream.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        await stream.receive()
        await stream.send(b"HTTP/1.1 204 No Content\r\n\r\n")

    async with listening(continue_first) as port, open_proxy(f"files.test:{port}") as world:
        async with await world.connect() as stream:
            head = f"PUT http://files.test:{port}/ HTTP/1.1\r\nHost: files.test:{port}\r\n"
            await stream.send(f"{head}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n".encode())
            assert await stream.receive() == b"HTTP/1.1 100 Continue\r\n\r\n"
            await stream.send(b"ab")
            assert await read_all(stream) == b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"


async def test_a_refusal_says_what_is_allowed_and_what_the_user_can_do() -> None:
    async with open_proxy("example.com", "*.example.org:8443") as world:
        answer = await world.ask("CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n")
        assert world.names.asked == []  # not even its name is looked up
    head, _, body = answer.partition(b"\r\n\r\n")
    # Programs that print the status alone print the sentence with it.
    assert head.startswith(b"HTTP/1.1 403 evil.test:443 is not among the allowed hosts.\r\n")
    assert b"Allowed hosts: example.com, *.example.org:8443 (ports 443, 80 where none is named)." in body
    assert b'network=Allow(..., "evil.test")' in body
    assert world.refused == [NetworkRefusal("evil.test", 443, "host", "evil.test:443 is not among the allowed hosts.")]


async def test_programs_that_know_proxies_get_through_or_print_the_reason() -> None:
    async with listening(Responder().handle) as port, open_proxy(f"files.test:{port}") as world:
        async with httpx.AsyncClient(proxy=f"http://127.0.0.1:{world.port}", trust_env=False) as client:
            assert (await client.get(f"http://files.test:{port}/")).text == "ok"
            answer = await client.post("http://evil.test/", content=b"x" * 200_000)
            assert answer.status_code == 403
            assert answer.text.startswith("evil.test:80 is not among the allowed hosts.\nAllowed hosts: ")
            with pytest.raises(httpx.ProxyError, match=r"403 evil\.test:443 is not among the allowed hosts"):
                await client.get("https://evil.test/")


@pytest.mark.parametrize(
    "target",
    [
        "127.0.0.1:{port}",
        "[::ffff:127.0.0.1]:{port}",
        "[::1]:{port}",
        "169.254.169.254:80",
        "localhost:{port}",
        "files.test:22",
        "files.test.evil.test:{port}",
        "evil-files.test:{port}",
    ],
)
async def test_addresses_other_names_and_other_ports_are_refused(target: str) -> None:
    server = Responder()
    async with listening(server.handle) as port, open_proxy(f"files.test:{port}") as world:
        named = target.format(port=port)
        for request in (
            f"CONNECT {named} HTTP/1.1\r\nHost: {named}\r\n\r\n",
            f"GET http://{named}/ HTTP/1.1\r\nHost: {named}\r\n\r\n",
            f"CONNECT {named} HTTP/1.0\r\n\r\n",
        ):
            assert status_of(await world.ask(request)) == 403
        assert {reason for _, reason in world.reasons} == {"host"}
        assert world.names.asked == []
    assert server.accepted == 0


@pytest.mark.parametrize(
    "target", ["2130706433:{port}", "0x7f.1:{port}", "127.1:{port}", "files.test%00.evil.test:{port}"]
)
async def test_a_target_that_could_be_read_in_two_ways_is_refused(target: str) -> None:
    async with open_proxy("files.test") as world:
        assert status_of(await world.ask(f"CONNECT {target.format(port=443)} HTTP/1.1\r\n\r\n")) == 400
        assert world.names.asked == []


@pytest.mark.parametrize(
    ("addresses", "kind"),
    [
        ("10.0.0.5", "private"),
        ("169.254.169.254", "metadata"),
        ("::1", "loopback"),
        ("::ffff:10.0.0.5", "private"),
        ("127.0.0.1 192.168.0.1", "private"),  # one good address does not make up for another
    ],
)
async def test_an_allowed_name_that_leads_to_a_private_address_is_refused(addresses: str, kind: str) -> None:
    server = Responder()
    async with listening(server.handle) as port:
        async with open_proxy(f"files.test:{port}", names=Names(files_test=addresses)) as world:
            answer = await world.ask(f"CONNECT files.test:{port} HTTP/1.1\r\n\r\n")
            assert status_of(answer) == 403
            assert f"files.test:{port} leads to a {kind} address".encode() in answer
            assert world.reasons == [("files.test", "address")]
    assert server.accepted == 0


async def test_a_name_is_looked_up_once_for_each_connection_and_that_answer_is_used() -> None:
    """A name that answers with a good address for the check and with another one for the connection gains nothing."""
    async with listening(echo) as port:
        names = Names(files_test=["127.0.0.1", "10.0.0.5"])
        async with open_proxy(f"files.test:{port}", names=names) as world:
            async with await world.open_tunnel(f"files.test:{port}") as stream:
                assert names.asked == ["files.test"]
                await stream.send(b"still here")
                assert await stream.receive() == b"still here"
            answer = await world.ask(f"CONNECT files.test:{port} HTTP/1.1\r\n\r\n")
            assert status_of(answer) == 403
            assert names.asked == ["files.test"] * 2


@pytest.mark.parametrize("host", ["other.test", "files.test:1", "127.0.0.1", "files.test.evil.test", "allowed.test"])
async def test_a_host_header_that_names_another_host_is_refused(host: str) -> None:
    server = Responder()
    async with listening(server.handle) as port:
        async with open_proxy(f"files.test:{port}", f"allowed.test:{port}") as world:
            for first in (f"GET http://files.test:{port}/", f"CONNECT files.test:{port}"):
                assert status_of(await world.ask(f"{first} HTTP/1.1\r\nHost: {host}\r\n\r\n")) == 403
            assert world.reasons == [("files.test", "host_header")] * 2
    assert server.accepted == 0


async def test_a_redirect_comes_back_as_a_request_that_is_decided_by_itself() -> None:
    redirect = b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0\r\n\r\n"
    server = Responder(redirect)
    async with listening(server.handle) as port, open_proxy(f"files.test:{port}") as world:
        assert b"Location: http://169.254.169.254/latest" in await world.ask(
            f"GET http://files.test:{port}/ HTTP/1.1\r\nHost: files.test:{port}\r\n\r\n"
        )
        answer = await world.ask("GET http://169.254.169.254/latest HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n")
        assert status_of(answer) == 403


async def test_a_client_that_leaves_before_it_asks_is_no_fault() -> None:
    async with open_proxy("files.test") as world:
        for begun in (b"", b"GET http://files"):
            async with await world.connect() as stream:
                await stream.send(begun)
                await stream.send_eof()
                assert await read_all(stream) == b""


async def test_what_cannot_be_reached_is_answered_with_the_reason() -> None:
    async with listening(echo) as port:
        pass  # nobody listens there now
    async with open_proxy(f"files.test:{port}", f"none.test:{port}", names=Names(files_test="127.0.0.1")) as world:
        answer = await world.ask(f"CONNECT files.test:{port} HTTP/1.1\r\n\r\n")
        assert status_of(answer) == 502
        assert b"Connection refused" in answer
        answer = await world.ask(f"CONNECT none.test:{port} HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 502 none.test cannot be looked up: no such name.\r\n")
        assert world.refused == []


async def test_a_look_up_that_hangs_ends() -> None:
    class Hanging(Names):
        async def resolve(self, host: str, port: int) -> tuple[()]:
            await anyio.sleep_forever()
            raise AssertionError

    async with open_proxy("files.test", names=Hanging(), limits=ProxyLimits(connect_seconds=0.05)) as world:
        answer = await world.ask("CONNECT files.test:443 HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 504 No connection to files.test:443 within 0.05 s.\r\n")


async def test_connections_that_are_silent_end() -> None:
    async def say_nothing(stream: SocketStream) -> None:
        await read_all(stream)

    limits = ProxyLimits(idle_seconds=0.05)
    async with listening(say_nothing) as port, open_proxy(f"files.test:{port}", limits=limits) as world:
        async with await world.open_tunnel(f"files.test:{port}") as stream:
            assert await read_all(stream) == b""
        answer = await world.ask(f"GET http://files.test:{port}/ HTTP/1.1\r\n\r\n")
        assert status_of(answer) == 504
    limits = ProxyLimits(half_closed_seconds=0.05)
    async with listening(say_nothing_for_ever) as port, open_proxy(f"files.test:{port}", limits=limits) as world:
        async with await world.open_tunnel(f"files.test:{port}") as stream:
            await stream.send_eof()
            assert await read_all(stream) == b""


async def say_nothing_for_ever(stream: SocketStream) -> None:
    await read_all(stream)
    await anyio.sleep_forever()


async def test_64_connections_are_served_at_once_and_one_more_is_told() -> None:
    async with listening(echo) as port, open_proxy(f"files.test:{port}") as world:
        streams = [await world.open_tunnel(f"files.test:{port}") for _ in range(64)]
        assert world.proxy.connections == 64
        answer = await world.ask(f"CONNECT files.test:{port} HTTP/1.1\r\n\r\n")
        assert status_of(answer) == 503
        for at, stream in enumerate(streams):
            await stream.send(b"%d" % at)
        assert [await stream.receive() for stream in streams] == [b"%d" % at for at in range(64)]
        for stream in streams:
            await stream.aclose()
        await world.idle()
        async with await world.open_tunnel(f"files.test:{port}"):
            pass


async def test_a_flood_in_one_tunnel_does_not_stop_another() -> None:
    async def flood(stream: SocketStream) -> None:
        while True:
            await stream.send(bytes(65536))

    async def serve_flood(stream: SocketStream) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await flood(stream)

    async with listening(serve_flood) as loud, listening(echo) as quiet:
        async with open_proxy(f"loud.test:{loud}", f"quiet.test:{quiet}") as world:
            # One that is read as fast as it goes, and one that nobody reads.
            async with (
                await world.open_tunnel(f"loud.test:{loud}") as read,
                await world.open_tunnel(f"loud.test:{loud}"),
            ):

                async def drain() -> None:
                    async for _ in read:
                        pass

                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(drain)
                    async with await world.open_tunnel(f"quiet.test:{quiet}") as stream:
                        for at in range(20):
                            await stream.send(b"%d" % at)
                            assert await stream.receive() == b"%d" % at
                    tasks.cancel_scope.cancel()


async def test_cancelling_the_proxy_ends_both_sides_of_each_connection() -> None:
    server = Responder(after=b"no answer")
    async with listening(server.handle) as port:
        streams: list[SocketStream] = []
        async with open_proxy(f"files.test:{port}") as world:
            streams.append(await world.open_tunnel(f"files.test:{port}"))
            for begun in ("", "GET http", f"POST http://files.test:{port}/ HTTP/1.1\r\nContent-Length: 5\r\n\r\n12"):
                streams.append(await world.connect())
                await streams[-1].send(begun.encode())
            await world.wait_until(lambda: world.proxy.connections == len(streams) and server.accepted == 2)
        assert world.proxy.connections == 0
        with anyio.fail_after(30):
            assert [await read_all(stream) for stream in streams] == [b""] * 4
            assert len(await server.wait_ended(2)) == 2
        for stream in streams:
            await stream.aclose()


@settings(max_examples=15)
@given(data=st.binary(min_size=1, max_size=2000))
async def test_garbage_is_answered_or_ends_and_the_proxy_goes_on(data: bytes) -> None:
    async with open_proxy("files.test", limits=ProxyLimits(head_seconds=0.02)) as world:
        assert status_of(await world.ask(data + b"\r\n\r\n")) in (400, 408)
        await world.idle()
        assert world.names.asked == []


def test_programs_find_the_proxy_by_their_variables() -> None:
    assert proxy_environment(3128) == {
        "HTTP_PROXY": "http://127.0.0.1:3128",
        "HTTPS_PROXY": "http://127.0.0.1:3128",
        "NO_PROXY": "localhost,127.0.0.1,::1",
        "http_proxy": "http://127.0.0.1:3128",
        "https_proxy": "http://127.0.0.1:3128",
        "no_proxy": "localhost,127.0.0.1,::1",
        "NODE_USE_ENV_PROXY": "1",
    }


def test_refusals_are_logged_once_each_and_listed_since_a_mark(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    first = NetworkRefusal("a.test", 443, "host", "a.test:443 is not among the allowed hosts.")
    other = first._replace(host="b.test")
    refusals.add(first)
    mark = refusals.count
    for _ in range(3):
        refusals.add(first)
        refusals.add(other)
    assert refusals.since(mark) == (first, other)
    assert refusals.since(refusals.count) == ()
    assert len(caplog.records) == 2
    for number in range(2_000):
        refusals.add(first._replace(port=number))
    assert len(caplog.records) == 1001
    assert "network_refusals_not_logged" in caplog.records[-1].getMessage()
    assert len(refusals.since(0)) == 100
