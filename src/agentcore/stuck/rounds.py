"""A round: what one reply asked for and what came of it, as the unit in which repetition is counted.

Several actions of one reply are one round, so that three equal calls at once are no loop, and a reply with several
calls that comes again and again is one, in whatever order its answers arrive.
"""

from __future__ import annotations

from typing import Final, final

from agentcore.events import ActionEvent, AgentErrorEvent, AnswerEvent, ObservationEvent, UserRejectObservation

__all__ = ["STILL_RUNNING", "Round"]

STILL_RUNNING: Final = "running"
"""A tool that looks at work which goes on (a command, a build) puts this into its observation's `data`, with the value
True. Such an answer is never counted as a repetition: waiting is no loop."""


@final
class Round:
    """The actions of one reply and their answers."""

    __slots__ = ("_answers", "actions", "nudged", "reply_id")

    def __init__(self, reply_id: str) -> None:
        self.reply_id = reply_id
        self.actions: list[ActionEvent] = []
        self.nudged = False
        """Whether the model was told, after this round, that it repeats itself."""
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
        """Whether all its actions are answered."""
        return len(self._answers) == len(self.actions)

    @property
    def failed(self) -> bool:
        """Whether all its answers are errors."""
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

    def asks_like(self, other: Round) -> bool:
        """Say whether both asked for the same. Thoughts, ids and times may differ."""
        return len(self.actions) == len(other.actions) and all(
            mine.tool_name == its.tool_name and mine.arguments == its.arguments and mine.malformed == its.malformed
            for mine, its in zip(self.actions, other.actions, strict=True)
        )

    def repeats(self, other: Round) -> bool:
        """Say whether both asked for the same and got the same. What still runs repeats nothing."""
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
    return observation.data.get(STILL_RUNNING) is True
