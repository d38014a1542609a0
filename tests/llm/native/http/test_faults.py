"""What servers and networks do wrong: each ends in the right error or in another attempt, in bounded time, and is over then."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream

from agentcore.errors import BadRequest, ModelConnectionError, ModelError, ModelTimeout, ModelUnavailable, RateLimited
from agentcore.llm import LLM, Reply
from agentcore.testing.http import HTTPRequest, Responder, serve_http
from model_route import ASK, KEY, read
from raw_server import Act, RawServer, drip, hang, just, keep, reset, serve_raw
from rounds import some_quick

WHOLE: dict[str, Any] = {
    "id": "1",
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi there."}}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2},
}
JSON = json.dumps(WHOLE).encode()


def piece(text: str, finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish_reason}
    return b"data: " + json.dumps({"id": "1", "model": "m", "choices": [choice]}).encode() + b"\n\n"


BEGIN = piece("Hi ")
END = piece("there.") + piece("", "stop") + b"data: [DONE]\n\n"


def http(body: bytes, *headers: str, status: str = "200 OK", length: int | None = None) -> bytes:
    said = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *headers]
    return "\r\n".join([*said, "", ""]).encode() + body


def sse(body: bytes, *headers: str) -> bytes:
    """Without a length, the body ends with the connection."""
    head = "\r\n".join(["HTTP/1.1 200 OK", "Content-Type: text/event-stream", *headers, "", ""])
    return head.encode() + body


def chunked(body: bytes) -> bytes:
    return sse(b"%x\r\n%s\r\n" % (len(body), body), "Transfer-Encoding: chunked")


def model_at(url: str, **settings: Any) -> LLM:
    given = {"model": "openai/m", "base_url": f"{url}/v1", "api_key": KEY, "num_retries": 0, "route": "native"}
    return LLM.model_validate(given | {"retry_min_wait": 0, "retry_max_wait": 0} | settings)


async def complete(model: LLM) -> Reply:
    return await model.complete(ASK)


async def stream(model: LLM) -> Reply:
    return (await read(model))[1]


Way = Callable[[LLM], Awaitable[Reply]]
WAYS = [complete, stream]


@asynccontextmanager
async def served(*acts: Act) -> AsyncGenerator[RawServer]:
    """A server of which no connection may be left open."""
    with anyio.fail_after(30):
        async with serve_raw(*acts) as server:
            yield server
            await server.idle()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("429 Too Many Requests", RateLimited),
        ("500 Internal Server Error", ModelUnavailable),
        ("503 Service Unavailable", ModelUnavailable),
        ("529 Overloaded", ModelUnavailable),
    ],
)
async def test_what_passes_is_tried_again_and_said_when_it_does_not(
    way: Way, status: str, kind: type[ModelError]
) -> None:
    refusal = http(b'{"error": {"message": "not now"}}', status=status)
    async with served(just(refusal)) as server:
        with pytest.raises(kind, match="not now") as raised:
            await way(model_at(server.url))
        assert raised.value.retryable
    async with served(just(refusal), just(refusal), just(http(JSON))) as server:
        assert (await way(model_at(server.url, num_retries=2))).message.text == "Hi there."
        assert server.asked == 3


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("Retry-After: 7", 7, 7),
        ("Retry-After-Ms: 1500", 1.5, 1.5),
        ("Retry-After: Tue, 31 Dec 2199 23:59:59 GMT", 3600, math.inf),
        ("Retry-After: Fri, 31 Dec 1999 23:59:59 GMT", 0, 0),
        ("Retry-After: soon", None, None),
        ("X-Other: 1", None, None),
    ],
)
async def test_how_long_to_wait_is_read_from_what_the_provider_says(
    header: str, least: float | None, most: float | None
) -> None:
    async with served(just(http(b"slow down", header, status="429 Too Many Requests"))) as server:
        with pytest.raises(RateLimited, match="slow down") as raised:
            await complete(model_at(server.url))
    if least is None or most is None:
        assert raised.value.retry_after is None
    else:
        assert raised.value.retry_after is not None
        assert least <= raised.value.retry_after <= most


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nContent-Ty", http(b"", length=10)])
async def test_a_server_that_stalls_before_anything_is_said_is_given_up(way: Way, said: bytes) -> None:
    async with served(hang(said)) as server:
        with pytest.raises(ModelTimeout, match=r"within 0\.1 s"):
            await way(model_at(server.url, timeout=0.1))


def repeat(begin: bytes, sign: bytes) -> Act:
    """Say something again and again, for ever."""

    async def act(connection: SocketStream) -> bool:
        await connection.send(begin)
        while True:
            await anyio.sleep(0.02)
            await connection.send(sign)

    return act


@pytest.mark.parametrize(
    ("way", "act", "words"),
    [
        *((stream, hang(sse(said)), "no reply began") for said in (b"", b": a comment\n\n", b"data: {", BEGIN[:-1])),
        (stream, repeat(sse(b""), b": still here\n\n"), "no reply began"),
        (complete, repeat(http(b"", length=1_000_000), b" "), "no reply within"),
        (stream, hang(sse(BEGIN)), r"nothing more came within 0\.2 s"),
        *(
            (stream, repeat(sse(BEGIN), sign), r"nothing more came within 0\.2 s")
            for sign in (b": k\n\n", b"data:\n\n", b'event: ping\ndata: {"type": "ping"}\n\n', b"\n")
        ),
    ],
)
async def test_signs_of_life_alone_keep_no_reply_alive(way: Way, act: Act, words: str) -> None:
    async with served(act) as server:
        with pytest.raises(ModelTimeout, match=words):
            await way(model_at(server.url, timeout=0.2, stream_idle_timeout=0.2))


async def test_a_reader_who_takes_long_is_no_silence() -> None:
    async with served(just(sse(BEGIN + END))) as server:
        async with model_at(server.url, stream_idle_timeout=0.05).stream(ASK) as deltas:
            async for _ in deltas:
                await anyio.sleep(0.1)
    assert deltas.reply.message.text == "Hi there."


@pytest.mark.parametrize(
    "said",
    [
        sse(b""),
        sse(BEGIN),
        sse(BEGIN[:-20]),
        sse(BEGIN + piece("there.")),
        chunked(BEGIN),
        chunked(BEGIN) + b"0\r\n\r\n",
        chunked(BEGIN) + b"ffff\r\nhalf a chunk",
    ],
)
async def test_half_a_stream_is_an_error_that_may_pass(said: bytes) -> None:
    async with served(just(said)) as server:
        with pytest.raises((ModelConnectionError, ModelUnavailable)) as raised:
            await stream(model_at(server.url))
        assert raised.value.retryable


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 2", http(JSON[:50], length=len(JSON)), http(b"", length=5)])
async def test_a_connection_that_breaks_is_named_and_may_be_tried_again(way: Way, said: bytes) -> None:
    for act in (just(said), reset(said)):
        async with served(act) as server:
            with pytest.raises(ModelConnectionError, match=server.url) as raised:
                await way(model_at(server.url))
            assert raised.value.retryable


async def test_a_stream_whose_connection_is_reset_in_the_middle_starts_over() -> None:
    async with served(reset(sse(BEGIN)), just(sse(BEGIN + END))) as server:
        assert (await stream(model_at(server.url, num_retries=1))).message.text == "Hi there."


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", some_quick(["application/json", "text/event-stream", "text/plain", "text/html"], 4))
async def test_json_is_read_whatever_it_is_said_to_be(way: Way, kind: str) -> None:
    async with served(just(http(b"\n" + JSON, f"Content-Type: {kind}"))) as server:
        assert (await way(model_at(server.url))).message.text == "Hi there."


@pytest.mark.parametrize("kind", ["text/plain", "application/octet-stream"])
async def test_a_stream_is_read_whatever_it_is_said_to_be(kind: str) -> None:
    async with served(just(http(BEGIN + END, f"Content-Type: {kind}"))) as server:
        assert (await stream(model_at(server.url))).message.text == "Hi there."


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("status", ["200 OK", "502 Bad Gateway"])
async def test_a_page_is_shown_in_part_and_bytes_that_are_no_text_can_not_be_read(way: Way, status: str) -> None:
    page = b"<!DOCTYPE html><html><head><style>b{}</style></head><body><h1>Bad gateway</h1></body></html>"
    async with served(just(http(page, "Content-Type: text/html", status=status))) as server:
        with pytest.raises(ModelUnavailable, match="Bad gateway") as raised:
            await way(model_at(server.url))
    assert raised.value.retryable
    for body in (http(JSON.replace(b"Hi", b"\xff\xfe")), sse(BEGIN.replace(b"Hi", b"\xff\xfe"))):
        async with served(just(body)) as server:
            with pytest.raises(ModelUnavailable, match="can't be read"):
                await way(model_at(server.url))


@pytest.mark.parametrize("way", WAYS)
async def test_a_body_longer_than_was_said_is_cut_there_and_the_connection_not_used_again(way: Way) -> None:
    async with served(keep(http(JSON, length=len(JSON) - 1)), just(http(JSON))) as server:
        with pytest.raises(ModelError, match=r"can't be read|not HTTP") as raised:
            await way(model_at(server.url))
        assert raised.value.retryable
        assert (await way(model_at(server.url))).message.text == "Hi there."
        assert server.accepted == 2


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "squeeze"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
async def test_a_squeezed_answer_is_read(way: Way, name: str, squeeze: Callable[[bytes], bytes]) -> None:
    body = JSON if way is complete else BEGIN + END
    async with served(just(http(squeeze(body), f"Content-Encoding: {name}"))) as server:
        assert (await way(model_at(server.url))).message.text == "Hi there."
    async with served(just(http(b"not squeezed", f"Content-Encoding: {name}"))) as server:
        with pytest.raises(ModelConnectionError):
            await way(model_at(server.url))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
async def test_an_answer_that_drips_byte_by_byte_is_read_and_a_line_of_ten_megabytes(way: Way) -> None:
    async with served(drip(http(JSON) if way is complete else sse(BEGIN + END))) as server:
        assert (await way(model_at(server.url))).message.text == "Hi there."
    long = "x" * 10_000_000
    async with served(just(sse(piece(long) + END))) as server:
        assert (await stream(model_at(server.url))).message.text == f"{long}there."


@pytest.mark.parametrize("way", WAYS)
async def test_a_connection_that_the_server_closed_since_the_last_call_is_not_used(way: Way) -> None:
    async with served(just(http(JSON))) as server:
        for _ in range(3):
            assert (await way(model_at(server.url))).message.text == "Hi there."
            await server.idle()
        assert server.accepted == 3


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("close", [just(b""), reset()])
async def test_a_connection_that_the_server_closes_on_the_next_call_is_made_anew_at_once(way: Way, close: Act) -> None:
    async with served(keep(http(JSON)), close, just(http(JSON))) as server:
        for _ in range(2):
            assert (await way(model_at(server.url))).message.text == "Hi there."
        assert (server.accepted, server.asked) == (2, 3)


async def test_what_was_answered_in_part_is_not_asked_again_unseen() -> None:
    async with served(keep(http(JSON)), reset(http(b"{", length=100)), just(http(JSON))) as server:
        await complete(model_at(server.url))
        with pytest.raises(ModelConnectionError):
            await complete(model_at(server.url))
        assert server.asked == 2


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("status", ["301 Moved", "307 Temporary Redirect", "308 Permanent Redirect"])
async def test_an_address_that_sends_on_is_named_and_the_key_not_sent_there(way: Way, status: str) -> None:
    async with serve_raw(just(http(JSON))) as elsewhere:
        async with served(just(http(b"", f"Location: {elsewhere.url}/v1", status=status))) as server:
            with pytest.raises(BadRequest, match=rf"sends on to '{elsewhere.url}/v1'.*base_url") as raised:
                await way(model_at(server.url, num_retries=3))
            assert server.asked == 1
        assert elsewhere.asked == 0
    assert raised.value.status == int(status[:3])


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("act", [hang(), hang(b"HTTP/1.1 200 OK\r\n"), hang(sse(BEGIN)), drip(sse(BEGIN + END * 99))])
async def test_a_call_that_is_cancelled_at_any_moment_leaves_nothing(way: Way, act: Act) -> None:
    async with served(act) as server:
        for moment in range(15):
            with anyio.move_on_after(moment / 1_000):
                await way(model_at(server.url))
    assert not [task for task in anyio.get_running_tasks() if "model call" in (task.name or "")]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_proxy_of_the_environment_is_used_but_not_for_those_it_is_not_for(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    through: list[str] = []

    async def answer(request: HTTPRequest, responder: Responder) -> None:
        through.append(request.path)
        await responder.send(200, JSON, {"Content-Type": "application/json"})

    async def ask() -> None:
        with anyio.fail_after(30):
            async with serve_http(answer) as proxy, serve_raw(just(http(JSON))) as near:
                for variable in ("ALL_PROXY", "all_proxy", "http_proxy", "no_proxy", "HTTPS_PROXY", "https_proxy"):
                    monkeypatch.delenv(variable, raising=False)
                monkeypatch.setenv("HTTP_PROXY", proxy.url)
                monkeypatch.setenv("NO_PROXY", "127.0.0.1")
                far = model_at("http://provider.invalid")
                assert (await complete(far)).message.text == "Hi there."
                assert (await stream(far)).message.text == "Hi there."
                assert (await complete(model_at(near.url))).message.text == "Hi there."
                assert near.asked == 1

    anyio.run(partial(ask), backend=backend)
    assert through == ["http://provider.invalid/v1/chat/completions"] * 2
