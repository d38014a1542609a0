"""A bash that lives on, on a terminal of its own: it is typed to, and read from all the time.

Above: `Terminal`, which does actions with it. Below: a workspace's process. It is served by one task, which ends it.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple, final

import anyio

from agentcore._groups import leaf_exceptions
from agentcore.errors import AgentcoreError, ConnectionLost, WorkspaceError
from agentcore.workspace import Process, Workspace
from agentcore_tools._output import LONGEST_SECRET, HeadAndTail, OutputFile, cut_at_gap, mark_gaps
from agentcore_tools.terminal.foreground import ForegroundState, foreground_state
from agentcore_tools.terminal.input import typed
from agentcore_tools.terminal.protocol import (
    ENVIRONMENT,
    HEIGHT,
    RESTORE_TTY,
    START,
    WIDTH,
    Echo,
    Report,
    ReportParser,
    ack_line,
    command_lines,
    new_nonce,
    setup_lines,
)
from agentcore_tools.terminal.screen import Screen

_START_SECONDS: Final = 30.0
TYPE_SECONDS: Final = 5.0
"""How long what is typed may wait to be taken. A shell takes it at once; one that does not is stopped, or something else."""
# How long after an interruption the shell may take to say that it is ready; it takes milliseconds.
_REPORT_SECONDS: Final = 1.0
_MEND_TIMES: Final = 10
_LAST_WORDS_SECONDS: Final = 0.2
_CLOSE_SECONDS: Final = 10.0
_LIVE_CHARACTERS: Final = 65536
# Ctrl-U. A key that came too late for its program is the beginning of a line until it is taken back.
_FORGET_LINE: Final = b"\x15"
# Ctrl-C, which ends a line that is not whole yet too.
_ABANDON_LINE: Final = b"\x03"
# Ctrl-C, Ctrl-\ and Ctrl-Z.
_SIGNALLING: Final = {b"\x03", b"\x1c", b"\x1a"}
# The system counts the age of a process in ticks.
_TICK: Final = 0.01


class Ended(NamedTuple):
    """A command that has ended, and its output that was not reported yet."""

    report: Report
    text: str
    whole: OutputFile | None
    """The file with all of its output."""


@final
class Shell:
    """Runs one command at a time."""

    def __init__(
        self, workspace: Workspace, *, marks: Mapping[str, str] | None = None, type_seconds: float = TYPE_SECONDS
    ) -> None:
        self._workspace = workspace
        self._marks = dict(marks or {})
        self._type_seconds = type_seconds
        self._process: Process | None = None
        self._scope = anyio.CancelScope()
        self._gone = anyio.Event()
        self._changed = anyio.Event()
        self._idle = anyio.Event()
        self._screen = Screen(WIDTH, HEIGHT)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._fence = ReportParser()
        self._echoes: list[Echo] = []
        self._ending = False
        self._normalize = False
        """True if the terminal has to be restored before the next command, which might otherwise be lost or shown wrongly."""
        self._began = -math.inf
        self._busy = True
        self._typed_whole = True
        self._lines = 0
        self._keyed = False
        self._whole: OutputFile | None = None
        self._ended: Ended | None = None
        self._failure: AgentcoreError | None = None
        self._live = HeadAndTail(_LIVE_CHARACTERS + 4 * LONGEST_SECRET)
        self._live_held = ""
        self.exit_code: int | None = None
        """How the shell itself ended, if it did so by itself."""
        self.last_output = -math.inf

    @property
    def busy(self) -> bool:
        """True while a command runs in it."""
        return self._busy and self.alive

    @property
    def ending(self) -> bool:
        """True if the running command has ended and its report is about to come: text typed now would be lost."""
        return self._ending and self.busy

    @property
    def alive(self) -> bool:
        """True if it takes commands, now or when the running command has ended."""
        return not self._gone.is_set()

    @property
    def lost(self) -> AgentcoreError | None:
        """The error that says that the place is gone in which it ran, with whatever ran in it."""
        return self._failure if self._failure is not None and self._failure.outcome_unknown else None

    @property
    def whole(self) -> OutputFile | None:
        """The file with all of the output of the running command, or of the last one."""
        return self._whole

    async def serve(self) -> None:
        """Start it, and serve it until it ends or is closed; `ready` waits until it can be used."""
        try:
            with self._scope:
                variables = {**ENVIRONMENT, **self._marks}
                opened = self._workspace.open_process(START, pty=True, env=variables, size=(WIDTH, HEIGHT))
                async with opened as process:
                    self._process = process
                    nonce = new_nonce()
                    self._fence.expect(nonce)
                    await self._type(setup_lines(nonce))
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(self._listen, process)
                        self.exit_code = await process.wait()
                        tasks.cancel_scope.cancel()
                    await self._receive_last_words(process)
        except Exception as error:
            # Each task that uses a connection raises when that breaks; it is one failure.
            failures = [leaf for leaf in leaf_exceptions(error) if isinstance(leaf, WorkspaceError | ConnectionLost)]
            if not failures:
                raise
            self._failure = failures[0]
        finally:
            self._screen.end()
            if self._whole is not None:
                self._whole.end()
            self._gone.set()
            self._idle.set()
            self._notify()

    async def ready(self) -> None:
        """Wait until it can be given a command; if it does not come to that, it is closed."""
        try:
            with anyio.move_on_after(_START_SECONDS):
                await self.idle()
        finally:
            # Cancelled, too late, or over before it began.
            if self._busy:
                with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                    await self.close()
        if self._busy:
            if self.lost is not None:
                raise self.lost
            shown = self.take()
            raise WorkspaceError(f"No bash started in {self._workspace.root!r}: {shown!r}") from self._failure
        self.take_ended()
        self._forget_live()

    async def close(self) -> None:
        """End it with everything that was started in it."""
        self._scope.cancel()
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            await self._gone.wait()

    async def run(self, command: str, variables: Mapping[str, str], whole: OutputFile | None = None) -> str:
        """Type a command, for which alone the variables are in the environment; return what came before it.

        Raises:
            WorkspaceError: the shell takes no input, or it is uncertain whether it would take this as a command.
        """
        before = self._screen.finish()
        if self._normalize:
            await self._restore_terminal()
            before += self._screen.finish()
        self._forget_live()
        self._whole = whole
        self._screen.whole = None if whole is None else whole.add
        await self._run(command, variables, new_nonce())
        return before if before.strip() else ""  # a shell that is interrupted begins a line

    async def _restore_terminal(self) -> None:
        """Bring the terminal back into order. A command may be typed only when that is over, or it might be thrown away."""
        nonce = new_nonce()
        for attempt in range(_MEND_TIMES):
            if attempt % 2:
                # A signal that comes while bash reads a line can leave it inside of the line's quotes, and all that follows too.
                await self._type(_ABANDON_LINE)
                await anyio.sleep(_TICK)
            await self._run(RESTORE_TTY, {}, nonce)
            # It is lost to a signal, or the machine is busy. Then it is done twice, which does no harm.
            with anyio.move_on_after(_REPORT_SECONDS) as waiting:
                await self.idle()
            if not waiting.cancelled_caught:
                self._ended, self._normalize = None, False
                return
        raise WorkspaceError("The shell did not come back from an interruption.")

    async def _run(self, command: str, variables: Mapping[str, str], nonce: int) -> None:
        lines = command_lines(command, nonce, variables)
        self._fence.expect(nonce)
        self._echoes = [Echo(lines)]
        self._lines = lines.count(b"\n")
        self._began = self.last_output = anyio.current_time()
        self._busy, self._idle = True, anyio.Event()
        self._typed_whole = False
        await self._type((_FORGET_LINE if self._keyed else b"") + lines)
        self._typed_whole, self._keyed = True, False

    async def send(self, text: str, enter: bool | None = None) -> None:
        """Type a key, or text and Enter, into the command that runs; with `enter` given, text with or without it."""
        data = typed(text, enter)
        self._keyed = self._keyed or not data.endswith(b"\r")
        self._normalize = self._normalize or data in _SIGNALLING
        await self._type(data)

    async def interrupt(self) -> bool:
        """End the command that runs, with all that it started. False: the shell may not be in working order after it."""
        # A signal that reaches the shell when it is ready already has it throw away the line that it is about to read.
        self._normalize = True
        # Twice, because the first may come before the shell has read what was typed, so that it is the shell that gets it.
        for _ in range(2):
            if self._process is None or not self._typed_whole:
                return False
            began = anyio.current_time() - self._began + _TICK
            await self._process.interrupt(started_within=began)
            with anyio.move_on_after(_REPORT_SECONDS / 2):
                await self.idle()
            if not self._busy:
                return self.alive
            if self._lines > 1:
                break  # it may have read a part of them, and would take the rest for other commands
        return False

    async def foreground_state(self) -> ForegroundState | None:
        """Return whether the command waits for input, or the shell is stopped. None if something came meanwhile."""
        before = self.last_output
        if self._process is None or not self._typed_whole or self._ending:
            return None
        state = await foreground_state(self._workspace, self._process.pid)
        return state if self.busy and not self._ending and self.last_output == before else None

    async def changed(self) -> None:
        """Wait until something is written, the command ends, or the shell does."""
        await self._changed.wait()

    async def idle(self) -> None:
        """Wait until the command ends, or the shell does."""
        await self._idle.wait()

    def take(self, unfinished: Callable[[str], int] = lambda _: 0) -> str:
        """Return the output since the last call, without what is `unfinished` at its end while more may come."""
        return self._screen.take(unfinished) if self.alive else self._screen.take()

    def take_ended(self) -> Ended | None:
        """Return the command that has ended, once."""
        ended, self._ended = self._ended, None
        return ended

    def take_live(self, unfinished: Callable[[str], int]) -> str:
        """Return the output since the last call, for people who watch; of too much, the beginning and the end.

        What is `unfinished` at the end is held back while the command runs.
        """
        text = cut_at_gap(self._live_held + self._live.take(), _LIVE_CHARACTERS // 2, unfinished)
        shown = len(text) - (unfinished(text) if self.busy else 0)
        self._live_held = text[shown:]
        return mark_gaps(text[:shown])

    def _forget_live(self) -> None:
        self._live.take()
        self._live_held = ""

    async def _type(self, data: bytes) -> None:
        assert self._process is not None, "it is typed to when it has started"
        try:
            with anyio.fail_after(self._type_seconds):
                await self._process.send(data)
        except TimeoutError:
            raise WorkspaceError(f"The terminal took no input for {self._type_seconds:g} s.") from None
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise WorkspaceError("The terminal takes no input: the shell has ended.") from error

    async def _listen(self, process: Process) -> None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                self._receive(await process.receive())
                if self._fence.asked:
                    await self._answer()
                if self._whole is not None:
                    await self._whole.keep()

    async def _answer(self) -> None:
        """Acknowledge that nothing more is typed. All earlier text comes before this, where the shell discards it."""
        self._fence.asked, self._ending = 0, True
        line = ack_line(self._fence.nonce)
        self._echoes.append(Echo(line))
        # It goes on without an answer, too.
        with suppress(WorkspaceError):
            await self._type(line)

    async def _receive_last_words(self, process: Process) -> None:
        """Read what the shell wrote before it ended. What is left in the background may write for ever."""
        with (
            suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, TimeoutError),
            anyio.move_on_after(_LAST_WORDS_SECONDS * 5),
        ):
            while True:
                with anyio.fail_after(_LAST_WORDS_SECONDS):
                    data = await process.receive()
                self._receive(data)
                if self._whole is not None:
                    await self._whole.keep()

    def _receive(self, data: bytes) -> None:
        for echo in self._echoes:
            data = echo.feed(data)
        before, report, after = self._fence.feed(data)
        self._show(before)
        if report is not None:
            self._ended = Ended(report, self._screen.finish(), self._whole)
            self._screen.whole = None
            if self._whole is not None:
                self._whole.end()
            self._normalize = self._normalize or not report.cooked or any(echo.found for echo in self._echoes)
            self._echoes = []
            self._busy = self._ending = False
            self._idle.set()
        self._show(after)
        self.last_output = anyio.current_time()
        self._notify()

    def _show(self, data: bytes) -> None:
        watched = self._screen.feed(self._decoder.decode(data))
        if watched:
            self._live.add(watched.replace("\0", ""))

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
