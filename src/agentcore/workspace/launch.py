"""Starting processes on this machine: three pipes or a terminal, a session of its own, nothing inherited by accident."""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
import signal
import stat as modes
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple, final

import anyio

from agentcore._threads import Threads
from agentcore.errors import WorkspaceError
from agentcore.workspace.files import path_errors
from agentcore.workspace.process_table import MARKS
from agentcore.workspace.process_tree import CLOSE_SECONDS, kill_tree
from agentcore.workspace.protocol import Command

if sys.platform != "win32":
    import termios


# For bash, with the terminal's path as $0 and a program with its arguments behind. A terminal belongs to the session whose
# leader opens it without saying otherwise, and bash does not. Doing it between fork and exec would need Python code in the
# forked process, which is not safe where there are threads.
CLAIM_TERMINAL: Final = ': <>"$0"; exec "$@"'


def open_terminal(size: tuple[int, int]) -> tuple[int, int]:
    """Make a terminal of so many columns and rows, and give this program's end of it and the other."""
    ours, theirs = os.openpty()
    try:
        set_size(theirs, *size)
    except BaseException:
        os.close(ours)
        os.close(theirs)
        raise
    return ours, theirs


def set_size(terminal: int, columns: int, rows: int) -> None:
    """Set its size; the foreground group gets SIGWINCH if that is another one than before."""
    termios.tcsetwinsize(terminal, (rows, columns))


STARTS: Final = Threads("starts", 8)

# Linux takes no single argument over 131,072 bytes.
_LONGEST_ARGUMENT: Final = 100_000
# What bash says on standard error, with exit code 127 or 126; or runs all the same, as a script that does not say by what.
_LEFT_TO_BASH: Final = {errno.ENOENT, errno.EACCES, errno.ENOTDIR, errno.ENOEXEC}
_LONGEST_SHOWN: Final = 200
# As the shell tells words apart: what stands in quotes is one.
_WORD: Final = re.compile(r"""(?:'[^']*(?:'|\Z)|"(?:\\.|[^"\\])*(?:"|\Z)|\\.|[^\s'"\\])+""", re.DOTALL)
_FOR_PEOPLE: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)

# What this program pays or signs in with. Not AWS_ACCESS_KEY_ID, GITHUB_TOKEN and the like: those are what a user's own
# commands (aws, gh) work with.
_OWN: Final = re.compile(
    r"AGENTCORE_.*|(.*_)?API_?KEYS?(_.*)?|ANTHROPIC_AUTH_TOKEN|AWS_BEARER_TOKEN_BEDROCK", re.IGNORECASE
)


class LaunchSpec(NamedTuple):
    """The description of a process to start."""

    command: Command
    """A line for bash, or a program and its arguments."""
    cwd: str
    variables: Mapping[str, str]
    """The whole environment, with the mark in it."""
    mark: str
    terminal: tuple[int, int] | None
    """The columns and rows of its terminal; None for pipes."""


class Started(NamedTuple):
    """A process that runs, and this program's ends of its streams."""

    process: subprocess.Popen[bytes]
    stdin: io.FileIO
    stdout: io.FileIO
    """The same as `stdin` where there is a terminal."""
    stderr: io.FileIO | None
    """None where there is a terminal."""

    def close(self) -> None:
        """Close the streams."""
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()


async def start(spec: LaunchSpec) -> Started:
    """Start a process, in a thread: forking and looking programs up take their time.

    Raises:
        PathError: there is no such folder.
        WorkspaceError: the system refused.
    """
    pending = PendingProcess(spec)
    try:
        await STARTS.run(pending.work)
        return pending.take()
    except BaseException:
        # A native cancellation of asyncio gets through all shields, so the thread may still be at it.
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await STARTS.run(pending.abandon)
        raise


@final
class PendingProcess:
    """Passes a process from the thread that starts it to the task that asked; if that has gone, the process is ended."""

    def __init__(self, spec: LaunchSpec) -> None:
        self._spec = spec
        # Held by the thread as long as it is at it.
        self._working = threading.Lock()
        self._abandoned = False
        self._started: Started | None = None

    def work(self) -> None:
        with self._working:
            if not self._abandoned:
                self._started = _start(self._spec)

    def take(self) -> Started:
        started, self._started = self._started, None
        assert started is not None, "taken before it was started"
        return started

    def abandon(self) -> None:
        self._abandoned = True
        with self._working:
            started, self._started = self._started, None
        if started is not None:
            kill_tree(started.process.pid, self._spec.mark)
            started.close()
            started.process.wait()


def _start(spec: LaunchSpec) -> Started:
    with path_errors(spec.cwd):
        if not modes.S_ISDIR(Path(spec.cwd).stat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder")
    try:
        with ExitStack() as stack:
            arguments, inherited = _arguments(spec.command, stack)
            if spec.terminal is not None:
                return _start_on_terminal(spec, spec.terminal, arguments, inherited)
            try:
                return _start_on_pipes(spec, arguments, inherited)
            except OSError as error:
                if error.errno not in _LEFT_TO_BASH:
                    raise
                return _start_on_pipes(spec, [_bash(), "-c", 'exec "$@"', "bash", *arguments], inherited)
    except (OSError, ValueError) as error:
        raise WorkspaceError(f"Could not start {_shown(spec.command)} in {spec.cwd!r}: {error}") from error


def _shown(command: Command) -> str:
    """Return the command for people, or as many of its first words as fit.

    Errors are masked later, and half a secret would no longer be found. So a word is shown in full or not at all. (Of a secret
    that is several bare words, without quotes, some may be left: the masker is not known here.)
    """
    if not isinstance(command, str):
        command = [*command]
    if len(text := repr(command)) <= _LONGEST_SHOWN:
        return text
    if isinstance(command, list):
        lengths = accumulate(len(repr(argument)) + 2 for argument in command)
        first = [argument for argument, length in zip(command, lengths, strict=True) if length <= _LONGEST_SHOWN]
        return f"{first!r} (the first {len(first)} of {len(command):,} arguments)"
    end = 0
    for word in _WORD.finditer(command):
        if len(repr(command[: word.end()])) > _LONGEST_SHOWN:
            break
        end = word.end()
    return f"{command[:end]!r} (the first {end} of {len(command):,} characters)"


def _arguments(command: Command, stack: ExitStack) -> tuple[list[str], tuple[int, ...]]:
    if not isinstance(command, str):
        if not command:
            raise ValueError("there is no program to run")
        return list(command), ()
    script = os.fsencode(command)
    if len(script) < _LONGEST_ARGUMENT:
        return [_bash(), "-c", command], ()
    # Through a file that has no name. bash reads it before it closes it, and closes it before it runs what it read.
    file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack is its context
    file.write(script)
    file.seek(0)
    number = file.fileno()
    return [_bash(), "-c", f'eval "$(cat <&{number})" {number}<&-', "bash"], (number,)


def _bash() -> str:
    path = shutil.which("bash")
    if path is None:
        raise FileNotFoundError("there is no bash; install it, or put it on the PATH")
    return path


def _start_on_pipes(spec: LaunchSpec, arguments: list[str], inherited: tuple[int, ...]) -> Started:
    process = _popen(spec, arguments, inherited, subprocess.PIPE, subprocess.PIPE)
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    # Unbuffered, so these are the descriptors themselves.
    assert isinstance(stdin, io.FileIO)
    assert isinstance(stdout, io.FileIO)
    assert isinstance(stderr, io.FileIO)
    for stream in (stdin, stdout, stderr):
        os.set_blocking(stream.fileno(), False)
    return Started(process, stdin, stdout, stderr)


def _start_on_terminal(
    spec: LaunchSpec, size: tuple[int, int], arguments: list[str], inherited: tuple[int, ...]
) -> Started:
    ours, theirs = open_terminal(size)
    stream = io.FileIO(ours, "r+")
    try:
        os.set_blocking(ours, False)
        claiming = [_bash(), "-c", CLAIM_TERMINAL, os.ttyname(theirs), *arguments]
        process = _popen(spec, claiming, inherited, theirs, theirs)
    except BaseException:
        stream.close()
        raise
    finally:
        os.close(theirs)
    return Started(process, stream, stream, None)


def _popen(
    spec: LaunchSpec, arguments: list[str], inherited: tuple[int, ...], stdin: int, output: int
) -> subprocess.Popen[bytes]:
    # A shell that starts this program in the background has it ignore Ctrl-C; its processes would inherit that, and bash can't
    # undo it. Only then is code run in the forked process: it takes a full fork, where otherwise vfork does.
    ignoring = any(signal.getsignal(each) is signal.SIG_IGN for each in _FOR_PEOPLE)
    return subprocess.Popen(
        arguments,
        bufsize=0,
        stdin=stdin,
        stdout=output,
        stderr=output,
        cwd=spec.cwd,
        env=spec.variables,
        pass_fds=inherited,
        start_new_session=True,
        preexec_fn=_listen_to_people if ignoring else None,  # noqa: PLW1509
    )


def _listen_to_people() -> None:
    for each in _FOR_PEOPLE:
        signal.signal(each, signal.SIG_DFL)


def is_own_variable(name: str) -> bool:
    """Return whether a variable belongs to this program, and is kept from what it starts."""
    return _OWN.fullmatch(name) is not None


def environment(
    inherit: bool | tuple[str, ...], *added: Mapping[str, str] | None, mark: str, terminal: bool
) -> dict[str, str]:
    """Put the environment of a new process together.

    Args:
        inherit: Everything but this program's own variables (True), nothing (False), or those of these names.
        added: What comes on top, the later over the earlier.
        mark: The mark of the new process.
        terminal: Whether it gets a terminal, whose size and kind are not those of this program's.
    """
    ours = os.environ
    if inherit is True:
        variables = {name: value for name, value in ours.items() if not is_own_variable(name)}
    else:
        variables = {name: ours[name] for name in inherit or () if name in ours}
    if terminal:
        variables.pop("COLUMNS", None)
        variables.pop("LINES", None)
        if variables.get("TERM", "dumb") == "dumb":
            variables["TERM"] = "xterm-256color"
    for more in added:
        variables.update(more or {})
    outer = ours.get(MARKS)
    variables[MARKS] = f"{outer}:{mark}" if outer else mark
    return variables
