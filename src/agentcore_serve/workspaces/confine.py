"""Paths stay in their workspace, after links are followed. For this machine's folders only: a box is a place of its own.

That keeps a mistake or a planted link from handing out other files. It does not keep the agent in: a command may go wherever the
server's user may.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from agentcore.errors import PathError
from agentcore.workspace import LocalWorkspace, Workspace
from agentcore.workspace.files import FILES, path_errors
from agentcore.workspace.local import private_base


async def check_paths(workspace: Workspace, paths: Iterable[str]) -> None:
    """Check that paths lead into the workspace or its private folders. They are absolute, and need not exist.

    Raises:
        PathError: One leads elsewhere.
    """
    if isinstance(workspace, LocalWorkspace):
        await FILES.run(_check, workspace.root, list(paths))


async def check_path(workspace: Workspace, path: str) -> str:
    """Return a path as an absolute one that leads into the workspace.

    Raises:
        PathError: It leads elsewhere.
    """
    path = workspace.resolve(path)
    await check_paths(workspace, [path])
    return path


def _check(root: str, paths: list[str]) -> None:
    allowed = (root, private_base(root))
    for path in paths:
        with path_errors(path):
            real = os.path.realpath(path)
        if not any(real == each or real.startswith(f"{each.rstrip('/')}/") for each in allowed):
            raise PathError(path, "denied", f"{path!r} leads out of the workspace, and only what is in it is served.")
