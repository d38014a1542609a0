"""The workspaces of conversations and those that clients open are the same: one hub hands them out to both."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import final

import anyio

from agentcore.wire.requests import WorkspaceSpecification
from agentcore_serve.auth.identity import Identity
from agentcore_serve.places import Place
from agentcore_serve.workspaces.hub import OpenWorkspace, WorkspaceHub


@final
class SharedPlaces:
    """Hands out the workspaces of a hub: `Places` for conversations."""

    def __init__(self, hub: WorkspaceHub) -> None:
        self._hub = hub
        self._held: dict[str, list[AbstractAsyncContextManager[OpenWorkspace]]] = {}

    async def choose(self, owner: str, wanted: str | WorkspaceSpecification | None) -> Place:
        """Return a workspace by its id, that of a folder, or one with a folder of its own, and hold it open."""
        if isinstance(wanted, str):
            return await self.get(owner, wanted)
        folder = None if wanted is None else wanted.folder
        record = await self._hub.create(_of(owner), folder=folder)
        try:
            return await self.get(owner, record.id)
        except BaseException:
            if wanted is None:
                with anyio.CancelScope(shield=True):
                    await self.discard(record.id)
            raise

    async def get(self, owner: str, workspace_id: str) -> Place:
        """Return a workspace by its id, and hold it open."""
        use = self._hub.use(_of(owner), workspace_id)
        opened = await use.__aenter__()
        self._held.setdefault(workspace_id, []).append(use)
        return Place(workspace_id, opened.workspace)

    async def release(self, workspace_id: str) -> None:
        """Hold it open no longer."""
        uses = self._held[workspace_id]
        await uses.pop().__aexit__(None, None, None)
        if not uses:
            del self._held[workspace_id]

    async def discard(self, workspace_id: str) -> None:
        """Remove one with a folder of its own, if there is nothing in it."""
        await self._hub.discard(workspace_id)

    async def forget(self, workspace_id: str) -> None:
        """Remove its box, where it has one; its files stay."""
        await self._hub.drop_box(workspace_id)


def _of(owner: str) -> Identity:
    return Identity("", owner, frozenset())
