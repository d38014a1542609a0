"""The server of `serve.py`'s conversations: `create_app`, and beside it what it is compared with, below /here."""

from __future__ import annotations

import sqlite3
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import psutil
from _agents import QuickModel, agent_tools
from _report import Clock
from _serving import serve_here
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from agentcore import Agent, FileStore, Host, LocalWorkspace, Reply
from agentcore.events import ConversationStatus
from agentcore.wire.requests import ConversationInfo
from agentcore_serve import ServeSettings, create_app
from agentcore_serve.app import ServeApp
from agentcore_serve.index import Listed
from agentcore_serve.limits import RequestLimits
from agentcore_serve.settings import ServeLimits

STEPS = 10
LATENCY = 0.5
"""Seconds that the model takes: as quick as one is."""
SQL = "SELECT info, created, id FROM listed WHERE owner IN (?, '') ORDER BY created DESC, id DESC LIMIT 51"


class AgainModel(QuickModel):
    """Works through the same steps at each run."""

    def _reply(self, number: int) -> Reply:
        return super()._reply((number - 1) % (STEPS + 1) + 1)


class Here:
    """What is measured beside the app."""

    def __init__(self, app: ServeApp, folder: Path) -> None:
        self._app = app
        self._folder = folder
        self._host: Host | None = None
        self._database: sqlite3.Connection | None = None

    async def usage(self, _: Request) -> JSONResponse:
        """Answer with the CPU and the memory of this process."""
        return JSONResponse({"cpu": time.process_time(), "rss": psutil.Process().memory_info().rss})

    async def hello(self, _: Request) -> Response:
        """Answer: a bare round trip."""
        return Response(b"{}", media_type="application/json")

    async def open(self, request: Request) -> JSONResponse:
        """Open conversations without the server; answer with what each took."""
        number = int(request.query_params["number"])
        host = self._host = self._host or await Host().__aenter__()
        store = FileStore(self._folder / "local")
        clock = Clock()
        for _ in range(number):
            work = self._folder / "work" / str(time.monotonic_ns())
            await run_sync(lambda work=work: work.mkdir(parents=True))
            await host.open(make_agent(), LocalWorkspace(work), store=store)
        spent = clock.read()
        return JSONResponse({"cpu": spent.cpu / number, "wall": spent.wall / number})

    async def fill(self, request: Request) -> JSONResponse:
        """Put conversations into the index."""
        hub = self._app.state.hub
        await hub.is_caught_up.wait()
        began = datetime.now(UTC)
        owner = request.query_params["owner"]
        listed = [
            Listed(
                ConversationInfo(
                    id=f"listed-{number}",
                    status=ConversationStatus.FINISHED,
                    title=f"The price of order {number}",
                    owner=owner,
                    agent="a0",
                    head=40,
                    created=began - timedelta(seconds=number),
                    modified=began,
                    last_words="The total is rounded before the tax is added. " * 4,
                ),
                began.timestamp(),
                f"The price of order {number}",
            )
            for number in range(int(request.query_params["number"]))
        ]
        await hub.index.put(listed)
        return JSONResponse({})

    async def page(self, request: Request) -> Response:
        """Answer with a page as one writes it in five lines: the statement, in a thread, and its rows joined."""
        owner = request.query_params["owner"]

        def read() -> list[tuple[str, float, str]]:
            if self._database is None:
                path = self._folder / "store" / "index.sqlite"
                self._database = sqlite3.connect(path, check_same_thread=False)
            return self._database.execute(SQL, (owner,)).fetchall()

        rows = await run_sync(read)
        body = ",".join(row[0] for row in rows[:50])
        return Response(f'{{"items":[{body}],"next":"{rows[-1][1]}~{rows[-1][2]}"}}', media_type="application/json")

    def routes(self) -> list[Route]:
        """Return the routes."""
        named = {"usage": self.usage, "hello": self.hello, "open": self.open, "fill": self.fill, "page": self.page}
        return [Route(f"/here/{name}", endpoint) for name, endpoint in named.items()]


def make_agent() -> Agent:
    """Make the agent of one conversation."""
    return Agent(llm=AgainModel(STEPS, latency=LATENCY), tools=agent_tools())


async def main(folder: Path, agents: int) -> None:
    """Serve until the process is ended."""
    settings = ServeSettings(
        store=folder / "store",
        root=folder / "root",
        auth=False,
        limits=ServeLimits(open_conversations=5_000, running_conversations=500),
        request_limits=RequestLimits(requests_per_minute=10_000_000),
    )
    (folder / "root").mkdir()
    app = create_app(settings, agents={f"a{number}": make_agent() for number in range(agents)})
    bare = Starlette(routes=Here(app, folder).routes())

    async def both(scope: Scope, receive: Receive, send: Send) -> None:
        here: Any = bare if scope.get("path", "").startswith("/here/") else app
        await here(scope, receive, send)

    await serve_here(both)


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]))
