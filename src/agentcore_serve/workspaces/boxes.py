"""The boxes of a server: each workspace has one, over its folder below the root.

Above: `WorkspaceHub`, which opens and leaves them. Below: agentcore_sandbox. A container is stopped when its workspace is left, and started again
with what it had; it is removed with its conversation or its workspace. A bubblewrap box ends when it is left.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Protocol, final

from anyio.to_thread import run_sync
from pydantic import JsonValue

from agentcore.workspace import Workspace
from agentcore_sandbox import BubblewrapWorkspace, DockerWorkspace
from agentcore_sandbox.docker import remove_box
from agentcore_sandbox.network.policy import NetworkPolicy
from agentcore_serve.workspaces.records import WorkspaceRecord

_USER: Final = 1000
"""The owner of a new folder of a server that runs as root: nothing runs as root in a box."""
_BOUNDS: Final = ("image", "mount", "network", "memory", "cpus", "pids", "user", "runtime", "tmp_size")


class Boxes(Protocol):
    """Makes and removes the boxes of workspaces."""

    async def make(self, record: WorkspaceRecord, folder: Path) -> Workspace:
        """Return the box of a workspace, not entered: the one that it had, if that is still what is wanted."""
        ...

    async def remove(self, record: WorkspaceRecord) -> None:
        """Remove what is left of a workspace's box, which nobody is in.

        Raises:
            WorkspaceError: It cannot be.
        """
        ...


@final
class DockerBoxes:
    """Containers of one image.

    Args:
        image: The image.
        network: The hosts that commands reach.
    """

    def __init__(self, image: str, network: NetworkPolicy) -> None:
        self._image = image
        self._network: NetworkPolicy = network

    async def make(self, record: WorkspaceRecord, folder: Path) -> Workspace:
        """Return the container of a workspace; another one where the server's settings have changed since."""
        await run_sync(_make_ordinary, folder)
        if (box := _box_of(record)) is not None:
            before: dict[str, JsonValue] = {} if record.spec is None else record.spec.params
            now = self._workspace(record, folder, None).record().params
            if any(before.get(name) != now.get(name) for name in _BOUNDS):
                await self.remove(record)
                box = None
        return self._workspace(record, folder, box)

    async def remove(self, record: WorkspaceRecord) -> None:
        """Remove the container of a workspace and its volumes; the folder stays."""
        if (box := _box_of(record)) is not None:
            await remove_box(box)

    def _workspace(self, record: WorkspaceRecord, folder: Path, box: str | None) -> DockerWorkspace:
        labels = {"conversation": record.id}
        return DockerWorkspace(self._image, mount=folder, network=self._network, keep=True, labels=labels, box=box)


@final
class BubblewrapBoxes:
    """Namespaces of this machine.

    Args:
        network: The hosts that commands reach.
    """

    def __init__(self, network: NetworkPolicy) -> None:
        self._network: NetworkPolicy = network

    async def make(self, record: WorkspaceRecord, folder: Path) -> Workspace:
        """Return a box over the folder."""
        del record
        return BubblewrapWorkspace(folder, network=self._network)

    async def remove(self, record: WorkspaceRecord) -> None:
        """Do nothing: such a box ends when it is left."""


def _box_of(record: WorkspaceRecord) -> str | None:
    box = record.spec.params.get("box") if record.spec is not None and record.spec.kind == "docker" else None
    return box if isinstance(box, str) else None


def _make_ordinary(folder: Path) -> None:
    if os.geteuid() == 0 and folder.stat().st_uid == 0 and not os.listdir(folder):
        os.chown(folder, _USER, _USER)
