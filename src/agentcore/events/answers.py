"""The answers to actions: every action that started or was decided on gets exactly one.

The outcomes: completed (`ObservationEvent`), rejected (`UserRejectObservation`), and failed, interrupted, not run and
unknown (`AgentErrorEvent`). `cause` is the action's event id.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from typing import Annotated, Literal

from pydantic import JsonValue

from agentcore._value import VERBATIM, Verbatim
from agentcore.display import DisplayBlock
from agentcore.events.base import CommandedEvent, EventBase
from agentcore.messages import StoredResultBlock, TextBlock

__all__ = ["AgentErrorEvent", "AnswerEvent", "ErrorOutcome", "ObservationEvent", "UserRejectObservation"]

ErrorOutcome = Literal["failed", "interrupted", "not_run", "unknown"]


class ObservationEvent(EventBase):
    """The tool did what was asked; this is what came of it."""

    kind: Annotated[Literal["observation"], VERBATIM] = "observation"
    tool_name: str
    call_id: Verbatim
    content: tuple[StoredResultBlock, ...]
    """What the model is shown."""
    data: dict[str, JsonValue] = {}
    """The observation's fields, for programs: an exit code, a diff, a path."""
    is_error: bool = False
    """The tool worked, and what it found is an error (a command that exited with 1, say)."""
    finished: bool = False
    """The run ends with this answer: the tool is the one that finishes."""
    display: tuple[DisplayBlock, ...] = ()
    """How the tool shows the answer to people; empty: by the words of `content`. The model never sees it."""

    @property
    def text(self) -> str:
        """The words of the answer."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextBlock))


class UserRejectObservation(CommandedEvent):
    """A person said no. Where a check did, the answer is an `AgentErrorEvent` with the code "denied"."""

    kind: Annotated[Literal["user_reject"], VERBATIM] = "user_reject"
    tool_name: str
    call_id: Verbatim
    reason: str


class AgentErrorEvent(EventBase):
    """The action came to nothing, or nobody knows to what.

    Outcomes: "failed" (unknown tool, bad arguments, the tool raised), "interrupted" (stopped before its end),
    "not_run" (never started), "unknown" (it had started when the process died, and may have happened).
    """

    kind: Annotated[Literal["agent_error"], VERBATIM] = "agent_error"
    tool_name: str
    call_id: Verbatim
    error: str
    outcome: Annotated[ErrorOutcome, VERBATIM] = "failed"
    code: Verbatim | None = None
    """What went wrong, for programs: "unknown_tool", "bad_arguments", "denied" (by a check), or the exception's class name."""


AnswerEvent = ObservationEvent | UserRejectObservation | AgentErrorEvent
"""The events of this file. A new one is added here."""
