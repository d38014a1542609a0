"""The protocol of every workspace: the place where tools act.

Above: tools, which know a `Workspace` and nothing else of the place they work in. Below: this machine (`LocalWorkspace`), a
container, another machine. So nothing here needs shared memory, a shared file system or more than messages and streams:
paths are text, output is bytes, and a process is told what to do by calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from os import PathLike
from types import TracebackType
from typing import Final, Protocol, Self

from agentcore.workspace.values import CommandResult, Entry, GitChange

Command = str | Sequence[str]
"""A line for bash, or a program and its arguments, which no shell reads."""

MAX_OUTPUT: Final = 1024 * 1024
"""How many bytes of each stream `run` keeps, unless told otherwise."""
MAX_READ: Final = 64 * 1024 * 1024
"""How many bytes `read` takes in, unless told otherwise."""


class Process(Protocol):
    """A process that was started and can be talked to. One task at a time may send, and one receive from each stream."""

    @property
    def pid(self) -> int:
        """Its number, in the workspace's own system."""
        ...

    @property
    def returncode(self) -> int | None:
        """Its exit code, or None while it runs (or where it is not known yet that it ended)."""
        ...

    async def send(self, data: bytes) -> None:
        """Write to its standard input or terminal, all of it.

        A terminal that edits lines, as one does unless a program like bash or vim has it otherwise, takes lines of up to 4095
        bytes and drops the rest.

        Raises:
            anyio.BrokenResourceError: nothing reads there any more.
            anyio.ClosedResourceError: its input or its context was closed.
        """
        ...

    async def send_eof(self) -> None:
        """Close its standard input; on a terminal, type Ctrl-D, which means the end at the start of a line only."""
        ...

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Read what it wrote: its standard output, or all that is shown on its terminal.

        Raises:
            anyio.EndOfStream: every writer has closed it. A process that is left in the background
                keeps it open, so wait for the process too where its end is what matters.
            anyio.ClosedResourceError: the context of the process was left.
        """
        ...

    async def receive_stderr(self, max_bytes: int = 65536) -> bytes:
        """Read what it wrote to its standard error. On a terminal there is none: `anyio.EndOfStream` at once."""
        ...

    async def signal(self, signal: int) -> None:
        """Send a signal to what runs in the foreground: of a terminal its foreground group, else the process's group.

        Raises:
            WorkspaceError: it runs as another user.
        """
        ...

    async def interrupt(self, *, started_within: float | None = None) -> bool:
        """End what runs in the foreground, and let the process itself live on if that is a shell on a terminal.

        On a terminal the foreground group gets SIGINT, as by Ctrl-C, SIGTERM after 0.1 s and SIGKILL after 0.2 s. The process
        gets SIGINT as well, so that a shell gives up the rest of its line, however the foreground ended. Then
        descendants of it that left the group are killed. With `started_within`, so is everything else that the process
        started in the last so many seconds, wherever it went. Background jobs that are older live on.

        Gives True if the foreground belongs to the process again. False: it belonged to it all the time (a shell's own
        loop, or nothing runs), it got SIGINT, and only its output can tell what that did; `terminate` ends it.

        Without a terminal this is `terminate`.
        """
        ...

    async def terminate(self) -> None:
        """End the process and everything it started, or what that left behind.

        SIGTERM to its group and to the foreground group of its terminal, 0.2 s, SIGKILL; descendants that left the
        group are found and ended too.
        """
        ...

    async def resize(self, columns: int, rows: int) -> None:
        """Change the size of its terminal; the foreground group gets SIGWINCH.

        Raises:
            WorkspaceError: it has no terminal.
        """
        ...

    async def wait(self) -> int:
        """Wait until it ends, and give its exit code: 128 and the signal's number where a signal ended it."""
        ...


class Workspace(Protocol):
    """A place with files and processes, to be used inside `async with`.

    Relative paths are relative to `root`. Nothing keeps a path or a command inside of it: what a command may reach is what
    the place lets it reach.

    Every call raises `WorkspaceNotOpen` outside of the context. Cancelling a call ends what it started, within a bound
    that each workspace states; so there are no timeouts here: use `anyio.fail_after`.
    """

    @property
    def root(self) -> str:
        """The absolute path of the project's folder, as the workspace itself sees it."""
        ...

    @property
    def is_open(self) -> bool:
        """True if it was entered and not left."""
        ...

    async def __aenter__(self) -> Self:
        """Open it.

        Raises:
            WorkspaceError: it can't be, or it was entered already.
        """
        ...

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        """Let go of it; nothing that was started in it is left."""
        ...

    def resolve(self, path: str) -> str:
        """Make a path absolute and remove `.` and `..` from it, without looking at the files (so links stay)."""
        ...

    async def run(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        max_output: int = MAX_OUTPUT,
    ) -> CommandResult:
        """Run a command to its end. Text is a line for bash; a sequence is a program and its arguments.

        What the command leaves running when it ends is ended too; use `open_process` for what lives on. Cancelling kills it
        with all its descendants. A program that isn't there is exit code 127 with a line on standard error, as in a shell.
        Of more than `max_output` bytes on a stream, the beginning and the end are kept.

        Args:
            command: What to run.
            cwd: In which folder, instead of the root.
            env: Variables to add.
            stdin: What it can read; without, its standard input is at its end.
            max_output: How many bytes to keep of each stream.

        Raises:
            PathError: there is no such folder as `cwd`.
            WorkspaceError: it could not be started.
        """
        ...

    def open_process(
        self,
        command: Command,
        *,
        pty: bool = False,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        size: tuple[int, int] = (80, 24),
    ) -> AbstractAsyncContextManager[Process]:
        """Start a process to talk to. Leaving the context ends it, with everything it started that is left.

        Args:
            command: What to run.
            pty: Give it a terminal of its own, instead of three pipes.
            cwd: In which folder, instead of the root.
            env: Variables to add.
            size: The terminal's columns and rows.

        Raises:
            PathError: there is no such folder as `cwd`.
            WorkspaceError: it could not be started.
        """
        ...

    async def read(self, path: str, *, max_bytes: int = MAX_READ) -> bytes:
        """Return the content of a file.

        Raises:
            PathError: there is none, it can't be read, or it has more than `max_bytes` bytes.
        """
        ...

    async def write(self, path: str, data: bytes | str) -> None:
        """Replace the content of a file, or make it, with the folders above it. Text is written as UTF-8.

        Atomic: a reader sees the old content or the new. An existing file keeps its mode, and a link stays a link: what
        it points to is written.

        Raises:
            PathError: it can't be written.
        """
        ...

    async def append(self, path: str, data: bytes | str) -> None:
        """Add to the end of a file, or make it, with the folders above it. Not atomic.

        Raises:
            PathError: it can't be written.
        """
        ...

    async def list(self, path: str = ".") -> tuple[Entry, ...]:
        """List a folder, in the order of the names. A link is listed as a link.

        Raises:
            PathError: there is no such folder, or it can't be read.
        """
        ...

    async def stat(self, path: str) -> Entry | None:
        """Return the entry at a path, links followed, or None where there is nothing.

        Raises:
            PathError: a folder on the way can't be looked into.
        """
        ...

    async def upload(self, local: str | PathLike[str], remote: str) -> None:
        """Copy a file or a folder from this machine into the workspace, under the name `remote`.

        A folder goes into a folder of that name if there is one; links in it stay links. Each file is replaced whole.

        Raises:
            PathError: one of the two can't be used so.
        """
        ...

    async def download(self, remote: str, local: str | PathLike[str]) -> None:
        """Copy a file or a folder from the workspace to this machine, under the name `local`; else as `upload`.

        Raises:
            PathError: one of the two can't be used so.
        """
        ...

    async def git_changes(self) -> tuple[GitChange, ...]:
        """Return the changes below the root since the work began; files that git does not know yet included.

        That is the last commit shared with the default branch, where there is one, else the last commit, else nothing.

        Raises:
            NotARepository: git does not keep this folder.
            WorkspaceError: git failed.
        """
        ...

    async def git_diff(self, path: str | None = None) -> str:
        """Return those changes as a unified diff: all, or those of one path.

        Raises:
            NotARepository: git does not keep this folder.
            WorkspaceError: git failed.
        """
        ...

    async def private_folder(self, name: str) -> str:
        """Return a folder that only the workspace's user can open, outside of the root, and make it if need be.

        The same name gives the same folder each time. It is for what tools keep aside, as the whole of a long output.

        Raises:
            PathError: it can't be made, or is not safe to use.
        """
        ...

    async def remove_private_folder(self, name: str) -> None:
        """Remove such a folder with all that is in it, if it is there."""
        ...
