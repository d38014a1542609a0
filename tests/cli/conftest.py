"""The command line as a user has it.

`run` and `on_terminal` call `main()` in this process, with files or a pseudo-terminal as its standard streams. `start` starts an
interpreter, for what only a process can show: signals, exit codes of the system, what is imported.
"""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, TextIO

import pytest
import typer.main
from anyio.from_thread import BlockingPortal, start_blocking_portal

from agentcore.cli import main
from agentcore.testing import ChatProvider, ScriptLine, serve_provider

SECONDS = 60
"""How long to wait for something that will be shown."""

_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


@dataclass
class Ended:
    """A run that is over."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output, as JSON Lines."""
        return [json.loads(line) for line in self.out.splitlines()]


def can_be_read(descriptor: int, milliseconds: int) -> bool:
    """Return whether there is something to read, or the end, within this time. `select` takes no descriptor above 1,023."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(milliseconds))


class Screen:
    """The other end of a pseudo-terminal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.raw = b""
        self._read_to = 0

    @property
    def text(self) -> str:
        """All that was shown so far, without colours and cursor moves."""
        return _SEQUENCE.sub("", self.raw.decode(errors="replace")).replace("\r\n", "\n")

    def read(self) -> bool:
        """Read what comes within a tenth of a second; False at the end."""
        if can_be_read(self._descriptor, 100):
            try:
                piece = os.read(self._descriptor, 65_536)
            except OSError:  # Linux: nobody has the terminal open
                return False
            self.raw += piece
            return bool(piece)
        return True

    def shows(self, wanted: str) -> None:
        """Wait until this is shown, after what was waited for before."""
        deadline = time.monotonic() + SECONDS
        while (at := self.text.find(wanted, self._read_to)) < 0:
            assert self.read(), f"{wanted!r} was never shown. There was:\n{self.text}"
            assert time.monotonic() < deadline, f"{wanted!r} is not shown. There is:\n{self.text}"
        self._read_to = at + len(wanted)

    def types(self, text: str) -> None:
        """Type this."""
        os.write(self._descriptor, text.encode())


@dataclass
class Started(Screen):
    """A process on a terminal."""

    process: subprocess.Popen[bytes]
    descriptor: int

    def __post_init__(self) -> None:
        super().__init__(self.descriptor)

    def ends(self) -> int:
        """Wait for the end and return the exit code as a shell does."""
        while self.read():
            pass
        code = self.process.wait(SECONDS)
        return code if code >= 0 else 128 - code


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until this is so."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def terminal(columns: int) -> Generator[tuple[int, int]]:
    """Open a pseudo-terminal with this many columns: our end, and its end, which the caller closes."""
    master, slave = pty.openpty()
    try:
        termios.tcsetwinsize(master, (40, columns))
        yield master, slave
    finally:
        os.close(master)


@dataclass
class Cli:
    """Runs the program, with a home and a project of its own."""

    home: Path
    project: Path
    environment: dict[str, str]
    portal: BlockingPortal

    @contextmanager
    def serve(self, *script: ScriptLine, **options: Any) -> Generator[ChatProvider]:
        """Serve a scripted model on the loopback."""
        with self.portal.wrap_async_context_manager(serve_provider(script, **options)) as provider:
            yield provider

    def run(self, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None) -> Ended:
        """Run `main()` to its end, with files as its standard streams."""
        with ExitStack() as open_files:
            files = [open_files.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
            files[0].write(stdin.encode())
            files[0].seek(0)
            # Descriptors of its own: --json exchanges them.
            streams = [_open(os.dup(file.fileno()), mode) for file, mode in zip(files, "rww", strict=True)]
            code = self._main(arguments, streams, env or {})
            for stream in streams:
                with suppress(OSError):
                    stream.close()
            for file in files:
                file.seek(0)
            _, out, err = (file.read().decode() for file in files)
        return Ended(code, out, err)

    def on_terminal(
        self,
        *arguments: str,
        answers: Iterable[tuple[str, str]] = (),
        columns: int = 100,
        env: Mapping[str, str] | None = None,
    ) -> tuple[int, Screen]:
        """Run `main()` to its end on a terminal; when the text of an answer's first part is shown, type its second."""
        failures: list[BaseException] = []
        with terminal(columns) as (master, slave):
            screen = Screen(master)

            def person() -> None:
                try:
                    for shown, typed in answers:
                        screen.shows(shown)
                        screen.types(typed)
                    while screen.read():
                        if done.is_set() and not can_be_read(master, 0):
                            break
                except BaseException as error:  # noqa: ASYNC103 of a thread, and raised by who started it
                    failures.append(error)
                    screen.types("l\nl\nl\n")

            done = threading.Event()
            thread = threading.Thread(target=person)
            thread.start()
            streams = [_open(os.dup(slave), mode) for mode in "rww"]
            try:
                code = self._main(
                    arguments, streams, {"TERM": "xterm-256color", "COLUMNS": str(columns), **(env or {})}
                )
            finally:
                for stream in streams:
                    stream.close()
                os.close(slave)
                done.set()
                thread.join()
        if failures:
            raise failures[0]
        return code, screen

    def play(self, *script: ScriptLine, flags: Sequence[str] = (), env: Mapping[str, str] | None = None) -> Ended:
        """Run a task with a scripted model."""
        with self.serve(*script) as provider:
            return self.run("run", "Do it.", "-m", "mine", "--base-url", provider.base_url, *flags, env=env)

    @contextmanager
    def start(
        self, *command: str, program: Sequence[str] = (), env: Mapping[str, str] | None = None, columns: int = 100
    ) -> Generator[Started]:
        """Start the program, or another one, in a process of its own on a terminal; kill it at the end if need be."""
        with terminal(columns) as (master, slave):
            process = subprocess.Popen(
                [*(program or [sys.executable, "-m", "agentcore"]), *command],
                stdin=slave, stdout=slave, stderr=slave, cwd=self.project, start_new_session=True,
                env={"TERM": "xterm-256color", **self.environment, **(env or {})},
                preexec_fn=_take_terminal,  # noqa: PLW1509 the child calls one function of C
            )  # fmt: skip
            os.close(slave)
            try:
                yield Started(process, master)
            finally:
                if process.poll() is None:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                process.wait(SECONDS)

    def spawn(
        self, *arguments: str, program: Sequence[str] = (), env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Ended:
        """Run the program, or another one, in a process of its own to its end."""
        command = [*(program or [sys.executable, "-m", "agentcore"]), *arguments]
        environment = {**self.environment, **(env or {})}
        ended = subprocess.run(
            command, input=stdin.encode(), capture_output=True, env=environment, cwd=self.project, timeout=SECONDS,
            check=False,
        )  # fmt: skip
        return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    def _main(self, arguments: Sequence[str], streams: Sequence[TextIO], env: Mapping[str, str]) -> int:
        def leave(code: int) -> NoReturn:
            raise SystemExit(code)

        with pytest.MonkeyPatch.context() as patch:
            for name in list(os.environ):
                patch.delenv(name)
            for name, value in {**self.environment, **env}.items():
                patch.setenv(name, value)
            patch.chdir(self.project)
            patch.setattr(sys, "argv", ["agentcore", *arguments])
            for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
                patch.setattr(sys, name, stream)
            patch.setattr(os, "_exit", leave)  # the program leaves so where a thread would keep it
            with pytest.raises(SystemExit) as left:
                main()
        assert isinstance(left.value.code, int)
        return left.value.code

    def ids(self) -> list[str]:
        """Return the ids of the conversations."""
        folder = self.home / "conversations"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def log(self, conversation_id: str | None = None) -> Path:
        """Return the file of a log; of the only one, if none is named."""
        if conversation_id is None:
            (conversation_id,) = self.ids()
        return self.home / "conversations" / conversation_id / "events.jsonl"

    def events(self, conversation_id: str | None = None) -> list[dict[str, Any]]:
        """Read a log as any program could."""
        return [json.loads(line) for line in self.log(conversation_id).read_text(encoding="utf-8").splitlines()]


def _open(descriptor: int, mode: str) -> TextIO:
    # The caller closes it.
    file = io.FileIO(descriptor, mode)
    return io.TextIOWrapper(io.BufferedReader(file) if mode == "r" else io.BufferedWriter(file), "utf-8")


def _take_terminal() -> None:
    os.close(os.open(os.ttyname(0), os.O_RDWR))


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Run each test once, not on both event loops: the program that is tested brings its own."""
    return "asyncio"


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    """An event loop in a thread, for the providers."""
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture(scope="session", autouse=True)
def _one_tree_of_commands() -> Iterator[None]:
    """Have typer make the same commands once, and not for each run in this process, where that takes a third of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def cli(tmp_path: Path, surroundings: dict[str, str], portal: BlockingPortal) -> Cli:
    """The program, with a home and a project of its own."""
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    return Cli(home, project, {**surroundings, "HOME": str(tmp_path), "AGENTCORE_HOME": str(home)}, portal)
