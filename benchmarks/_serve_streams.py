"""What it costs to deliver events to watchers, and what a watcher holds that does not read."""

from __future__ import annotations

from contextlib import AsyncExitStack

import anyio
import httpx
from _report import Report, Settings
from _serving import open_watcher, read_all, start_server

EVENTS = {1: 500, 100: 50, 1000: 10}
ROUNDS = {1: 8, 100: 5, 1000: 3}
"""The quickest counts: what else the machine does makes one slower, and never quicker."""
STALLED = 20
FLOOD = 500
"""Events of 40 KB: more than a connection takes whose other side does not read."""


async def measure_streams(settings: Settings, found: Report) -> None:
    """Have events delivered by turns: ours, the bare one."""
    async with start_server("_stream_server.py") as port:
        for kind in ("ws", "sse"):
            for watchers in (1, 100, 1000) if not settings.tiny else (2,):
                events = settings.pick(EVENTS.get(watchers, 1), 3)
                spent: dict[str, list[float]] = {"ours": [], "bare": []}
                for _ in range(settings.pick(ROUNDS.get(watchers, 1), 1)):
                    for side, costs in spent.items():
                        costs.append(await deliver(port, side, kind, watchers, events))
                ours, bare = min(spent["ours"]), min(spent["bare"])
                name = f"{kind}_to_{watchers}"
                found.tell(f"{name}_cpu_us_per_event", ours * 1e6)
                found.tell(f"{name}_bare_cpu_us_per_event", bare * 1e6)
                found.hold(f"{name}_cpu_ratio", ours / bare, 1.5)


async def deliver(port: int, side: str, kind: str, watchers: int, events: int) -> float:
    """Have so many events delivered to so many watchers; return the server's CPU seconds for each delivery."""
    answer = await ask(port, "deliver", f"/{side}", kind, watchers=watchers, asked={"side": side, "events": events})
    return answer["cpu"] / watchers / events


async def measure_stalled(settings: Settings, found: Report) -> None:
    """Flood one watcher that reads, alone and beside some that do not."""
    events = settings.pick(FLOOD, 3)
    weights: list[float] = []
    for stalled in (0, STALLED):
        async with start_server("_stream_server.py") as port:
            answer = await ask(port, "flood", "/ours", "ws", watchers=1, asked={"events": events}, stalled=stalled)
            weights.append(answer["bytes"])
            assert settings.tiny or answer["behind"] == stalled
    found.tell("stalled_watcher_rss_kb", (weights[1] - weights[0]) / STALLED / 1e3)


async def ask(
    port: int, what: str, path: str, kind: str, *, watchers: int, asked: dict[str, object], stalled: int = 0
) -> dict[str, float]:
    """Open watchers, ask the server for something, and return its answer."""
    found: dict[str, float] = {}
    async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
        for number in range(watchers + stalled):
            stream = await stack.enter_async_context(await open_watcher(port, path, kind))
            if number < watchers:
                tasks.start_soon(read_all, stream)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=300) as client:
            answer = (await client.post(f"/{what}", json={**asked, "watchers": watchers + stalled})).raise_for_status()
            found.update(answer.json())
        tasks.cancel_scope.cancel()
    return found
