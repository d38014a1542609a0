"""Servers in processes of their own that are killed or told to end while conversations work on them, and those who watch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import psutil
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from httpx_ws import HTTPXWSException, aconnect_ws

from agentcore.llm import LLM

__all__ = ["API", "Fleet", "Watcher", "left_running", "model_at", "open_server", "provider_process"]

API = "/api/v1"

_PROVIDER = Path(__file__).with_name("ending_provider.py")

_SURROUNDINGS = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}


@asynccontextmanager
async def provider_process(notes: Path) -> AsyncGenerator[str]:
    """Run a provider of models in a process of its own, and give its address. Tools of the server write to `notes/there`."""
    environment = {**_SURROUNDINGS, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    async with _process([str(_PROVIDER), str(notes)], environment, notes) as (_, url):
        yield url


def model_at(base_url: str, key: str = "none-at-all") -> LLM:
    """Make the model of a provider."""
    return LLM("openai/scripted", base_url=base_url, api_key=key, num_retries=2)


@asynccontextmanager
async def _process(arguments: list[str], environment: dict[str, str], cwd: Path) -> AsyncGenerator[tuple[Process, str]]:
    async with await anyio.open_process(
        [sys.executable, *arguments], env=environment, stderr=sys.stderr, stdin=subprocess.DEVNULL, cwd=cwd
    ) as process:
        try:
            assert process.stdout is not None
            line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 10_000)
            yield process, json.loads(line)["url"]
        finally:
            if process.returncode is None:
                process.kill()


@asynccontextmanager
async def open_server(folder: Path, port: int = 0, **settings: str) -> AsyncGenerator[tuple[Process, str]]:
    """Run `agentcore serve` in a process of its own; give it and its address. Leaving the context kills it."""
    chosen = {
        "store": str(folder / "store"),
        "root": str(folder / "root"),
        "port": str(port),
        "auth": "false",
        "model_addresses": "127.0.0.0/8,localhost",
        "requests_per_minute": "1000000",
        **settings,
    }
    environment = {
        **_SURROUNDINGS,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "HOME": str(folder),
        "OPENAI_API_KEY": "sk-of-the-server",
        **{f"AGENTCORE_SERVE_{name.upper()}": value for name, value in chosen.items()},
    }
    arguments = ["-m", "agentcore", "serve", "--log", "none"]
    async with _process(arguments, environment, folder) as found:
        yield found


def left_running(folder: Path) -> list[str]:
    """Return the processes that a server whose home was this folder has left."""
    found: list[str] = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("HOME") == str(folder) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            pass
    return found


class Watcher:
    """Follows a conversation over the wire, over all ends of its server, and keeps what it saw."""

    def __init__(self, url: str, conversation_id: str, kind: str) -> None:
        self.seen: list[dict[str, Any]] = []
        """The events, in the order in which they came."""
        self.ends: list[str] = []
        """What each connection ended with: the type of its last frame."""
        self.conversation_id = conversation_id
        self._address = f"{url}{API}/conversations/{conversation_id}/stream"
        self._kind = kind
        self._birth: str | None = None
        self.opened = anyio.Event()
        self._moved = anyio.Event()

    @property
    def head(self) -> int:
        """The seq of the newest event that it saw."""
        return len(self.seen)

    async def until(self, head: int) -> None:
        """Wait until it has seen an event."""
        while self.head < head:
            self._moved = anyio.Event()
            await self._moved.wait()

    async def run(self, client: httpx.AsyncClient) -> None:
        """Follow until cancelled."""
        while True:
            await self.follow(client)
            await anyio.sleep(0.1)  # the server may be gone for a while

    async def follow(self, client: httpx.AsyncClient) -> None:
        """Follow one stream to its end."""
        last: list[str] = []
        try:
            await (self._follow_sse if self._kind == "sse" else self._follow_websocket)(client, last)
        except* (httpx.TransportError, HTTPXWSException, anyio.ClosedResourceError, anyio.EndOfStream):
            pass
        if last:
            self.ends.append(last[-1])

    async def _follow_sse(self, client: httpx.AsyncClient, last: list[str]) -> None:
        headers = {"Last-Event-ID": f"{self._birth}:{self.head}"} if self._birth else {}
        async with client.stream("GET", self._address, headers=headers, timeout=40) as answer:
            assert answer.status_code in (200, 503), answer.status_code
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    self._take(line.removeprefix("data: "), last)

    async def _follow_websocket(self, client: httpx.AsyncClient, last: list[str]) -> None:
        query = f"?after={self.head}&birth={self._birth}&deltas=0" if self._birth else "?deltas=0"
        async with aconnect_ws(self._address + query, client, keepalive_ping_interval_seconds=None) as socket:
            while True:
                for frame in (await socket.receive_text()).split("\n"):
                    if frame:
                        self._take(frame, last)

    def _take(self, text: str, last: list[str]) -> None:
        frame = json.loads(text)
        last.append(frame["type"])
        del last[:-1]
        if frame["type"] == "hello":
            self._birth = frame["birth"]
            self.opened.set()
        elif frame["type"] == "event":
            assert frame["seq"] == self.head + 1, f"{self._kind}: {frame['seq']} came after {self.head}"
            self.seen.append(frame["event"])
            self._moved.set()


class Fleet:
    """Many watchers at once."""

    def __init__(self, watchers: list[Watcher]) -> None:
        self.watchers = watchers

    @asynccontextmanager
    async def follow(self) -> AsyncGenerator[None]:
        """Have all follow while the context is open."""
        limits = httpx.Limits(max_connections=None)
        async with (
            httpx.AsyncClient(limits=limits, timeout=40, trust_env=False) as client,
            anyio.create_task_group() as tasks,
        ):
            for watcher in self.watchers:
                tasks.start_soon(watcher.run, client)
            yield
            tasks.cancel_scope.cancel()

    @property
    def total(self) -> int:
        """The events that all have seen."""
        return sum(watcher.head for watcher in self.watchers)
