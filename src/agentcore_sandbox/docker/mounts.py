"""Which folders of this machine a box may work in, and as whom."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from platformdirs import user_config_path, user_state_path

from agentcore.errors import WorkspaceError
from agentcore_sandbox.docker.facts import EngineFacts
from agentcore_sandbox.docker.options import DEFAULT_USER, DockerOptions

_SYSTEM: Final = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/var/run",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The facts of the machine that the options depend on."""

    folder: str | None
    """The folder to mount, links resolved."""
    user: tuple[int, int]
    """The ids of user and group inside."""


def place(options: DockerOptions, facts: EngineFacts) -> Placed:
    """Check the folders that a box gets, and choose the user that it runs as. It reads the file system: call it in a thread.

    Raises:
        WorkspaceError: The folder may not be mounted; the message says what to write instead.
    """
    if options.copy is not None and not os.path.isdir(options.copy):
        raise WorkspaceError(f"copy={options.copy!r} is not a folder: write the path of one that is there.")
    if options.mount is None:
        return Placed(folder=None, user=options.user or DEFAULT_USER)
    folder = _check_folder(options.mount, facts)
    if facts.maps_users:
        raise WorkspaceError(
            f"mount={options.mount!r} cannot be used with this engine: it maps user ids (rootless, or userns-remap), so files would"
            " belong to no user here. Pass copy= in place of mount=."
        )
    return Placed(folder=folder, user=options.user or _choose_user(folder))


def _check_folder(mount: str, facts: EngineFacts) -> str:
    folder = os.path.realpath(mount)
    try:
        mode = os.stat(folder).st_mode
    except OSError as error:
        raise WorkspaceError(
            f"mount={mount!r} cannot be used: {error.strerror}. Write the path of a folder that is there."
        ) from None
    if stat.S_ISSOCK(mode):
        raise WorkspaceError(
            f"mount={mount!r} is a socket, and whatever listens there would do what the box asks. Write the path of the project's folder."
        )
    if not stat.S_ISDIR(mode):
        raise WorkspaceError(f"mount={mount!r} is not a folder. Write the path of the project's folder.")
    for guarded, reason, inside_too in _guarded(facts):
        if _is_in(guarded, folder) or (inside_too and _is_in(folder, guarded)):
            raise WorkspaceError(
                f"mount={mount!r} is refused: {reason} ({guarded}). Write the path of the project's folder alone, or pass copy=."
            )
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise WorkspaceError(
            f"mount={mount!r} is refused: this user may not write there. Write the path of a folder of your own."
        )
    return folder


def _guarded(facts: EngineFacts) -> Iterator[tuple[str, str, bool]]:
    """Yield folders that no mount may be or hold, the reason, and True where it may not be in there either."""
    yield "/", "it would be the whole machine", False
    yield os.path.realpath(os.path.expanduser("~")), "it holds your home folder, with keys and settings", False
    for folder in _SYSTEM:
        yield folder, "it holds a folder of the system", True
    if facts.root_dir:
        yield os.path.realpath(facts.root_dir), "it holds the Docker engine's own folders", True
    if facts.address.startswith("unix://"):
        socket = os.path.realpath(facts.address.removeprefix("unix://"))
        yield socket, "it holds the Docker engine's socket, and with it the machine", True
    own = [
        user_state_path("agentcore", appauthor=False),
        user_config_path("agentcore", appauthor=False),
        "~/.agentcore",
    ]
    if home := os.environ.get("AGENTCORE_HOME"):
        own.append(home)
    for folder in own:
        yield os.path.realpath(os.path.expanduser(folder)), "it holds agentcore's own folders, with logs and keys", True


def _is_in(path: str, folder: str) -> bool:
    """Return True if a path is the folder or lies in it."""
    return os.path.commonpath((path, folder)) == folder


def _choose_user(folder: str) -> tuple[int, int]:
    """Choose the folder's owner, so that the files go on belonging to who owned it."""
    found = os.stat(folder)
    if found.st_uid == 0:
        raise WorkspaceError(
            f"mount={folder!r} belongs to root, and commands in a box do not run as root unless a program asks for it. Give the folder to"
            f" a user (`chown -R 1000:1000 {folder}`). A program can pass copy= in place of mount=, or user='0:0' (root without any capability)."
        )
    if os.getuid() not in (0, found.st_uid):
        # Whoever may use the engine could else become anybody.
        raise WorkspaceError(
            f"mount={folder!r} belongs to another user (id {found.st_uid}). Write the path of a folder of your own, or pass copy=."
        )
    return found.st_uid, found.st_gid
