"""Watching a conversation go by and saying when it goes round in circles.

Below: the events. Above: the driver, which asks after each step and does what the verdict says. What is known follows
from the events of the active branch alone, so that replaying them gives the same verdict.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from collections import deque
from typing import Annotated, Final, Literal, final

from pydantic import Field

from agentcore._value import Value
from agentcore.events import (
    ActionEvent,
    AgentConfigured,
    AgentErrorEvent,
    AnswerEvent,
    Condensation,
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    ConversationStatus,
    Event,
    MessageEvent,
    ObservationEvent,
    StatusChanged,
    UserRejectObservation,
)
from agentcore.record import ConversationState


class StuckThresholds(Value):
    """When a conversation counts as stuck. None turns a scenario off."""

    repeated_action: Annotated[int, Field(ge=2)] | None = 4
    """So many replies in a row that ask for the same and get the same answers."""
    repeated_error: Annotated[int, Field(ge=2)] | None = 3
    """So many replies in a row that ask for the same and get nothing but errors: the model gets one warning. One more, and
    it is stuck."""
    monologue: Annotated[int, Field(ge=2)] | None = 3
    """So many messages of the agent in a row without an action."""
    alternation: Annotated[int, Field(ge=4)] | None = 6
    """So many replies in a row that go to and fro between two requests, with the same two answers."""
    context_window: Annotated[int, Field(ge=2)] | None = 2
    """So many cuts of the history, or runs that ended because it was too large, without a reply of the model in between. A cut
    that somebody asks for is not counted."""


StuckCode = Literal["repeated_action", "repeated_error", "monologue", "alternation", "context_window"]


class Verdict(Value):
    """The agent goes round in circles."""

    code: StuckCode
    """Which way, for programs. It is also the `code` of the message that carries a nudge."""
    detail: str
    """Which way, for people."""
    action: Literal["nudge", "stuck"]
    """The response: send the model the nudge and go on, or stop."""
    nudge: str | None = None
    """For a nudge, what to tell the model."""


STILL_RUNNING: Final = "running"
"""A tool that looks at work which goes on (a command, a build) puts this into its observation's `data`, with the value
True. Such an answer is not counted as a repetition, because waiting is not a loop; see `WAITS_FOR_INPUT` for the exception."""

WAITS_FOR_INPUT: Final = "waits_for_input"
"""A tool puts this beside `STILL_RUNNING`, with the value True, if the work goes on only when the agent has typed something. Such an
answer is counted: looking again changes nothing."""


@final
class Round:
    """The actions of one reply and their answers."""

    __slots__ = ("_answers", "actions", "nudged", "reply_id")

    def __init__(self, reply_id: str) -> None:
        self.reply_id = reply_id
        self.actions: list[ActionEvent] = []
        self.nudged = False
        """True if the model was warned, after this round, that it repeats itself."""
        self._answers: dict[str, AnswerEvent] = {}

    def add(self, action: ActionEvent) -> None:
        """Count an action in."""
        self.actions.append(action)

    def answer(self, event: AnswerEvent) -> None:
        """Count an answer in, if it is one to an action of this round."""
        if event.cause is not None and any(action.id == event.cause for action in self.actions):
            self._answers.setdefault(event.cause, event)

    @property
    def settled(self) -> bool:
        """True if all its actions are answered."""
        return len(self._answers) == len(self.actions)

    @property
    def failed(self) -> bool:
        """True if all its answers are errors."""
        return self.settled and all(isinstance(answer, AgentErrorEvent) for answer in self._answers.values())

    @property
    def last_error(self) -> str:
        """The text of the error that the reply's last failed action came to."""
        errors = [answer.error for answer in self._in_order() if isinstance(answer, AgentErrorEvent)]
        return errors[-1] if errors else ""

    @property
    def tools(self) -> str:
        """The names of the tools it asked for, each once."""
        return ", ".join(dict.fromkeys(repr(action.tool_name) for action in self.actions))

    def asks_like(self, other: "Round") -> bool:
        """Return whether both asked for the same. Thoughts, ids and times may differ."""
        return len(self.actions) == len(other.actions) and all(
            mine.tool_name == its.tool_name and mine.arguments == its.arguments and mine.malformed == its.malformed
            for mine, its in zip(self.actions, other.actions, strict=True)
        )

    def repeats(self, other: "Round") -> bool:
        """Return whether both asked for the same and got the same. What still runs repeats nothing."""
        return self.asks_like(other) and all(map(_same, self._in_order(), other._in_order()))

    def _in_order(self) -> list[AnswerEvent]:
        return [self._answers[action.id] for action in self.actions if action.id in self._answers]


def _same(one: AnswerEvent, other: AnswerEvent) -> bool:
    if isinstance(one, ObservationEvent):
        return (
            isinstance(other, ObservationEvent)
            and not _runs(one)
            and not _runs(other)
            and one.is_error == other.is_error
            and one.content == other.content
        )
    if isinstance(one, AgentErrorEvent):
        return isinstance(other, AgentErrorEvent) and one.error == other.error
    return isinstance(other, UserRejectObservation) and one.reason == other.reason


def _runs(observation: ObservationEvent) -> bool:
    data = observation.data
    return data.get(STILL_RUNNING) is True and data.get(WAITS_FOR_INPUT) is not True


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
            case Condensation():
                if event.reason != "asked":
                    self._count_too_large(event.kind)
            case ConversationErrorEvent(code="ContextWindowExceeded"):
                self._count_too_large(event.kind)
            case (
                AgentConfigured() | ConversationStateUpdateEvent(update=StatusChanged(status=ConversationStatus.STUCK))
            ):
                # Another agent, or a verdict that was acted upon: going on from here is another chance.
                self.reset()
            case _:
                pass

    def verdict(self) -> Verdict | None:
        """Return the verdict if the agent repeats itself, else None; None also while actions wait for their answers."""
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
            return Verdict(code="repeated_error", detail=f"{what}. It was warned.", action="nudge", nudge=nudge)
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
            return None  # one request whose answer changes: it waits for something
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


class StuckTracker:
    """Lets a detector see each event of the active branch once, and all of them anew after a rewind."""

    def __init__(self, thresholds: StuckThresholds | None) -> None:
        self._detector = None if thresholds is None else StuckDetector(thresholds)
        self._seen = 0
        """The head up to which the detector has seen the log."""
        self._epoch = -1
        """The branch's epoch then: after a rewind it has to see the other one."""

    def verdict(self, state: ConversationState) -> Verdict | None:
        """Show the detector what is new, and return its verdict."""
        detector = self._detector
        if detector is None:
            return None
        if self._epoch != state.branch_epoch:
            detector.reset()
            for event in state.branch_events():
                detector.observe(event)
            self._epoch = state.branch_epoch
        else:
            for event in state.events[self._seen :]:
                detector.observe(event)
        self._seen = state.head
        return detector.verdict()
