"""Watching a conversation go by and saying when it goes round in circles.

Below: the events. Above: the driver, which asks after each step and does what the verdict says. What is known follows
from the events of the active branch alone, so that replaying them gives the same verdict.
"""

from __future__ import annotations

from collections import deque
from typing import final

from agentcore.events import (
    ActionEvent,
    AgentErrorEvent,
    Condensation,
    CondensationRequest,
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    ConversationStatus,
    Event,
    MessageEvent,
    ObservationEvent,
    StatusChanged,
    UserRejectObservation,
)
from agentcore.stuck.rounds import Round
from agentcore.stuck.thresholds import StuckThresholds
from agentcore.stuck.verdict import StuckCode, Verdict

__all__ = ["StuckDetector"]

_ERROR_SHOWN = 500


@final
class StuckDetector:
    """Counts repetitions since the last message of a user. Each event costs the same, however long the history."""

    def __init__(self, thresholds: StuckThresholds | None = None) -> None:
        self.thresholds = thresholds or StuckThresholds()
        enabled = (self.thresholds.repeated_action, self.thresholds.repeated_error, self.thresholds.alternation)
        # One more than is counted: the round after a nudge.
        self._rounds: deque[Round] = deque(maxlen=max((count or 0) for count in enabled) + 1)
        self._messages = 0
        self._too_large: dict[str, int] = {}

    def reset(self) -> None:
        """Forget everything: after a rewind, and then the events of the branch are observed anew."""
        self._rounds.clear()
        self._messages = 0
        self._too_large.clear()

    def observe(self, event: Event) -> None:
        """Take the next event of the active branch."""
        match event:
            case ActionEvent():
                self._agent_replied(spoke=False)
                if not self._rounds or self._rounds[-1].reply_id != event.reply_id:
                    self._rounds.append(Round(event.reply_id))
                self._rounds[-1].add(event)
            case ObservationEvent() | AgentErrorEvent() | UserRejectObservation():
                if self._rounds:
                    self._rounds[-1].answer(event)
            case MessageEvent(source="user"):
                self.reset()
            case MessageEvent(source="agent"):
                self._agent_replied(spoke=True)
            case MessageEvent(code="repeated_error"):
                if self._rounds:
                    self._rounds[-1].nudged = True
            case CondensationRequest() | Condensation():
                self._count_too_large(event.kind)
            case ConversationErrorEvent(code="ContextWindowExceeded"):
                self._count_too_large(event.kind)
            case ConversationStateUpdateEvent(update=StatusChanged(status=ConversationStatus.STUCK)):
                # The verdict was acted upon. Whoever runs it on from here gives it another chance.
                self.reset()
            case _:
                pass

    def verdict(self) -> Verdict | None:
        """Say whether the agent goes round in circles. None, too, while actions wait for their answers."""
        if self._rounds and not self._rounds[-1].settled:
            return None
        return (
            self._context_window()
            or self._monologue()
            or self._repeated_error()
            or self._repeated_action()
            or self._alternation()
        )

    def _agent_replied(self, *, spoke: bool) -> None:
        self._messages = self._messages + 1 if spoke else 0
        self._too_large.clear()

    def _count_too_large(self, kind: str) -> None:
        self._too_large[kind] = self._too_large.get(kind, 0) + 1

    def _context_window(self) -> Verdict | None:
        # A turn of this loop may leave one event of each kind, so the kinds are not added up.
        count = max(self._too_large.values(), default=0)
        if _reached(count, self.thresholds.context_window):
            return _stuck("context_window", f"The history was made shorter {count} times and no request went through.")
        return None

    def _monologue(self) -> Verdict | None:
        if _reached(self._messages, self.thresholds.monologue):
            return _stuck("monologue", f"The agent sent {self._messages} messages in a row and used no tool.")
        return None

    def _repeated_error(self) -> Verdict | None:
        limit = self.thresholds.repeated_error
        if limit is None or not self._rounds:
            return None
        last = self._rounds[-1]
        streak: list[Round] = []
        for earlier in reversed(self._rounds):
            if not (earlier.failed and earlier.asks_like(last)):
                break
            streak.append(earlier)
        if len(streak) < limit:
            return None
        what = f"The agent called {last.tools} {len(streak)} times in a row with the same arguments, and it failed each time"
        error = _shortened(last.last_error)
        if len(streak) > limit:
            return _stuck("repeated_error", f"{what}, the last time with: {error}")
        if len(streak) == limit and not last.nudged:
            nudge = (
                f"You have called {last.tools} {limit} times in a row with the same arguments, and it failed each "
                f"time. The last error was:\n{error}\nThe same call will fail again. Find out why it fails, change the "
                "arguments, or reach the goal in another way; if there is none, say what is in the way."
            )
            return Verdict(code="repeated_error", detail=f"{what}. It was told so.", action="nudge", nudge=nudge)
        return None

    def _repeated_action(self) -> Verdict | None:
        limit = self.thresholds.repeated_action
        if limit is None or len(self._rounds) < limit:
            return None
        last = self._rounds[-1]
        if all(self._rounds[-back].repeats(last) for back in range(2, limit + 1)):
            return _stuck(
                "repeated_action",
                f"The agent called {last.tools} {limit} times in a row with the same arguments and the same result.",
            )
        return None

    def _alternation(self) -> Verdict | None:
        limit = self.thresholds.alternation
        if limit is None or len(self._rounds) < limit:
            return None
        last, before = self._rounds[-1], self._rounds[-2]
        if last.asks_like(before):
            return None  # one request whose answer changes: somebody waits for something
        if all(self._rounds[-back].repeats(last if back % 2 else before) for back in range(3, limit + 1)):
            return _stuck(
                "alternation",
                f"The agent went to and fro between {before.tools} and {last.tools} for {limit} replies, "
                "with the same arguments and the same results.",
            )
        return None


def _reached(count: int, limit: int | None) -> bool:
    return limit is not None and count >= limit


def _stuck(code: StuckCode, detail: str) -> Verdict:
    return Verdict(code=code, detail=detail, action="stuck")


def _shortened(error: str) -> str:
    return error if len(error) <= _ERROR_SHOWN else f"{error[:_ERROR_SHOWN]} ..."
