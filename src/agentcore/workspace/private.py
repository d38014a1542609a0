"""Private folders of this machine: outside of the project, the same for the same name, and nobody else's."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat as modes
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentcore.errors import PathError
from agentcore.workspace.files import path_errors

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def make_private_folder(root: str, name: str) -> str:
    """Make sure that the folder is there and only ours, and give its path. Blocks.

    Raises:
        PathError: it is not.
    """
    path = _path(root, name)
    for folder in (path.parent.parent, path.parent, path):
        with path_errors(str(folder)):
            with suppress(FileExistsError):
                folder.mkdir(0o700)
            _check(folder)
    return str(path)


def remove_private_folder(root: str, name: str) -> None:
    """Remove it with what is in it. Blocks."""
    path = _path(root, name)
    with path_errors(str(path)):
        with suppress(FileNotFoundError):
            shutil.rmtree(path)
        # The last one takes the folder of this root with it.
        with suppress(OSError):
            path.parent.rmdir()


def _path(root: str, name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise PathError(
            name,
            "invalid",
            f"{name!r} can't be the name of a private folder: use 1 to 128 letters, digits, '.', '_' or '-', "
            "the first one a letter or a digit.",
        )
    mine = f"agentcore-{os.getuid()}"
    return _below(root) / mine / hashlib.sha256(os.fsencode(root)).hexdigest()[:16] / name


def _below(root: str) -> Path:
    # Where everybody may write, so each folder below is checked to be ours.
    candidates = [tempfile.gettempdir(), "/tmp", "/var/tmp"]  # noqa: S108
    for candidate in candidates:
        real = Path(candidate).resolve()
        above = [real, *real.parents]
        if real.is_dir() and Path(root) not in above and not any((folder / ".git").exists() for folder in above):
            return real
    # The root is "/", say: then nothing is outside.
    return Path(candidates[0])


def _check(folder: Path) -> None:
    # Any user may make a folder for temporary files, so another one may have made this first.
    found = folder.lstat()
    if not modes.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or modes.S_IMODE(found.st_mode) & 0o077:
        raise PathError(
            str(folder),
            "denied",
            f"{str(folder)!r} is not a folder that only this user can open, so nothing private goes there. Remove it, or set "
            "TMPDIR to a folder of your own.",
        )
