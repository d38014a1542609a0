"""What it takes until a server takes requests, from the start of its process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from time import perf_counter

from _report import Report, Settings, Spent

BARE = """
import socket
from hypercorn.config import Config, Sockets
from hypercorn.asyncio import serve
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
import anyio

async def hello(request):
    return PlainTextResponse("hello")

async def main():
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)

    class OneSocket(Config):
        def create_sockets(self):
            return Sockets([], [listener], [])

    app = Starlette(routes=[Route("/", hello)])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, app, OneSocket())
        print("ready", flush=True)

anyio.run(main)
"""


def measure_start(settings: Settings, found: Report) -> None:
    """Start both in turn, on a store that is there."""
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        # Installed packages come with their bytecode; a fresh checkout must not be compiled here.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        ours = [
            sys.executable,
            "-m",
            "agentcore",
            "serve",
            "--port",
            "0",
            "--store",
            f"{folder}/store",
            "--root",
            folder,
        ]
        bare = [sys.executable, "-c", BARE]
        commands = {"ours": ours, "bare": bare}
        spent: dict[str, list[Spent]] = {"ours": [], "bare": []}
        for command in commands.values():
            start(command, environment)
        for _ in range(settings.pick(12, 1)):
            for side, command in commands.items():
                spent[side].append(start(command, environment))
    cpu = {side: min(each.cpu for each in spent[side]) for side in spent}
    wall = {side: min(each.wall for each in spent[side]) for side in spent}
    found.tell("start_cpu_ms", cpu["ours"] * 1e3)
    found.tell("start_bare_cpu_ms", cpu["bare"] * 1e3)
    found.hold("start_cpu_ratio", cpu["ours"] / cpu["bare"], 3)
    found.tell("start_wall_ratio", wall["ours"] / wall["bare"])


def start(command: list[str], environment: dict[str, str]) -> Spent:
    """Start a server, and return what it spent until it said that it is ready."""
    began = perf_counter()
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        assert server.stdout.readline()
        took = perf_counter() - began
        server.kill()
        _, status, used = os.wait4(server.pid, 0)
        server.returncode = os.waitstatus_to_exitcode(status)
    return Spent(used.ru_utime + used.ru_stime, took)
