"""Where conversations work: what the hub asks of who hands out workspaces. `SharedPlaces` does, of those that clients have too."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from agentcore.wire.requests import WorkspaceSpecification
from agentcore.workspace import LocalWorkspace, Workspace


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
            Refused: There is none, or it is another owner's.
            PathError: The folder is outside of the server's root.
        """
        ...

    async def get(self, owner: str, workspace_id: str) -> Place:
        """Return a workspace by its id, for as long as a conversation is open.

        Raises:
            Refused: There is none.
        """
        ...

    async def discard(self, workspace_id: str) -> None:
        """Remove a new one that was chosen for a conversation that could not be begun. What has files in it stays."""
        ...

    async def forget(self, workspace_id: str) -> None:
        """Note that the last conversation in it was deleted. Its files stay."""
        ...

    async def release(self, workspace_id: str) -> None:
        """Note that a conversation has left it."""
        ...
