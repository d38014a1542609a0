"""Starting processes: pipes or a terminal, a session of its own, nothing inherited.

The helper has no threads, so Python code may run between fork and exec: the terminal is claimed and signals are reset there.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
import stat as modes
import struct
import termios

from agentcore_sandbox.helper.errors import Refused, path_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

# Linux takes no single argument over 131,072 bytes.
_LONGEST_ARGUMENT = 100_000
# What bash says on standard error, with exit code 127 or 126; or runs all the same, as a script that does not say by what.
_LEFT_TO_BASH = (errno.ENOENT, errno.EACCES, errno.ENOTDIR, errno.ENOEXEC)
_LONGEST_SHOWN = 200
# As the shell tells words apart: what stands in quotes is one.
_WORD = re.compile(r"""(?:'[^']*(?:'|\Z)|"(?:\\.|[^"\\])*(?:"|\Z)|\\.|[^\s'"\\])+""", re.DOTALL)
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_SET_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
# 32 and 33 belong to the C library.
_ALL_SIGNALS = set(range(1, signal.NSIG)) - {signal.SIGKILL, signal.SIGSTOP, 32, 33}


class LaunchSpec:
    """The description of a process to start."""

    def __init__(
        self, command: str | list[str], cwd: str, shown_cwd: str, env: dict[str, str], size: tuple[int, int] | None
    ) -> None:
        self.command = command
        """A line for bash, or a program and its arguments."""
        self.cwd = cwd
        self.shown_cwd = shown_cwd
        self.env = env
        """The whole environment."""
        self.size = size
        """The columns and rows of its terminal; None for pipes."""


class Started:
    """A process that runs, and the helper's ends of its streams."""

    def __init__(self, pid: int, stdin: int, stdout: int, stderr: int) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        """The same as `stdin` where there is a terminal."""
        self.stderr = stderr
        """-1 where there is a terminal."""


def set_size(terminal: int, columns: int, rows: int) -> None:
    """Set the size of a terminal; the foreground group gets SIGWINCH if that is another one than before."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def heed_signals() -> None:
    """Undo what the helper was started with: a shell has what it starts in the background ignore Ctrl-C, and commands inherit that."""
    for number in _ALL_SIGNALS - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def warm_up() -> None:
    """Import what the first process needs, when there is time."""
    __import__("subprocess")


def start(spec: LaunchSpec, as_child: Callable[[Callable[[], Any]], Any]) -> Started:
    """Start a process. `as_child` calls what makes it, and does what has to be done around that."""
    with path_errors(spec.shown_cwd):
        if not modes.S_ISDIR(os.stat(spec.cwd).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder")
    opened: list[int] = []
    try:
        script = _script_file(spec.command, opened)
        arguments = _arguments(spec, script)
        if spec.size is None:
            pairs = [os.pipe() for _ in range(3)]
            opened.extend(each for pair in pairs for each in pair)
            (theirs_in, stdin), (stdout, theirs_out), (stderr, theirs_err) = pairs
        else:
            stdin, theirs_in = os.openpty()
            opened.extend((stdin, theirs_in))
            set_size(theirs_in, *spec.size)
            stdout, theirs_out, stderr, theirs_err = stdin, theirs_in, -1, theirs_in
        pid = _Program(spec, arguments, (theirs_in, theirs_out, theirs_err), script).spawn(as_child)
        ours = [each for each in (stdin, stdout, stderr) if each >= 0]
        for each in ours:
            os.set_blocking(each, False)
            if each in opened:
                opened.remove(each)
        return Started(pid, stdin, stdout, stderr)
    except (OSError, ValueError) as error:
        raise Refused(f"Could not start {_shown(spec.command)} in {spec.shown_cwd!r}: {error}") from error
    finally:
        for each in opened:
            os.close(each)


def _script_file(command: str | list[str], opened: list[int]) -> int:
    """Return a file that has a line that is longer than an argument can be; -1 if it is not."""
    if not isinstance(command, str):
        return -1
    script = os.fsencode(command)
    if b"\0" in script:
        raise ValueError("embedded null byte")
    if len(script) < _LONGEST_ARGUMENT:
        return -1
    # Through a file that has no name. bash reads it before it closes it, and closes it before it runs what it read.
    if hasattr(os, "memfd_create"):  # novermin
        file = os.memfd_create("script")  # novermin
    else:
        file = os.open("/tmp", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)  # noqa: S108 - it has no name there
    opened.append(file)
    left = memoryview(script)
    while left:
        left = left[os.write(file, left) :]
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _arguments(spec: LaunchSpec, script: int) -> list[str]:
    if not isinstance(spec.command, str):
        if not spec.command:
            raise ValueError("there is no program to run")
        if any("\0" in argument for argument in spec.command):
            raise ValueError("embedded null byte")
        return spec.command
    bash = _bash(spec.env)
    if bash is None:
        raise FileNotFoundError("there is no bash; install it, or put it on the PATH")
    if script < 0:
        return [bash, "-c", spec.command]
    return [bash, "-c", f'eval "$(cat <&{script})" {script}<&-', "bash"]


def _bash(env: dict[str, str]) -> str | None:
    for path in _candidates("bash", env):
        if os.access(path, os.X_OK):
            return path
    return None


def _candidates(program: str, env: dict[str, str]) -> list[str]:
    if "/" in program:
        return [program]
    folders = env.get("PATH", _DEFAULT_PATH).split(":")
    return [os.path.join(folder, program) for folder in folders]


class _Program:
    """All that is needed behind the fork, made before it."""

    def __init__(self, spec: LaunchSpec, arguments: list[str], streams: tuple[int, int, int], script: int) -> None:
        self.spec = spec
        self.arguments = arguments
        self.streams = streams
        self.script = script
        self.paths = _candidates(arguments[0], spec.env)
        self.bash = _bash(spec.env)
        self.env = {os.fsencode(name): os.fsencode(value) for name, value in spec.env.items()}
        if any(b"\0" in name + value or b"=" in name or not name for name, value in self.env.items()):
            raise ValueError("a variable has a name or a value that no variable can have")

    def spawn(self, as_child: Callable[[Callable[[], Any]], Any]) -> int:
        """Return the number of the process, in which the program runs by then."""
        if self.spec.size is not None:
            return self._fork(as_child)
        # Twice as fast where it does without copying this process, in Python 3.10 and later. It cannot claim a terminal.
        import subprocess  # noqa: PLC0415 - longer to import than all the rest: see `warm_up`

        def popen(arguments: list[str]) -> subprocess.Popen[bytes]:
            stdin, stdout, stderr = self.streams
            return subprocess.Popen(
                arguments,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=self.spec.cwd,
                env=self.env,
                close_fds=False,  # each of them closes by itself
                start_new_session=True,
            )

        if self.script >= 0:
            os.set_inheritable(self.script, True)
        try:
            process = as_child(lambda: popen(self.arguments))
        except OSError as error:
            if error.errno not in _LEFT_TO_BASH:
                raise
            arguments = self._by_bash(error)
            process = as_child(lambda: popen(arguments))
        # It is waited for elsewhere, and not by this when it is forgotten.
        process.returncode = 0
        return process.pid

    def _by_bash(self, error: OSError) -> list[str]:
        """Return what says in the process itself that the program cannot be run, or runs it as a script."""
        if self.bash is not None:
            return [self.bash, "-c", 'exec "$@"', "bash", *self.arguments]
        return ["/bin/sh", "-c", 'printf "%s: %s\\n" "$0" "$1" >&2; exit 127', self.arguments[0], str(error.strerror)]

    def _fork(self, as_child: Callable[[Callable[[], Any]], Any]) -> int:
        news, report = os.pipe()
        try:
            # What comes before the child has its own handlers would run the helper's there.
            signal.pthread_sigmask(signal.SIG_BLOCK, _ALL_SIGNALS)
            try:
                pid = as_child(os.fork)
                if pid == 0:
                    self._become(report)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, ())
            os.close(report)
            report = -1
            failure = os.read(news, 64)
            if failure:
                os.waitpid(pid, 0)
                number = int(failure)
                raise OSError(number, os.strerror(number))
            return pid
        finally:
            os.close(news)
            if report >= 0:
                os.close(report)

    def _become(self, report: int) -> None:
        """Turn the forked process into the program. Never returns."""
        try:
            signal.set_wakeup_fd(-1)
            os.setsid()
            for number, stream in enumerate(self.streams):
                os.dup2(stream, number)
            if self.spec.size is not None:
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            if self.script >= 0:
                os.set_inheritable(self.script, True)
            os.chdir(self.spec.cwd)
            for number in _SET_BY_PYTHON:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            error = _execute(self.paths, self.arguments, self.env)
            if error.errno in _LEFT_TO_BASH:
                arguments = self._by_bash(error)
                error = _execute(arguments[:1], arguments, self.env)
            os.write(report, str(error.errno).encode())
        except OSError as error:
            os.write(report, str(error.errno).encode())
        finally:
            os._exit(255)


def _execute(programs: list[str], arguments: list[str], env: dict[bytes, bytes]) -> OSError:
    """Run the first of these programs that can be; return why none could."""
    saved: OSError | None = None
    last = OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    for program in programs:
        try:
            os.execve(program, arguments, env)  # noqa: S606 - what has a shell says so
        except (FileNotFoundError, NotADirectoryError) as error:
            last = error
        except OSError as error:
            saved = saved or error
    return saved or last


def _shown(command: str | list[str]) -> str:
    """Return the command for people, or as many of its first words as fit.

    Errors are masked later, and half a secret would no longer be found. So a word is shown in full or not at all.
    """
    text = repr(command)
    if len(text) <= _LONGEST_SHOWN:
        return text
    if isinstance(command, list):
        first: list[str] = []
        length = 0
        for argument in command:
            length += len(repr(argument)) + 2
            if length > _LONGEST_SHOWN:
                break
            first.append(argument)
        return f"{first!r} (the first {len(first)} of {len(command):,} arguments)"
    end = 0
    for word in _WORD.finditer(command):
        if len(repr(command[: word.end()])) > _LONGEST_SHOWN:
            break
        end = word.end()
    return f"{command[:end]!r} (the first {end} of {len(command):,} characters)"
