"""Approvals in a web app: an action waits, also through a restart, until a request of its own approves it.

Run it: python examples/08_approvals_in_a_web_app.py. It calls its own routes and exits; `app` is what you would mount.
It needs the extra `serve` (Starlette), no key and no network: a scripted model plays the agent's part.

What to look at:
- a `Host` lives as long as the app; opening an id that is open returns the same handle, so handlers need no registry;
- nothing waits in memory for a person: `run` returns with what is pending, and the log keeps it, after a restart too;
- `approve` records the yes and lets the work continue; a client that goes away changes nothing;
- `by` is the user that the server has signed in, never what the request claims.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from tempfile import TemporaryDirectory

import anyio
import httpx

from agentcore import Agent, AlwaysConfirm, Conversation, FileStore, Host, tool
from agentcore.errors import NothingPending
from agentcore.testing import ScriptedLLM, call, say

try:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route
except ImportError:
    sys.exit("This example needs Starlette: pip install 'agentcore-runtime[serve]'")


@tool
async def refund(order: int, amount: float) -> str:
    """Give money back to a customer."""
    return f"{amount:.2f} given back for order {order}"


def make_agent() -> Agent:
    model = ScriptedLLM([call("refund", order=7, amount=12.5), say("Done: order 7 is refunded.")])
    return Agent(llm=model, tools=[refund])


def make_app(folder: str) -> Starlette:
    store = FileStore(folder)
    agent = make_agent()
    host = Host()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with host:
            yield

    async def open_it(request: Request) -> Conversation:
        return await host.open(agent, id=request.path_params["id"], store=store, confirm=AlwaysConfirm())

    async def work(request: Request) -> Response:
        conversation = await open_it(request)
        result = await conversation.run((await request.body()).decode() or None)
        waiting = [{"id": each.id, "tool": each.tool_name, "arguments": each.arguments} for each in result.pending]
        return JSONResponse({"status": result.status, "text": result.text, "waiting": waiting})

    async def approve(request: Request) -> Response:
        conversation = await open_it(request)
        try:
            await conversation.approve(request.path_params["action"], by=who(request))
        except NothingPending as error:
            return JSONResponse({"error": str(error)}, status_code=409)
        return Response(status_code=204)

    def who(request: Request) -> str:
        return request.headers.get("x-user", "unknown")  # from your sign-in, in a real app

    routes = [
        Route("/{id}/run", work, methods=["POST"]),
        Route("/{id}/actions/{action}/approve", approve, methods=["POST"]),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


async def main() -> None:
    with TemporaryDirectory() as folder:
        app = make_app(folder)
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
                first = (await client.post("/a/run", content="Refund order 7.")).json()
                print(first["status"], first["waiting"])
                path = f"/a/actions/{first['waiting'][0]['id']}/approve"
                print((await client.post(path, headers={"x-user": "ada"})).status_code)
                print((await client.post(path)).json())  # decided already
                print((await client.post("/a/run")).json())


anyio.run(main)
