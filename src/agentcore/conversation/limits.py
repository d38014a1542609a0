"""Holding a conversation to its limits."""

from __future__ import annotations

import math
from collections.abc import Callable

import anyio

from agentcore.record import ConversationState
from agentcore.usage import Limits

__all__ = ["RunTimer", "exceeded"]


def exceeded(state: ConversationState, limits: Limits) -> tuple[str, str] | None:
    """Name the budget that leaves no room for another step, with a sentence for people; None where there is room."""
    if limits.steps is not None and state.run.steps >= limits.steps:
        return "steps", f"The run has taken {_count(state.run.steps, 'step')}; its limit is {limits.steps}."
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
    """Counts the seconds of a run in which somebody worked, and ends its scope when the limit is reached.

    Waiting for a person stops it. The limits may change while it runs.
    """

    def __init__(self, clock: Callable[[], float], worked_before: float) -> None:
        self._clock = clock
        self._worked_before = worked_before
        self._worked = 0.0
        self._since: float | None = clock()
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
        """Stop counting: somebody waits for a person."""
        if self._since is not None:
            self._worked += self._clock() - self._since
            self._since = None
        self._update_deadline()

    def resume(self) -> None:
        """Count again."""
        if self._since is None:
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
