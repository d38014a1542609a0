"""One start of bubblewrap: its process, the stream to what runs inside, and the proof that all of it has ended."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import threading
from collections import deque
from contextlib import ExitStack, suppress
from typing import Final, final

import anyio
from anyio.abc import UNIXSocketStream

from agentcore_sandbox.bubblewrap.layout import FILES, Layout, build_arguments

READY: Final = b"box is ready\n"
_KEPT_WORDS: Final = 2048
_JOIN_SECONDS: Final = 5.0
# Each moves the shell, and so bubblewrap, into a control group: before it starts anything, so that nothing is outside of them.
_JOIN: Final = 'while [ "$1" != -- ]; do echo 0 >"$1/cgroup.procs" || exit 125; shift; done; shift; '
# Bubblewrap's own first process keeps 0 and 1, and commands may write to its memory: so the stream is another number in it, which it
# closes, and 0 and 1 again in the helper. Shells know numbers of one digit only.
_HIDE: Final = 'exec {0}<&0 0</dev/null 1>/dev/null; exec "$@"'
_SHOW: Final = 'exec 0<&{0} 1>&{0} {0}>&-; exec "$@"'


@final
class RunningBox:
    """Bubblewrap and everything in it. `start`, `kill` and `close` block."""

    def __init__(self, bwrap: str, layout: Layout, groups: list[str], command: list[str], filter_: bytes) -> None:
        self._bwrap = bwrap
        self._layout = layout
        self._groups = groups
        self._command = command
        self._filter = filter_
        self._started = threading.Event()
        # Held while it is started, closed or listened to.
        self._lock = threading.Lock()
        self._abandoned = False
        self._error: Exception | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._hold, name="agentcore-bubblewrap", daemon=True)
        self._socket, self._inner_socket = socket.socketpair()
        # Open as long as the first process of the namespace lives, which ends after all others.
        self._life, self._inner_life = socket.socketpair()
        self._life.setblocking(False)
        # What would wait for a reader is dropped: the words are for people, and nothing inside may hang for them.
        self._errors, self._inner_errors = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._words: deque[int] = deque(maxlen=_KEPT_WORDS)
        self._adopted = False
        self._closed = False
        self.ending = anyio.Lock()
        """Held by whoever waits for the end and closes it."""

    def start(self) -> None:
        """Start it.

        Raises:
            OSError: It could not be.
        """
        with self._lock:
            if self._closed:
                return
            self._thread.start()
            self._started.wait()
        if self._error is not None:
            raise self._error

    def _hold(self) -> None:
        # A thread of its own, as "die with parent" means the thread that started it.
        try:
            if self._abandoned:
                return
            self._process = self._make()
        except Exception as error:  # told to whoever starts it
            self._error = error
            return
        finally:
            self._inner_socket.close()
            self._inner_life.close()
            os.close(self._inner_errors)
            self._started.set()
        if self._abandoned:  # meanwhile
            self._process.kill()
        self._process.wait()

    def _make(self) -> subprocess.Popen[bytes]:
        with ExitStack() as stack:
            data = [(_open_data(content.encode(), stack), path) for path, content in FILES.items()]
            filter_ = _open_data(self._filter, stack)
            life = self._inner_life.fileno()
            passed = [*(number for number, _ in data), filter_, life]
            stream = next(number for number in range(3, 10) if number not in passed)
            arguments = [
                *("/bin/sh", "-c", _JOIN + _HIDE.format(stream), "sh", *self._groups, "--"),
                self._bwrap,
                *build_arguments(self._layout, data),
                "--seccomp", str(filter_),
                "--sync-fd", str(life),
                "--", "/bin/sh", "-c", _SHOW.format(stream), "sh", *self._command,
            ]  # fmt: skip
            return subprocess.Popen(
                arguments,
                stdin=self._inner_socket.fileno(),
                stdout=self._inner_socket.fileno(),
                stderr=self._inner_errors,
                # The first process inside is bubblewrap, and its environment can be read there.
                env={},
                cwd="/",
                pass_fds=passed,
                # A Ctrl-C is meant for this program.
                start_new_session=True,
            )

    async def open_stream(self) -> UNIXSocketStream:
        """Return the stream, when the box is ready.

        Raises:
            anyio.EndOfStream: It ended before; `last_words` say why.
        """
        self._adopted = True  # from here on it is closed with the stream
        stream = await UNIXSocketStream.from_socket(self._socket)
        try:
            waits_for = READY
            while waits_for:
                piece = await stream.receive(len(waits_for))
                if not waits_for.startswith(piece):
                    raise anyio.EndOfStream  # noqa: TRY301 closed below like any other
                waits_for = waits_for[len(piece) :]
        except BaseException:
            await anyio.aclose_forcefully(stream)
            raise
        return stream

    async def wait_gone(self) -> None:
        """Wait until nothing of it runs any more."""
        if self._thread.ident is not None:
            await anyio.wait_readable(self._life)

    def kill(self) -> None:
        """End it and everything in it. It may be called at any time, and again; it does not block."""
        self._abandoned = True
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()

    def kill_left_behind(self) -> None:
        """End a bubblewrap whose parent was killed while the two made the namespaces: it would wait for that one. Blocks."""
        process = self._process
        over = select.poll()  # not `select`, which takes no descriptor above 1,023
        over.register(self._life, select.POLLIN)
        if process is None or over.poll(0):
            return  # nothing of it runs
        for name in os.listdir("/proc"):
            # Whatever has this session is of it: the number is not used again before all of them are gone.
            with suppress(OSError):
                if name.isdigit() and os.getsid(int(name)) == process.pid:
                    os.kill(int(name), signal.SIGKILL)

    def close(self) -> None:
        """Let go of it once it is gone, and collect its process."""
        self.last_words()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._thread.ident is None:  # it was never started
                self._inner_socket.close()
                self._inner_life.close()
                os.close(self._inner_errors)
            else:
                self._thread.join(_JOIN_SECONDS)
            if not self._adopted:
                self._socket.close()
            self._life.close()
            os.close(self._errors)

    def last_words(self) -> str:
        """Return the end of what it wrote to its standard error."""
        with self._lock, suppress(OSError):
            while not self._closed and (piece := os.read(self._errors, 65536)):
                self._words.extend(piece)
        return bytes(self._words).decode(errors="replace")


def _open_data(content: bytes, stack: ExitStack) -> int:
    number = os.memfd_create("agentcore-box")
    stack.callback(os.close, number)
    with open(number, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(number, 0, os.SEEK_SET)
    return number
