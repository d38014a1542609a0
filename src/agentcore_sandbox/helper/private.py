"""Folders that only the box's user can open."""

from __future__ import annotations

import os
import re
import stat as modes

from agentcore_sandbox.helper.channel import text_in
from agentcore_sandbox.helper.errors import path_errors, path_refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from agentcore_sandbox.helper.loop import Steps

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def make_own_folder(path: str, with_parents: bool = False) -> None:
    """Make sure that a folder is there and only this user's."""
    with path_errors(path):
        if with_parents:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            pass
        # Another user may have made it first, or a link, where everybody may write.
        found = os.lstat(path)
        ours = modes.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
        if ours and modes.S_IMODE(found.st_mode) & 0o077:
            os.chmod(path, 0o700)
    if not ours:
        raise path_refused(
            path,
            "denied",
            f"{path!r} is not a folder that only this user can open, so nothing private goes there. Remove it.",
        )


def private(state: str, asked: dict[str, Any]) -> Steps[dict[str, Any]]:
    """Return a private folder, and make it if need be."""
    base, path = _paths(state, asked)
    for folder in (state, base, path):
        make_own_folder(folder)
    return {"path": path}
    yield


def unprivate(state: str, asked: dict[str, Any]) -> Steps[dict[str, Any]]:
    """Remove a private folder with what is in it."""
    _, path = _paths(state, asked)
    with path_errors(path):
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            return {"path": path}
        if modes.S_ISDIR(found.st_mode):
            yield from _remove_folder(path)
        else:
            os.unlink(path)
    return {"path": path}


def _paths(state: str, asked: dict[str, Any]) -> tuple[str, str]:
    name = text_in(asked, "name")
    if not _NAME.fullmatch(name):
        raise path_refused(
            name,
            "invalid",
            f"{name!r} can't be the name of a private folder: use 1 to 128 letters, digits, '.', '_' or '-', "
            "the first one a letter or a digit.",
        )
    base = os.path.join(state, "private")
    return base, os.path.join(base, name)


def _remove_folder(path: str) -> Steps[None]:
    """Remove a folder, never what a link in it leads to."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for name in os.listdir(folder):
            try:
                os.unlink(name, dir_fd=folder)
            except (IsADirectoryError, PermissionError):
                if not modes.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
                    raise
                yield from _remove_folder(os.path.join(path, name))
            except FileNotFoundError:
                pass
    finally:
        os.close(folder)
    yield None
    os.rmdir(path)
