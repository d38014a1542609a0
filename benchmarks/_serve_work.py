"""What watchers cost 100 conversations that work, and what 1,000 that rest hold in memory."""

from __future__ import annotations

import tempfile
from contextlib import AsyncExitStack
from time import perf_counter

import anyio
import httpx
from _report import Report, Settings, median
from _serving import open_watcher, read_all, start_server

CONVERSATIONS = 100
WATCHERS = 1000
IDLE = 1000
ROUNDS = 3


async def measure_work(settings: Settings, found: Report) -> None:
    """Have all of them work by turns: watched by nobody, and by many, of whom one reads nothing."""
    conversations = settings.pick(CONVERSATIONS, 2)
    watchers = settings.pick(WATCHERS, 4)
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        async with start_server("_work_server.py", folder, str(conversations)) as port, client_of(port) as client:
            ids = [
                (await client.post("/api/v1/conversations", json={"agent": f"a{number}"}))
                .raise_for_status()
                .json()["id"]
                for number in range(conversations)
            ]
            await work(client, ids)  # warm up
            sides: dict[str, list[dict[str, float]]] = {"alone": [], "watched": []}
            for _ in range(settings.pick(ROUNDS, 1)):
                sides["alone"].append(await work(client, ids))
                async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
                    for number in range(watchers):
                        path = f"/api/v1/conversations/{ids[number % conversations]}/stream?after=0"
                        kind = ("ws", "sse")[number % 2]
                        stream = await stack.enter_async_context(await open_watcher(port, path, kind))
                        if number:
                            tasks.start_soon(read_all, stream)
                    sides["watched"].append(await work(client, ids))
                    tasks.cancel_scope.cancel()
    for unit in ("wall", "cpu"):
        alone, watched = (median([each[unit] for each in sides[side]]) for side in sides)
        found.tell(f"{conversations}_working_{unit}_s", alone)
        found.tell(f"{conversations}_working_to_{watchers}_watchers_{unit}_s", watched)
        if unit == "wall":
            found.hold("working_watched_wall_ratio", watched / alone, 1.5)
        else:
            found.tell("working_watched_cpu_ratio", watched / alone)
    grown = [each["rss_after"] for each in sides["watched"]]
    found.tell("watched_rss_mb", grown[0] / 1e6)
    found.tell("watched_rss_last_round_to_first_ratio", grown[-1] / grown[0])


async def work(client: httpx.AsyncClient, ids: list[str]) -> dict[str, float]:
    """Run all conversations at once, to their end; return what the server took."""
    began, clock = await usage(client), perf_counter()

    async def run(conversation: str) -> None:
        path = f"/api/v1/conversations/{conversation}/run?wait=300"
        answer = await client.post(path, json={"text": "Find where the price is rounded."})
        assert answer.status_code == 200, answer.text

    async with anyio.create_task_group() as tasks:
        for each in ids:
            tasks.start_soon(run, each)
    wall, ended = perf_counter() - clock, await usage(client)
    return {"wall": wall, "cpu": ended["cpu"] - began["cpu"], "rss_after": ended["rss"]}


async def measure_idle(settings: Settings, found: Report) -> None:
    """Weigh conversations that are open and rest."""
    number = settings.pick(IDLE, 2)
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        async with start_server("_work_server.py", folder, "1") as port, client_of(port) as client:
            for _ in range(settings.pick(50, 1)):
                (await client.post("/api/v1/conversations", json={})).raise_for_status()
            began = await usage(client)
            for _ in range(number):
                (await client.post("/api/v1/conversations", json={})).raise_for_status()
            ended = await usage(client)
    found.tell("idle_conversation_rss_kb", (ended["rss"] - began["rss"]) / number / 1e3)


async def usage(client: httpx.AsyncClient) -> dict[str, float]:
    """Return the CPU and the memory of the server."""
    return (await client.get("/here/usage")).raise_for_status().json()


def client_of(port: int) -> httpx.AsyncClient:
    """Make a client."""
    # Shorter than hypercorn's 5 s, after which it closes a connection that somebody may be about to use.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=2)
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=300, limits=limits)
