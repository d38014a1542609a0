"""Connections that are secured: whom they trust, what is said of those they don't, and that none is left open."""

from __future__ import annotations

import gc
import shutil
import ssl
import subprocess
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import ByteStream, SocketAttribute
from anyio.streams.tls import TLSListener

from agentcore.errors import ModelConnectionError
from agentcore.llm import LLM
from agentcore.llm.native import clients
from model_route import ASK, KEY, read
from raw_server import hang, serve_raw

BODY = b'{"choices": [{"message": {"content": "Hi."}}]}'
REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
STREAM = (
    b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {"choices": [{"delta": {"content": "Hi"}}]}\n\n'
)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an authority that nobody knows, and a certificate of it for this machine."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl, for certificates: install openssl")
    where = tmp_path_factory.mktemp("tls")

    def run(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=where, check=True, capture_output=True)

    key = ("-newkey", "rsa:2048", "-nodes")
    signs = ("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign")
    run("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=Nobody", *signs)
    run("req", *key, "-keyout", "key.pem", "-out", "asked.pem", "-subj", "/CN=localhost")
    (where / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\nauthorityKeyIdentifier=keyid\n")
    by = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names")
    run("x509", "-req", "-in", "asked.pem", *by, "-out", "server.pem", "-days", "2")
    return where


@pytest.fixture
def trusting_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Certificates are read once per process."""
    monkeypatch.setattr(clients, "_tls", None)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    yield monkeypatch
    monkeypatch.setattr(clients, "_tls", None)


@asynccontextmanager
async def secured(where: Path, answer: bytes) -> AsyncGenerator[tuple[str, list[int]]]:
    """A server, and the numbers of connections that were secured and that were closed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(where / "server.pem", where / "key.pem")
    counts = [0, 0]

    async def serve(stream: ByteStream) -> None:
        counts[0] += 1
        try:
            async with stream:
                while await stream.receive():
                    await stream.send(answer)
        except (anyio.EndOfStream, anyio.BrokenResourceError, ssl.SSLError):
            counts[1] += 1

    async def listen(listener: TLSListener) -> None:
        await listener.serve(serve)

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listen, TLSListener(listener, context, standard_compatible=False))
        yield f"https://localhost:{listener.extra(SocketAttribute.local_port)}/v1", counts
        tasks.cancel_scope.cancel()


def model_at(url: str) -> LLM:
    return LLM(model="openai/m", base_url=url, api_key=KEY, num_retries=3, retry_min_wait=60)


@pytest.mark.slow
def test_the_authority_that_the_environment_names_is_trusted(
    anyio_backend: str, authority: Path, trusting_anew: pytest.MonkeyPatch
) -> None:
    trusting_anew.setenv("SSL_CERT_FILE", str(authority / "ca.pem"))

    async def main() -> None:
        with anyio.fail_after(30):
            async with secured(authority, REPLY) as (url, _):
                for address in (url, url.replace("localhost", "127.0.0.1")):
                    assert (await model_at(address).complete(ASK)).message.text == "Hi."

    anyio.run(main, backend=anyio_backend)


def test_a_certificate_that_nobody_trusts_is_said_at_once_and_what_to_do(
    anyio_backend: str, authority: Path, trusting_anew: pytest.MonkeyPatch
) -> None:
    del trusting_anew

    async def main() -> None:
        with anyio.fail_after(30):
            async with secured(authority, REPLY) as (url, counts):
                with pytest.raises(ModelConnectionError, match=r"certificate is not one that.*SSL_CERT_FILE") as raised:
                    await model_at(url).complete(ASK)
                assert not raised.value.retryable
                assert counts == [0, 0]

    anyio.run(main, backend=anyio_backend)


@pytest.mark.slow
def test_a_stream_that_is_left_closes_its_connection_without_waiting_for_the_other_side(
    anyio_backend: str, authority: Path, trusting_anew: pytest.MonkeyPatch
) -> None:
    trusting_anew.setenv("SSL_CERT_FILE", str(authority / "ca.pem"))

    async def main() -> None:
        with anyio.fail_after(30):
            async with secured(authority, STREAM) as (url, counts):
                for _ in range(3):
                    async with model_at(url).stream(ASK) as deltas:
                        await anext(deltas)
                while counts != [3, 3]:
                    await anyio.lowlevel.checkpoint()
                async with model_at(url).stream(ASK) as deltas:
                    await anext(deltas)
        # The loop ends in the same moment; what it left open would be a warning.

    anyio.run(main, backend=anyio_backend)
    gc.collect()


async def complete(model: LLM) -> object:
    return await model.complete(ASK)


@pytest.mark.parametrize("way", [complete, read])
async def test_a_connection_that_is_given_up_while_it_is_secured_is_closed(
    way: Callable[[LLM], Coroutine[Any, Any, object]],
) -> None:
    with anyio.fail_after(30):
        async with serve_raw(hang()) as server:
            model = model_at(server.url.replace("http://", "https://"))
            for connections in (1, 2, 3):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(way, model)
                    while server.accepted < connections:
                        await anyio.lowlevel.checkpoint()
                    tasks.cancel_scope.cancel()
                await server.idle()
