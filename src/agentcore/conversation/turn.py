"""A turn: one stretch of work, from the event that says that the agent works until the one that says how it settled."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import Context
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

import anyio

from agentcore.conversation.limits import RunTimer
from agentcore.conversation.result import RunResult

if TYPE_CHECKING:
    from agentcore.conversation.calls import CallTable

__all__ = ["PHASES", "Phase", "Turn"]

Phase = Literal["queued", "working", "stopping", "settled"]

PHASES: Final[Mapping[Phase, frozenset[Phase]]] = MappingProxyType(
    {
        "queued": frozenset[Phase]({"working", "stopping", "settled"}),
        "working": frozenset[Phase]({"stopping", "settled"}),
        "stopping": frozenset[Phase]({"settled"}),
        "settled": frozenset[Phase](),
    }
)
"""Where each phase leads. Queued: the log says that the agent works, and the driver has not begun. Stopping: interrupted,
and what is open is being answered. Settled: the log says how it ended, or the log is dead."""


class Turn:
    """Begun and ended by the core, as the log says; carried out by the driver."""

    def __init__(self, run: int, context: Context, calls: CallTable) -> None:
        self.run = run
        """The seq at which its run began; a run that waited for a person goes on in another turn."""
        self.context = context
        self.phase: Phase = "queued"
        self.done = anyio.Event()
        """Set when it has settled."""
        self.waiters: set[str] = set()
        """The ids of the commands that wait for it."""
        self.scope = anyio.CancelScope()
        """Cancelled by an interrupt."""
        self.timer: RunTimer | None = None
        self.reason: str | None = None
        """Why it was stopped."""
        self.command: str | None = None
        """The id of the command that stopped it."""
        self.by: str | None = None
        self.closing = False
        """Whether it was stopped because the conversation ends."""
        self.result: RunResult | None = None
        self.error: BaseException | None = None
        """What it failed with."""
        self.fatal = False
        """Whether the conversation ended with `error`, not the turn alone."""
        self._calls = calls

    def enter(self, phase: Phase) -> None:
        """Go on to the next phase."""
        assert phase in PHASES[self.phase], (self.phase, phase)
        self.phase = phase

    @property
    def settled(self) -> bool:
        """Whether it is over."""
        return self.phase == "settled"

    def interrupt(self, reason: str | None, *, command: str | None = None, by: str | None = None) -> None:
        """Stop it where it is, begun or not. Waits for nothing."""
        if self.settled:
            return
        if self.phase != "stopping":
            self.enter("stopping")
            self.reason, self.command, self.by = reason, command, by
        self.scope.cancel()
        self._calls.stop_all("the turn was stopped", "interrupted")

    def leave(self, waiter: str) -> None:
        """Take one off who waits; the last one who goes interrupts it."""
        if waiter in self.waiters:
            self.waiters.discard(waiter)
            if not self.waiters:
                self.interrupt("the caller of run() was cancelled")

    def end(self, result: RunResult) -> None:
        """Let those who wait for it have what it came to."""
        self.enter("settled")
        self.result = result
        self.done.set()
