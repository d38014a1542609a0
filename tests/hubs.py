"""Hubs with scripted agents, on stores in the test's folder."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import anyio

from agentcore import Agent, FileStore
from agentcore_serve.auth.identity import SCOPES, Identity
from agentcore_serve.hub import Hub
from agentcore_serve.settings import ServeSettings

ANN = Identity("k1", "ann", frozenset(SCOPES))
BEN = Identity("k2", "ben", frozenset({"read", "run", "approve", "workspace"}))


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.time = 1_000.0

    def __call__(self) -> float:
        return self.time


@asynccontextmanager
async def serving(
    agents: Agent | Mapping[str, Agent], folder: Path, clock: Clock | None = None, **settings: Any
) -> AsyncGenerator[Hub]:
    """Open a hub whose store and root are in a folder, and let no test hang in it."""
    named = {"coder": agents} if isinstance(agents, Agent) else agents
    chosen = ServeSettings.model_validate(
        {"store": folder / "store", "root": folder / "root", "shared_user": True, **settings}
    )
    store = FileStore(folder / "store", durability="flush")
    with anyio.fail_after(60):
        async with Hub(chosen, agents=named, store=store, clock=clock or monotonic) as hub:
            yield hub
