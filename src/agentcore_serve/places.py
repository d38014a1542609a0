"""Where conversations work: what the hub asks of those who hand out workspaces, and folders below the server's root."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple, Protocol

from anyio.to_thread import run_sync

from agentcore.ids import new_id
from agentcore.wire.requests import WorkspaceSpecification
from agentcore.workspace import LocalWorkspace, Workspace
from agentcore_serve.refused import Refused
from agentcore_serve.settings import WorkspacesFactory


class Place(NamedTuple):
    """A workspace that a conversation gets."""

    id: str
    workspace: Workspace

    @property
    def is_local(self) -> bool:
        """True if what runs there runs as the server's user."""
        return isinstance(self.workspace, LocalWorkspace)


class Places(Protocol):
    """Hands out workspaces."""

    async def choose(self, owner: str, wanted: str | WorkspaceSpecification | None) -> Place:
        """Return the workspace that a new conversation asked for: one by its id, a folder, or a new one.

        Raises:
            Refused: There is none, it is another owner's, or it is outside of the server's root.
        """
        ...

    async def get(self, owner: str, workspace_id: str) -> Place:
        """Return a workspace by its id, for as long as a conversation is open.

        Raises:
            Refused: There is none.
        """
        ...

    async def release(self, workspace_id: str) -> None:
        """Note that a conversation has left it."""
        ...


class FolderPlaces:
    """Folders below a root, the id of each its path below it."""

    def __init__(self, root: Path, factory: WorkspacesFactory | None = None) -> None:
        self._root = root
        self._make = factory or LocalWorkspace

    async def choose(self, owner: str, wanted: str | WorkspaceSpecification | None) -> Place:
        """Return the workspace of a folder, which is made where it is missing."""
        if isinstance(wanted, str):
            return await self.get(owner, wanted)
        return await self._place(new_id("ws") if wanted is None or wanted.folder is None else wanted.folder, make=True)

    async def get(self, owner: str, workspace_id: str) -> Place:  # noqa: ARG002 folders have no owner
        """Return the workspace of a folder that is there."""
        return await self._place(workspace_id, make=False)

    async def release(self, workspace_id: str) -> None:
        """Do nothing: each conversation enters and leaves its own."""

    async def _place(self, name: str, *, make: bool) -> Place:
        path, below = await run_sync(self._find, name, make)
        return Place(below, self._make(path))

    def _find(self, name: str, make: bool) -> tuple[str, str]:
        root = os.path.realpath(self._root)
        path = os.path.realpath(os.path.join(root, name)) if "\0" not in name else "/"
        if os.path.commonpath([root, path]) != root:
            raise Refused(422, "path_error", "The folder is not below the server's root.")
        if make:
            os.makedirs(path, exist_ok=True)
        if not os.path.isdir(path):
            raise Refused(404, "workspace_not_found", "There is no such workspace.")
        return path, os.path.relpath(path, root)
