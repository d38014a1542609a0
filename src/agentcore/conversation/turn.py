"""A turn: one stretch of work, from the event that says that the agent works until the one that says how it settled."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextvars import Context
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

import anyio

from agentcore.conversation.result import RunResult
from agentcore.record import ConversationState
from agentcore.usage import Limits

if TYPE_CHECKING:
    from agentcore.conversation.calls import CallTable


def exceeded(state: ConversationState, limits: Limits) -> tuple[str, str] | None:
    """Name the budget that leaves no room for another step, with a sentence for people; None where there is room."""
    if limits.steps is not None and state.run.steps >= limits.steps:
        return "steps", f"The run has taken {_count(state.run.steps, 'step')}; its limit is {limits.steps}."
    return used_up(state, limits)


def used_up(state: ConversationState, limits: Limits) -> tuple[str, str] | None:
    """Name the budget of the whole conversation that is used up, with a sentence for people; None where none is."""
    if limits.tokens is None and limits.cost is None:
        return None
    usage = state.usage
    if limits.tokens is not None and usage.total_tokens >= limits.tokens:
        return "tokens", f"The conversation has used {usage.total_tokens} tokens; its limit is {limits.tokens}."
    if limits.cost is not None:
        if usage.known_cost >= limits.cost:
            return "cost", f"The conversation has cost ${usage.known_cost}; its limit is ${limits.cost}."
        if usage.unpriced_requests:
            return "cost_unknown", (
                f"The limit of ${limits.cost} can't be kept: the price of {_count(usage.unpriced_requests, 'model call')} is "
                "unknown. Give the model's prices, or lift the limit."
            )
    return None


class RunTimer:
    """Counts the seconds that a run worked, and ends its scope when the limit is reached.

    Waiting for a person stops it. The limits may change while it runs.
    """

    def __init__(self, clock: Callable[[], float], worked_before: float) -> None:
        self._clock = clock
        self._worked_before = worked_before
        self._worked = 0.0
        self._since: float | None = clock()
        self._pauses = 0
        """How many wait for a person just now."""
        self.scope = anyio.CancelScope()
        self.limits = Limits()

    @property
    def elapsed(self) -> float:
        """Seconds of this run up to now."""
        return self._worked + (self._clock() - self._since if self._since is not None else 0.0)

    @property
    def expired(self) -> tuple[str, str] | None:
        """Which of the two deadlines has passed, with a sentence for people."""
        limits = self.limits
        if limits.run_seconds is not None and self.elapsed >= limits.run_seconds:
            return "run_seconds", f"The run has taken {self.elapsed:.1f} s; its limit is {limits.run_seconds:g} s."
        total = self._worked_before + self.elapsed
        if limits.conversation_seconds is not None and total >= limits.conversation_seconds:
            return "conversation_seconds", (
                f"The conversation's runs have taken {total:.1f} s; their limit is {limits.conversation_seconds:g} s."
            )
        return None

    def set_limits(self, limits: Limits) -> None:
        """Keep these limits from now on."""
        self.limits = limits
        self._update_deadline()

    def pause(self) -> None:
        """Stop counting while a person is asked, until `resume` was called as often."""
        self._pauses += 1
        if self._since is not None:
            self._worked += self._clock() - self._since
            self._since = None
        self._update_deadline()

    def resume(self) -> None:
        """Count again, unless another person is still asked."""
        self._pauses -= 1
        if self._since is None and not self._pauses:
            self._since = self._clock()
        self._update_deadline()

    def _update_deadline(self) -> None:
        if self._since is None:
            self.scope.deadline = math.inf
            return
        left = [math.inf]
        if self.limits.run_seconds is not None:
            left.append(self.limits.run_seconds - self._worked)
        if self.limits.conversation_seconds is not None:
            left.append(self.limits.conversation_seconds - self._worked_before - self._worked)
        self.scope.deadline = self._since + min(left)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


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
        """True if it was stopped because the conversation ends."""
        self.result: RunResult | None = None
        self.error: BaseException | None = None
        """The exception it failed with."""
        self.fatal = False
        """True if the conversation ended with `error`, not the turn alone."""
        self._calls = calls

    def enter(self, phase: Phase) -> None:
        """Go on to the next phase."""
        assert phase in PHASES[self.phase], (self.phase, phase)
        self.phase = phase

    @property
    def settled(self) -> bool:
        """True once it is over."""
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
