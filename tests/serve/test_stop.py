"""SIGTERM: every stream gets its `bye`, the steps under way come to their end, and then the process ends."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import httpx
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from httpx_ws import WebSocketDisconnect, aconnect_ws

from agentcore.errors import ConnectionLost
from agentcore.remote.workspace import RemoteWorkspace
from agentcore.testing import Gate, say, serve_provider
from agentcore.testing.workspace_process_contract import still_alive, wait_for_lines
from agentcore.workspace import LocalWorkspace

API = "/api/v1"
KEY = "k" * 40
HEADERS = {"authorization": f"Bearer {KEY}"}

_UVICORN = """
import socket, sys, uvicorn
from agentcore_serve import create_app
app = create_app()
if sys.argv[1:]:
    from fastapi import FastAPI
    app, served = FastAPI(lifespan=app.lifespan), app
    app.mount("/agents", served)
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(512)
print('{"url": "http://127.0.0.1:%d"}' % listener.getsockname()[1], flush=True)
config = uvicorn.Config(app, ws="websockets-sansio", log_level="warning", lifespan="on")
uvicorn.Server(config).run(sockets=[listener])
"""


_MOUNTED_ON_HYPERCORN = """
import signal, socket, anyio
from hypercorn.asyncio import serve
from hypercorn.config import Config, Sockets
from starlette.applications import Starlette
from agentcore_serve import create_app

served = create_app()
app = Starlette(lifespan=served.lifespan)
app.mount("/agents", served)

class OnAFreePort(Config):
    graceful_timeout = 600
    def create_sockets(self):
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        print('{"url": "http://127.0.0.1:%d"}' % listener.getsockname()[1], flush=True)
        return Sockets([], [listener], [])

async def end():
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            return await served.drain()

anyio.run(lambda: serve(app, OnAFreePort(), shutdown_trigger=end))
"""

_COMMAND_LINE = """
from agentcore.cli import main, serve
serve._GRACE_SECONDS = 600
main()
"""

ServerKind = Literal["hypercorn", "uvicorn", "in Starlette on hypercorn", "in FastAPI on uvicorn"]

# Their bounds are longer than a test may take: a server that ends in time was not ended by one, however slow the machine is.
_COMMANDS: dict[ServerKind, list[str]] = {
    "hypercorn": ["-c", _COMMAND_LINE, "serve", "--log", "none"],
    "uvicorn": ["-c", _UVICORN],
    "in Starlette on hypercorn": ["-c", _MOUNTED_ON_HYPERCORN],
    "in FastAPI on uvicorn": ["-c", _UVICORN, "mounted"],
}


@asynccontextmanager
async def server_process(
    tmp_path: Path, surroundings: dict[str, str], server: ServerKind, base_url: str
) -> AsyncGenerator[tuple[Process, str]]:
    """Start a server in a process of its own, and give it and its address."""
    tmp_path.joinpath("agents.toml").write_text(
        f'[agents.coder]\nmodel = "openai/scripted"\nbase_url = "{base_url}"\nsettings = {{ api_mode = "chat" }}\n'
    )
    tmp_path.joinpath("key").write_text(KEY)
    environment = {
        **surroundings,
        "HOME": str(tmp_path),
        "OPENAI_API_KEY": "sk-not-a-key",
        "AGENTCORE_SERVE_STORE": str(tmp_path / "store"),
        "AGENTCORE_SERVE_ROOT": str(tmp_path / "root"),
        "AGENTCORE_SERVE_AGENTS": str(tmp_path / "agents.toml"),
        "AGENTCORE_SERVE_API_KEY_FILE": str(tmp_path / "key"),
        "AGENTCORE_SERVE_PORT": "0",
        "AGENTCORE_SERVE_DRAIN_SECONDS": "600",
    }
    async with await anyio.open_process(
        [sys.executable, *_COMMANDS[server]], env=environment, stderr=sys.stderr, stdin=subprocess.DEVNULL, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 10_000)
        try:
            yield process, json.loads(line)["url"] + ("/agents" if server.startswith("in ") else "")
        finally:
            if process.returncode is None:
                process.kill()


async def follow_sse(client: httpx.AsyncClient, path: str, ends: list[str], opened: anyio.Event) -> None:
    """Read a stream to its end, and note what it ended with."""
    last = ""
    async with client.stream("GET", f"{path}/stream", timeout=60) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("event: "):
                last = line.removeprefix("event: ")
                opened.set()
    ends.append(last)


async def follow_websocket(client: httpx.AsyncClient, path: str, ends: list[str], opened: anyio.Event) -> None:
    """Read a socket to its end, and note what it ended with."""
    last = ""
    try:
        async with aconnect_ws(f"{path}/stream", client, keepalive_ping_interval_seconds=None) as socket:
            while True:
                for frame in (await socket.receive_text()).splitlines():
                    last = json.loads(frame)["type"]
                    opened.set()
    except* WebSocketDisconnect:
        pass
    ends.append(last)


async def _stop_in_the_middle(tmp_path: Path, surroundings: dict[str, str], server: ServerKind, count: int) -> None:
    gate = Gate()

    def reply(request: Any) -> Any:
        return gate.hold(say("Done."))

    ends: list[str] = []
    async with (
        serve_provider(reply) as provider,
        server_process(tmp_path, surroundings, server, provider.base_url) as (process, url),
        httpx.AsyncClient(
            base_url=url, headers=HEADERS, timeout=60, limits=httpx.Limits(max_connections=None)
        ) as client,
    ):
        paths: list[str] = []
        for _ in range(count):
            made = await client.post(f"{API}/conversations", json={})
            assert made.status_code == 201, made.text
            paths.append(f"{API}/conversations/{made.json()['id']}")
        async with anyio.create_task_group() as tasks:
            opened = [anyio.Event() for _ in range(2 * count)]
            for number, path in enumerate(paths):
                tasks.start_soon(follow_sse, client, path, ends, opened[2 * number])
                tasks.start_soon(follow_websocket, client, path, ends, opened[2 * number + 1])
            for event in opened:
                await event.wait()
            for path in paths:
                assert (await client.post(f"{path}/run", json={"text": "Go"})).status_code == 202
            await gate.arrived(count)
            process.send_signal(signal.SIGTERM)
        assert ends == ["bye"] * 2 * count
        assert process.returncode is None  # the steps still work
        gate.open()
        code = await process.wait()
        assert code == (-signal.SIGTERM if "uvicorn" in server else 0)
    # What was under way was ended in order: the reply is in each log, and nothing was interrupted.
    logs = [path.read_text() for path in (tmp_path / "store").glob("*/events.jsonl")]
    assert len(logs) == count
    assert all("Done." in log and '"interrupt"' not in log for log in logs)


@pytest.mark.slow
@pytest.mark.parametrize("server", _COMMANDS)
async def test_streams_get_bye_and_runs_end_their_step(
    server: ServerKind, tmp_path: Path, surroundings: dict[str, str]
) -> None:
    with anyio.fail_after(60):
        await _stop_in_the_middle(tmp_path, surroundings, server, 5)


@pytest.mark.slow
@pytest.mark.parametrize("server", _COMMANDS)
async def test_a_hundred_streams_of_each_kind_get_bye(
    server: ServerKind, tmp_path: Path, surroundings: dict[str, str]
) -> None:
    with anyio.fail_after(240):
        await _stop_in_the_middle(tmp_path, surroundings, server, 100)


@pytest.mark.slow
@pytest.mark.parametrize("server", _COMMANDS)
async def test_what_clients_run_ends_with_the_server(
    server: ServerKind, tmp_path: Path, surroundings: dict[str, str]
) -> None:
    lost: list[str] = []
    with anyio.fail_after(60):
        async with (
            server_process(tmp_path, surroundings, server, "http://127.0.0.1:9") as (process, url),
            RemoteWorkspace(url, api_key=KEY, path="project", reconnect_seconds=5) as workspace,
            LocalWorkspace(tmp_path / "root" / "project") as here,
        ):

            async def wait(call: Callable[[], Awaitable[object]]) -> None:
                try:
                    await call()
                except ConnectionLost as error:
                    lost.append(str(error))

            async with (
                workspace.open_process("echo $$ >>pids; exec sleep 1000") as remote,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(wait, remote.wait)
                tasks.start_soon(wait, lambda: workspace.run("echo $$ >>pids; exec sleep 1000"))
                pids = await wait_for_lines(here, "pids", 2)
                process.send_signal(signal.SIGTERM)
                code = await process.wait()
                assert code == (-signal.SIGTERM if "uvicorn" in server else 0)
                assert not await still_alive(here, pids)
    # Both clients know, and that of the command by an answer: its connection was not cut.
    assert len(lost) == 2
    assert any("then cut off" in each for each in lost)
    assert [each.count("is lost") for each in lost] == [1, 1]


@pytest.mark.slow
async def test_a_second_signal_ends_the_process_at_once(tmp_path: Path, surroundings: dict[str, str]) -> None:
    gate = Gate()

    def reply(request: Any) -> Any:
        return gate.hold(say("Done."))

    with anyio.fail_after(60):
        async with (
            serve_provider(reply) as provider,
            server_process(tmp_path, surroundings, "hypercorn", provider.base_url) as (process, url),
            httpx.AsyncClient(base_url=url, headers=HEADERS, timeout=60) as client,
        ):
            path = f"{API}/conversations/{(await client.post(f'{API}/conversations', json={})).json()['id']}"
            await client.post(f"{path}/run", json={"text": "Go"})
            await gate.arrived()
            process.send_signal(signal.SIGTERM)
            while (await client.get("/readyz")).status_code == 200:
                pass
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 128 + signal.SIGTERM
            gate.open()


@pytest.mark.slow
async def test_a_port_that_is_taken_and_settings_that_are_wrong_are_one_sentence(
    tmp_path: Path, surroundings: dict[str, str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        cases = [
            (["--port", str(port)], f"error: 127.0.0.1:{port} is in use."),
            (["--host", "0.0.0.0"], "error: Keys would travel to 0.0.0.0 in plain text."),
            (["--agents", "/nowhere.toml"], "error: /nowhere.toml: it cannot be read"),
            (
                ["--tls-cert", "/nowhere.pem", "--tls-key", "/nowhere.pem"],
                "error: --tls-cert: no such file: '/nowhere.pem'",
            ),
            (["--tls-cert", __file__, "--tls-key", __file__], "error: --tls-cert and --tls-key are not a certificate"),
        ]
        for options, sentence in cases:
            done = await anyio.run_process(
                [sys.executable, "-m", "agentcore", "serve", "--store", str(tmp_path / "store"), *options],
                env={**surroundings, "HOME": str(tmp_path)},
                check=False,
            )
            assert done.returncode != 0
            assert done.stdout == b""
            assert done.stderr.decode().startswith(sentence), done.stderr
            assert len(done.stderr.splitlines()) == 1
    assert tmp_path.is_dir()


@pytest.mark.slow
async def test_a_file_that_is_not_a_socket_stays_and_is_named(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine", encoding="utf-8")
    command = ["serve", "--unix", str(file), "--store", str(tmp_path / "store"), "--root", str(tmp_path)]
    ended = await anyio.run_process([sys.executable, "-m", "agentcore", *command], check=False)
    assert ended.returncode == 2
    assert b"is not a socket" in ended.stderr
    assert file.read_text(encoding="utf-8") == "mine"
