"""This machine as a workspace."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import shutil
import stat as modes
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Final, Self, final

import anyio
from pydantic import JsonValue

from agentcore._arguments import FOLDER, TEXT_BY_NAME, checked, optional
from agentcore.errors import PathError, UnsupportedPlatform, WorkspaceError, WorkspaceNotOpen
from agentcore.workspace.capture import run_to_end
from agentcore.workspace.files import (
    FILES,
    append_file,
    copy,
    list_folder,
    path_errors,
    read_file,
    stat_path,
    write_file,
)
from agentcore.workspace.git import git_changes, git_diff
from agentcore.workspace.launch import STARTS, LaunchSpec, environment
from agentcore.workspace.process import LocalProcess, open_local_process
from agentcore.workspace.process_tree import CLOSE_SECONDS
from agentcore.workspace.protocol import MAX_OUTPUT, MAX_READ, Command
from agentcore.workspace.reaper import REAPER
from agentcore.workspace.values import CommandResult, Entry, GitChange, WorkspaceSpec


@final
class LocalWorkspace:
    """A folder of this machine. Commands run as this user, with all that this user may do: it is no sandbox.

    Cancelling `run`, or leaving the context of a process, ends it with all its descendants within 5 seconds, in general within
    0.3: those that called setsid or were forked twice are found too. A descendant that runs as another user (sudo) is beyond
    reach, and so is one that left its session, threw its environment away and whose parent is gone. If this program is killed
    (SIGKILL, out of memory), a small process that it keeps beside it ends them, within a second or so.

    Args:
        path: The folder.
        env: Variables that all commands get.
        inherit_env: Which variables commands get from this program: all but its own (API keys, `AGENTCORE_*`), none
            (False), or exactly those that are named.

    Raises:
        UnsupportedPlatform: on Windows.
        TypeError: an argument is not what it has to be.
    """

    @checked(path=FOLDER, env=optional(TEXT_BY_NAME))
    def __init__(
        self,
        path: str | PathLike[str] = ".",
        *,
        env: Mapping[str, str] | None = None,
        inherit_env: bool | tuple[str, ...] = True,
    ) -> None:
        if sys.platform == "win32":
            raise UnsupportedPlatform("Windows")
        self._path = os.fspath(path)
        self._env = dict(env or {})
        self._inherit = inherit_env
        self._root: str | None = None
        self._open = False
        self._processes: set[LocalProcess] = set()
        self._guarded = False

    def __repr__(self) -> str:
        return f"LocalWorkspace({self._path!r})"

    @property
    def root(self) -> str:
        """The absolute path of the folder, links resolved. Known from when the workspace is first entered."""
        if self._root is None:
            raise WorkspaceNotOpen(repr(self))
        return self._root

    @property
    def is_open(self) -> bool:
        return self._open

    def record(self) -> WorkspaceSpec:
        """Return the absolute folder; of variables that were given, the names alone."""
        params: dict[str, JsonValue] = {"root": self.root}
        if self._inherit is not True:
            params["inherit_env"] = False if self._inherit is False else list(self._inherit)
        if self._env:
            params["env"] = list(self._env)
        return WorkspaceSpec(kind="local", params=params)

    async def __aenter__(self) -> Self:
        if self._open:
            raise WorkspaceError(f"{self!r} is entered already. Enter it once, and hand it on.")
        self._open = True
        try:
            self._root = await FILES.run(_find_root, self._path)
        except BaseException:
            self._open = False
            raise
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open = False
        # Those whose contexts are still open in other tasks.
        with anyio.move_on_after(CLOSE_SECONDS + 1, shield=True):
            async with anyio.create_task_group() as tasks:
                for process in list(self._processes):
                    tasks.start_soon(process.aclose)
            if self._guarded:
                self._guarded = False
                await STARTS.run(REAPER.release, self)

    def resolve(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self.root, path))

    async def run(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        max_output: int = MAX_OUTPUT,
    ) -> CommandResult:
        async with self.open_process(command, cwd=cwd, env=env) as process:
            return await run_to_end(process, stdin=stdin, max_output=max_output)

    @asynccontextmanager
    async def open_process(
        self,
        command: Command,
        *,
        pty: bool = False,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        size: tuple[int, int] = (80, 24),
    ) -> AsyncGenerator[LocalProcess]:
        folder = self._at(cwd or ".")
        if not self._guarded:
            self._guarded = True
            await STARTS.run(REAPER.hold, self)
        mark = os.urandom(8).hex()
        variables = environment(self._inherit, self._env, env, mark=f"{REAPER.mark}:{mark}", terminal=pty)
        order = LaunchSpec(command, folder, variables, mark, terminal=size if pty else None)
        async with open_local_process(order) as process:
            self._processes.add(process)
            try:
                if not self._open:
                    raise WorkspaceNotOpen(repr(self))
                yield process
            finally:
                self._processes.discard(process)

    async def read(self, path: str, *, max_bytes: int = MAX_READ) -> bytes:
        return await FILES.run(read_file, self._at(path), max_bytes, abandon_on_cancel=True)

    async def write(self, path: str, data: bytes | str) -> None:
        await FILES.run(write_file, self._at(path), _bytes(data))

    async def append(self, path: str, data: bytes | str) -> None:
        await FILES.run(append_file, self._at(path), _bytes(data))

    async def list(self, path: str = ".") -> tuple[Entry, ...]:
        return await FILES.run(list_folder, self._at(path), abandon_on_cancel=True)

    async def stat(self, path: str) -> Entry | None:
        return await FILES.run(stat_path, self._at(path), abandon_on_cancel=True)

    async def upload(self, local: str | PathLike[str], remote: str) -> None:
        await copy(os.fspath(local), self._at(remote))

    async def download(self, remote: str, local: str | PathLike[str]) -> None:
        await copy(self._at(remote), os.fspath(local), through_links=False)

    async def git_changes(self) -> tuple[GitChange, ...]:
        return await git_changes(self)

    async def git_diff(self, path: str | None = None) -> str:
        return await git_diff(self, None if path is None else self._at(path))

    async def private_folder(self, name: str) -> str:
        self._at(".")
        return await FILES.run(make_private_folder, self.root, name)

    async def remove_private_folder(self, name: str) -> None:
        self._at(".")
        await FILES.run(remove_private_folder, self.root, name)

    def _at(self, path: str) -> str:
        if not self._open:
            raise WorkspaceNotOpen(repr(self))
        return self.resolve(path)


def _find_root(path: str) -> str:
    with path_errors(path):
        root = os.path.realpath(path)
        if not modes.S_ISDIR(Path(root).stat().st_mode):
            raise PathError(path, "not_a_folder", f"{path!r} is not a folder, so it can't be a workspace.")
        if not os.access(root, os.R_OK | os.X_OK):
            raise PathError(path, "denied", f"There is no permission to look into {path!r}.")
        return root


def _bytes(data: bytes | str) -> bytes:
    return data.encode() if isinstance(data, str) else data


_PRIVATE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def make_private_folder(root: str, name: str) -> str:
    """Make sure that the folder is there and only ours, and give its path. Blocks.

    Raises:
        PathError: it is not.
    """
    path = _private_path(root, name)
    for folder in (path.parent.parent, path.parent, path):
        with path_errors(str(folder)):
            with suppress(FileExistsError):
                folder.mkdir(0o700)
            _refuse_shared(folder)
    return str(path)


def remove_private_folder(root: str, name: str) -> None:
    """Remove it with what is in it. Blocks."""
    path = _private_path(root, name)
    with path_errors(str(path)):
        with suppress(FileNotFoundError):
            shutil.rmtree(path)
        # The last one takes the folder of this root with it.
        with suppress(OSError):
            path.parent.rmdir()


def _private_path(root: str, name: str) -> Path:
    if not _PRIVATE_NAME.fullmatch(name):
        raise PathError(
            name,
            "invalid",
            f"{name!r} can't be the name of a private folder: use 1 to 128 letters, digits, '.', '_' or '-', "
            "the first one a letter or a digit.",
        )
    return Path(private_base(root)) / name


def private_base(root: str) -> str:
    """Return the folder that holds the private folders of a root, whether there are any or not. Blocks."""
    mine = f"agentcore-{os.getuid()}"
    return str(_outside(root) / mine / hashlib.sha256(os.fsencode(root)).hexdigest()[:16])


def _outside(root: str) -> Path:
    # Where everybody may write, so each folder below is checked to be ours.
    candidates = [tempfile.gettempdir(), "/tmp", "/var/tmp"]  # noqa: S108
    for candidate in candidates:
        real = Path(candidate).resolve()
        above = [real, *real.parents]
        if real.is_dir() and Path(root) not in above and not any((folder / ".git").exists() for folder in above):
            return real
    # The root is "/", say: then nothing is outside.
    return Path(candidates[0])


def _refuse_shared(folder: Path) -> None:
    # Any user may make a folder for temporary files, so another one may have made this first.
    found = folder.lstat()
    if not modes.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or modes.S_IMODE(found.st_mode) & 0o077:
        raise PathError(
            str(folder),
            "denied",
            f"{str(folder)!r} is not a folder that only this user can open, so nothing private goes there. Remove it, or set "
            "TMPDIR to a folder of your own.",
        )
