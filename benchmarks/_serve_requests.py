"""What requests cost: creating a conversation, a page of the list, and a command in a workspace."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from time import perf_counter

import httpx
from _report import Report, Settings, median
from _serve_work import client_of, usage
from _serving import start_server

from agentcore import LocalWorkspace
from agentcore.remote import RemoteWorkspace

LISTED = 10_000


async def measure_requests(settings: Settings, found: Report) -> None:
    """Measure each against what it stands on, by turns."""
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        async with start_server("_work_server.py", folder, "1") as port, client_of(port) as client:
            await measure_create(client, settings, found)
            await measure_page(client, settings, found)
            await measure_command(client, port, folder, settings, found)


async def measure_create(client: httpx.AsyncClient, settings: Settings, found: Report) -> None:
    """Create conversations over HTTP, and open as many in the server's process without it. The CPU is the server's."""
    number = settings.pick(20, 1)
    cpu: dict[str, list[float]] = {"http": [], "local": []}
    wall: dict[str, list[float]] = {"http": [], "local": []}
    for _ in range(settings.pick(8, 1)):
        answer = (await client.get(f"/here/open?number={number}")).raise_for_status().json()
        cpu["local"].append(answer["cpu"])
        wall["local"].append(answer["wall"])
        spent = await spend(client, number, lambda: client.post("/api/v1/conversations", json={}))
        cpu["http"].append(spent[0])
        wall["http"].append(spent[1])
    found.tell("create_cpu_ms", median(cpu["http"]) * 1e3)
    found.tell("local_open_cpu_ms", median(cpu["local"]) * 1e3)
    found.hold("create_cpu_ratio", median(cpu["http"]) / median(cpu["local"]), 3)
    found.tell("create_wall_ms", median(wall["http"]) * 1e3)
    found.hold("create_wall_ratio", median(wall["http"]) / median(wall["local"]), 3)


async def measure_page(client: httpx.AsyncClient, settings: Settings, found: Report) -> None:
    """Ask for the newest 50 of many: the list, and a bare route that runs the same statement."""
    listed = settings.pick(LISTED, 60)
    owner = (await client.post("/api/v1/conversations", json={})).raise_for_status().json()["owner"]
    (await client.get(f"/here/fill?number={listed}&owner={owner}")).raise_for_status()
    paths = {"list": "/api/v1/conversations", "sql": f"/here/page?owner={owner}"}
    ids = [[each["id"] for each in (await client.get(path)).json()["items"]] for path in paths.values()]
    assert ids[0] == ids[1], "they are not the same page"
    cpu: dict[str, list[float]] = {"list": [], "sql": []}
    for _ in range(settings.pick(8, 1)):
        for side, path in paths.items():
            cpu[side].append((await spend(client, settings.pick(50, 1), lambda path=path: client.get(path)))[0])
    found.tell("page_cpu_ms", median(cpu["list"]) * 1e3)
    found.tell("page_bare_cpu_ms", median(cpu["sql"]) * 1e3)
    found.hold("page_cpu_ratio", median(cpu["list"]) / median(cpu["sql"]), 2)
    searched = f"/api/v1/conversations?text={listed - 1}"
    found.tell("search_cpu_ms", (await spend(client, settings.pick(50, 1), lambda: client.get(searched)))[0] * 1e3)


async def measure_command(client: httpx.AsyncClient, port: int, folder: str, settings: Settings, found: Report) -> None:
    """Run a command here and there, and make a bare round trip."""
    took: dict[str, list[float]] = {"remote": [], "local": [], "trip": []}
    async with LocalWorkspace(folder) as local, RemoteWorkspace(f"http://127.0.0.1:{port}") as remote:
        ways: dict[str, Callable[[], Awaitable[object]]] = {
            "remote": lambda: remote.run("true"),
            "local": lambda: local.run("true"),
            "trip": lambda: client.get("/here/hello"),
        }
        for _ in range(settings.pick(80, 1)):
            for name, do in ways.items():
                began = perf_counter()
                await do()
                took[name].append(perf_counter() - began)
    remote_s, local_s, trip_s = (median(each) for each in took.values())
    found.tell("remote_command_wall_ms", remote_s * 1e3)
    found.tell("local_command_wall_ms", local_s * 1e3)
    found.tell("round_trip_wall_ms", trip_s * 1e3)
    found.hold("remote_command_wall_ratio", remote_s / (local_s + 2 * trip_s), 1)


async def spend(
    client: httpx.AsyncClient, number: int, do: Callable[[], Awaitable[httpx.Response]]
) -> tuple[float, float]:
    """Do something so many times; return the server's CPU and the time for each."""
    began, clock = await usage(client), perf_counter()
    for _ in range(number):
        (await do()).raise_for_status()
    wall = perf_counter() - clock
    return ((await usage(client))["cpu"] - began["cpu"]) / number, wall / number
