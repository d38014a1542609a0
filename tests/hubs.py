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
from agentcore_serve.auth.security import DATABASE
from agentcore_serve.hub import Hub
from agentcore_serve.settings import ServeSettings
from agentcore_serve.shared_places import SharedPlaces
from agentcore_serve.workspaces import WorkspaceHub

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
    agents: Agent | Mapping[str, Agent],
    folder: Path,
    clock: Clock | None = None,
    *,
    store: FileStore | None = None,
    **settings: Any,
) -> AsyncGenerator[Hub]:
    """Open a hub whose store and root are in a folder, and let no test hang in it.

    Args:
        agents: One, or several by name.
        folder: For the store and the root.
        clock: Seconds; by default those of the machine.
        store: In place of files in the folder's store.
        settings: Of the server.
    """
    named = {"coder": agents} if isinstance(agents, Agent) else agents
    chosen = ServeSettings.model_validate(
        {"store": folder / "store", "root": folder / "root", "shared_user": True, **settings}
    )
    store = store or FileStore(folder / "store", durability="flush")
    with anyio.fail_after(60):
        async with (
            WorkspaceHub(
                chosen.root,
                database=chosen.store / DATABASE,
                temporary=chosen.store / "uploads",
                shared_user=chosen.shared_user,
            ) as workspaces,
            Hub(chosen, SharedPlaces(workspaces), agents=named, store=store, clock=clock or monotonic) as hub,
        ):
            yield hub
