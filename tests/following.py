"""A client beside a local conversation: its link, as a remote one would be, and asks that reach it without a network."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio

from agentcore import Conversation
from agentcore.remote.answering import Answering
from agentcore.secrets import SecretRegistry
from agentcore.tools import AnyTool
from agentcore.wire import AskResult, parse_ask_result
from agentcore_serve.asks import ClientAsks, ClientConnection


class Network:
    """Between the asks of a server and a client: what travels is text, and it can be cut."""

    def __init__(self, asks: ClientAsks) -> None:
        self.asks = asks
        self.posted: list[AskResult] = []
        self.cut = False
        self.restored = anyio.Event()
        self.connection: ClientConnection | None = None

    async def post(self, ask_id: str, result: AskResult) -> None:
        while self.cut:
            await self.restored.wait()
        read = parse_ask_result(result.model_dump_json())
        self.posted.append(read)
        self.asks.answer(ask_id, read)
        await anyio.lowlevel.checkpoint()

    async def feed(self, answering: Answering) -> None:
        """Bring frames to the client for as long as there is a connection."""
        connection = self.connection = self.asks.attach("client")
        while not connection.closed:
            await connection.news.wait()
            for frame in connection.take():
                answering.feed(frame)

    async def reconnect(self, answering: Answering, tasks: Any) -> None:
        """Cut the connection, and make another one."""
        assert self.connection is not None
        self.connection.close()
        tasks.start_soon(self.feed, answering)
        await anyio.wait_all_tasks_blocked()


@asynccontextmanager
async def client_of(
    conversation: Conversation, asks: ClientAsks, tools: Sequence[AnyTool], **options: Any
) -> AsyncGenerator[tuple[Answering, Network, Any]]:
    """Run a client that has these tools."""
    network = Network(asks)
    options.setdefault("secrets", SecretRegistry())
    async with anyio.create_task_group() as tasks:
        answering = Answering(conversation.link, tools, tasks=tasks, post=network.post, **options)
        tasks.start_soon(network.feed, answering)
        yield answering, network, tasks
        await answering.aclose()
        tasks.cancel_scope.cancel()
