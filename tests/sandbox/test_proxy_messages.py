"""The heads and bodies of HTTP at the proxy of a box: what is not exactly one message is not passed on."""

from __future__ import annotations

import pytest
from anyio.abc import SocketStream
from hypothesis import given
from hypothesis import strategies as st

from agentcore_sandbox.network.http_head import BadMessage, parse_request, parse_response
from agentcore_sandbox.network.proxy import ProxyLimits
from boxes_network import Responder, listening, open_proxy, read_all, status_of

GET = b"GET http://files.test/ HTTP/1.1\r\n"
POST = b"POST http://files.test/ HTTP/1.1\r\nHost: files.test\r\n"
BAD_HEADS = {
    "not HTTP": b"\x16\x03\x01",
    "no version": b"GET http://files.test/\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n",
    "two spaces": b"GET  http://files.test/ HTTP/1.1\r\n",
    "path alone": b"GET / HTTP/1.1\r\nHost: files.test\r\n",
    "star": b"OPTIONS * HTTP/1.1\r\nHost: files.test\r\n",
    "https in the open": b"GET https://files.test/ HTTP/1.1\r\nHost: files.test\r\n",
    "ftp": b"GET ftp://files.test/ HTTP/1.1\r\nHost: files.test\r\n",
    "user": b"GET http://files.test@evil.test/ HTTP/1.1\r\n",
    "backslash": b"GET http://evil.test\\@files.test/ HTTP/1.1\r\n",
    "fragment": b"GET http://files.test/#@evil.test HTTP/1.1\r\n",
    "no host": b"GET http:///etc/passwd HTTP/1.1\r\n",
    "CONNECT without a port": b"CONNECT files.test HTTP/1.1\r\n",
    "CONNECT with a URL": b"CONNECT http://files.test:443/ HTTP/1.1\r\n",
    "CONNECT with a path": b"CONNECT files.test:443/x HTTP/1.1\r\n",
    "CONNECT with a body": b"CONNECT files.test:443 HTTP/1.1\r\nContent-Length: 5\r\n",
    "two Host headers": GET + b"Host: files.test\r\nHost: files.test\r\n",
    "two Host headers in different cases": GET + b"Host: files.test\r\nhOST: evil.test\r\n",
    "Host header with a user": GET + b"Host: files.test@evil.test\r\n",
    "Host header with two hosts": GET + b"Host: files.test, evil.test\r\n",
    "Host header beyond ASCII": GET + b"Host: files.test\xff\r\n",
    "empty Host header": GET + b"Host:\r\n",
    "space before the colon": GET + b"Host : evil.test\r\n",
    "folded header": GET + b"X: 1\r\n Host: evil.test\r\n",
    "folded first header": GET + b" Host: evil.test\r\n",
    "no colon": GET + b"Host files.test\r\n",
    "bare line feed": GET + b"X: 1\nHost: evil.test\r\n",
    "bare line feed in the first line": b"GET http://files.test/ HTTP/1.1\nHost: evil.test\r\n",
    "bare carriage return": GET + b"X: 1\rHost: evil.test\r\n",
    "NUL": GET + b"X: 1\x00\r\n",
    "tab in the target": b"GET http://files.test/\t HTTP/1.1\r\n",
    "target beyond ASCII": b"GET http://files.test/\xc3\xa9 HTTP/1.1\r\n",
    "both lengths": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    "two lengths": POST + b"Content-Length: 5\r\nContent-Length: 6\r\n",
    "two equal lengths": POST + b"Content-Length: 5, 5\r\n",
    "signed length": POST + b"Content-Length: +5\r\n",
    "hexadecimal length": POST + b"Content-Length: 0x5\r\n",
    "length with a space inside": POST + b"Content-Length: 5 5\r\n",
    "empty length": POST + b"Content-Length:\r\n",
    "two encodings": POST + b"Transfer-Encoding: gzip, chunked\r\n",
    "two headers of encodings": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    "encoding with a tab inside": POST + b"Transfer-Encoding: \x0bchunked\r\n",
    "quoted encoding": POST + b'Transfer-Encoding: "chunked"\r\n',
    "unknown encoding": POST + b"Transfer-Encoding: xchunked\r\n",
    "chunks in HTTP/1.0": b"POST http://files.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n",
}


@pytest.mark.parametrize("name", BAD_HEADS)
async def test_a_head_that_is_not_one_is_refused_and_nothing_is_sent(name: str) -> None:
    async with open_proxy("files.test", "evil.test") as world:
        answer = await world.ask(BAD_HEADS[name] + b"\r\n0\r\n\r\n")
        assert status_of(answer) == 400
        assert world.names.asked == []
        await world.idle()


@pytest.mark.parametrize(
    "body",
    [
        b"zz\r\n",
        b"\r\n",
        b"-1\r\n",
        b"0x5\r\n",
        b"5 5\r\n",
        b"3\r\nabcd\r\n0\r\n\r\n",
        b"1\n",
        b"1" * 17 + b"\r\n",
        b"1;" + b"x" * 2000,
        b"0\r\n" + b"T: 1\r\n" * 100,
    ],
)
async def test_chunks_that_are_none_are_not_passed_on(body: bytes) -> None:
    async def swallow(stream: SocketStream) -> None:
        await read_all(stream)

    async with listening(swallow) as port, open_proxy(f"files.test:{port}") as world:
        head = f"POST http://files.test:{port}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        async with await world.connect() as stream:
            await stream.send(head.encode() + body)
            if body == b"1\n":
                await stream.send_eof()
            assert status_of(await read_all(stream)) == 400


async def test_a_body_that_ends_too_early_is_not_taken_for_a_whole_one() -> None:
    server = Responder(after=b"no answer")
    async with listening(server.handle) as port, open_proxy(f"files.test:{port}") as world:
        async with await world.connect() as stream:
            await stream.send(f"POST http://files.test:{port}/ HTTP/1.1\r\nContent-Length: 10\r\n\r\n12345".encode())
            await stream.send_eof()
            assert status_of(await read_all(stream)) == 400


async def test_a_head_that_is_too_long_or_too_slow_is_answered_so() -> None:
    async with open_proxy("files.test", limits=ProxyLimits(head_seconds=0.1)) as world:
        for long in (GET + b"X: " + b"a" * 40_000, b"G" * 200_000, GET + b"X: " + b"a" * 33_000 + b"\r\n\r\n"):
            assert status_of(await world.ask(long)) == 431
        assert status_of(await world.ask(GET)) == 408
        assert status_of(await world.ask(b"")) == 408


@pytest.mark.parametrize(
    "response",
    [b"", b"HTTP/1.1 200 OK\r\n", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 101 Switching Protocols\r\n\r\n", b"x" * 40_000],
)
async def test_an_answer_that_is_not_http_is_not_passed_on(response: bytes) -> None:
    async with listening(Responder(response).handle) as port, open_proxy(f"files.test:{port}") as world:
        answer = await world.ask(f"GET http://files.test:{port}/ HTTP/1.1\r\nHost: files.test:{port}\r\n\r\n")
        assert status_of(answer) == 502


@given(st.binary(max_size=300))
def test_any_head_is_parsed_or_refused(data: bytes) -> None:
    for head in (
        data,
        GET + b"Host: files.test\r\n" + data,
        b"GET http://" + data + b" HTTP/1.1",
        b"CONNECT " + data + b" HTTP/1.1",
    ):
        try:
            request = parse_request(head)
        except BadMessage:
            continue
        sent = request.encode()
        # It holds one request, with one Host header, and no line that is not ours or the client's.
        assert sent.count(b"\r\n\r\n") == 1
        assert sent.count(b"\nHost: ") == 1
        assert b"\n" not in sent.replace(b"\r\n", b"")
        again = parse_request(
            sent[:-4].replace(b" ", b" http://" + sent.partition(b"Host: ")[2].partition(b"\r\n")[0], 1)
        )
        assert (again.host, again.port, again.path or "/") == (request.host, request.port, request.path or "/")


@given(st.binary(max_size=200))
def test_any_response_is_parsed_or_refused(data: bytes) -> None:
    for head in (data, b"HTTP/1.1 200 OK\r\n" + data):
        try:
            status, sent = parse_response(head)
        except BadMessage:
            continue
        assert 100 <= status <= 999
        assert sent.count(b"\r\n\r\n") == 1
