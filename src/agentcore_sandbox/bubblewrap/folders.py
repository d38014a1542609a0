"""Which folders a bubblewrap box may be given."""

from __future__ import annotations

import os
import pwd
import stat as modes
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentcore.errors import PathError, WorkspaceError
from agentcore.workspace.files import path_errors

_WHOLE: Final = ("/tmp", "/var/tmp", "/var", "/run", "/opt", "/srv", "/home", "/mnt", "/media")  # noqa: S108
_SYSTEM: Final = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/proc",
    "/sbin",
    "/sys",
    "/usr",
)
_SHOW: Final = "Pass the folder of the project alone."


def find_root(path: str) -> str:
    """Return the real path of the project's folder. Blocks.

    Raises:
        PathError: It is not a folder that a box may write to.
    """
    with path_errors(path):
        root = os.path.realpath(path)
        found = Path(root).stat()
        if modes.S_ISSOCK(found.st_mode):
            raise PathError(
                path, "not_a_folder", f"{path!r} is a socket, through which a box would reach outside. {_SHOW}"
            )
        if not modes.S_ISDIR(found.st_mode):
            raise PathError(path, "not_a_folder", f"{path!r} is not a folder, so it can't be a workspace.")
    _check_place(path, root, may_write=True)
    if not os.access(root, os.R_OK | os.X_OK):
        raise PathError(path, "denied", f"There is no permission to look into {path!r}.")
    # Inside, root of this machine has no more rights than anybody.
    if os.geteuid() == 0 and found.st_uid != 0 and not found.st_mode & 0o002:
        raise PathError(
            path,
            "denied",
            f"{path!r} belongs to user {found.st_uid}, and a box has no right of root to write there. Run this program as that user.",
        )
    return root


def find_read_only(path: str) -> str:
    """Return the real path of a folder or file that a box is to show. Blocks.

    Raises:
        WorkspaceError: It is not there, or holds what no box should see.
    """
    if not os.path.isabs(path):
        raise WorkspaceError(
            f"read_only has {path!r}, which is relative. Write the whole path: {os.path.abspath(path)!r}."
        )
    with path_errors(path):
        real = os.path.realpath(path)
        mode = Path(real).stat().st_mode
    if not modes.S_ISDIR(mode) and not modes.S_ISREG(mode):
        raise PathError(
            path,
            "not_a_file",
            f"read_only has {path!r}, which is neither a folder nor a file: a box would reach outside.",
        )
    _check_place(path, real, may_write=False)
    return real


def _check_place(path: str, real: str, *, may_write: bool) -> None:
    if real == "/":
        raise _refused(path, "is the whole machine")
    for name, folder in _private_folders():
        if _is_within(folder, real):
            raise _refused(path, f"is {name}" if folder == real else f"holds {name} ({folder})")
        if name != "the home" and _is_within(real, folder):
            raise _refused(path, f"lies in {name} ({folder})")
    if not may_write:
        if any(_is_within(real, folder) for folder in ("/proc", "/sys", "/dev")):
            raise _refused(path, "belongs to the kernel")
        return
    if real in _WHOLE:
        raise _refused(path, "holds what belongs to other programs")
    for folder in _SYSTEM:
        if _is_within(real, folder) and not _is_within(real, "/usr/src"):
            raise _refused(path, "belongs to the system")


def _refused(path: str, why: str) -> PathError:
    return PathError(path, "denied", f"{path!r} {why}, so it can't be given to a box. {_SHOW}")


def _private_folders() -> list[tuple[str, str]]:
    # Here, because importing it takes time that a program without a box need not spend.
    from platformdirs import user_config_path, user_state_path  # noqa: PLC0415

    own = (user_state_path("agentcore", appauthor=False), user_config_path("agentcore", appauthor=False))
    homes = {os.path.expanduser("~")}
    with suppress(KeyError):  # a user without an entry, as containers have them
        homes.add(pwd.getpwuid(os.geteuid()).pw_dir)
    return [
        *(("the home", os.path.realpath(each)) for each in homes - {"/"}),
        *(("the folder of agentcore's own files", os.path.realpath(each)) for each in own),
    ]


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
