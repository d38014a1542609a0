"""Where a search starts, and how what it finds is named."""

from __future__ import annotations

import posixpath
from typing import NamedTuple

from agentcore.errors import ToolError
from agentcore_tools.files.files import Files

__all__ = ["Place", "find_place", "shown_path"]


class Place(NamedTuple):
    """A folder, or one file, to search."""

    folder: str
    """The absolute path of the folder; of a file, of the one that it is in."""
    file: str | None
    """The name of the file, where it is one."""
    prefix: str
    """What stands before the paths that are found, so that they count from the workspace's folder."""


async def find_place(files: Files, path: str) -> Place:
    """Look where a search is to start.

    Raises:
        ToolError: there is nothing, or the tool may not go there.
    """
    absolute = await files.to_read(path)
    found = await files.workspace.stat(absolute)
    if found is None:
        raise ToolError(f"There is nothing at {absolute!r}, so nothing can be searched there.")
    if found.kind == "other":
        raise ToolError(f"{absolute!r} is a device, a pipe or a socket, so nothing can be searched there.")
    folder, name = (absolute, None) if found.kind == "dir" else posixpath.split(absolute)
    return Place(folder, name, _prefix(folder, files.workspace.root))


def _prefix(folder: str, root: str) -> str:
    if folder == root:
        return ""
    if folder.startswith(f"{root.rstrip('/')}/"):
        return f"{folder.removeprefix(root).lstrip('/')}/"
    return f"{folder.rstrip('/')}/"


def shown_path(path: str) -> str:
    """Make text of a path that any log and wire can carry."""
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")
