"""What a run came to."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from typing import Any

from pydantic import Field

from agentcore._value import Value
from agentcore.events import ActionEvent, ConversationStatus, MessageEvent, ObservationEvent, UsageEvent
from agentcore.record import ConversationState
from agentcore.usage import Usage

__all__ = ["RunFailure", "RunResult", "make_result"]


class RunFailure(Value):
    """Why a run did not end well."""

    code: str
    """For programs: a limit's name ("steps", "cost" ...), a stuck pattern, or the exception's class name."""
    detail: str
    """For people."""

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"


class RunResult(Value):
    """How a run settled."""

    status: ConversationStatus
    text: str | None = None
    """The agent's last words in this run: what it finished with, or its last message."""
    output: Any = None
    """The value that the agent finished with, where it has an output type."""
    usage: Usage = Field(default_factory=Usage)
    """Of this run; `conversation.state.usage` has the whole conversation's."""
    steps: int = 0
    """Model calls of this run."""
    first_seq: int = 0
    """The seq of the event that began the run."""
    last_seq: int = 0
    """The head when the run settled."""
    pending: tuple[ActionEvent, ...] = ()
    """The actions that wait for `approve` or `reject`."""
    error: RunFailure | None = None

    def __repr__(self) -> str:
        parts = [str(self.status), f"{self.steps} step{'' if self.steps == 1 else 's'}"]
        if self.usage.requests:
            cost = self.usage.cost
            parts.append(f"{self.usage.total_tokens} tokens, {'cost unknown' if cost is None else f'${cost:.4f}'}")
        if self.pending:
            parts.append(f"waiting for {', '.join(action.tool_name for action in self.pending)}")
        if self.error is not None:
            parts.append(str(self.error))
        text = "" if self.text is None else f" {self.text if len(self.text) <= 80 else self.text[:77] + '...'!r}"
        return f"<RunResult {', '.join(parts)}{text}>"

    __str__ = __repr__


def make_result(state: ConversationState, first_seq: int, output: Any = None) -> RunResult:
    """Tell how the run that began at `first_seq` stands now."""
    usage, steps, text = Usage(), 0, None
    for event in state.events[max(first_seq - 1, 0) :] if first_seq else ():
        match event:
            case UsageEvent():
                usage += event.usage
                steps += event.purpose == "step"
            case MessageEvent() if event.source == "agent" and event.text:
                text = event.text
            case ObservationEvent() if event.finished:
                text = str(event.data.get("message") or event.text)
            case _:
                pass
    failed = state.status in (ConversationStatus.ERROR, ConversationStatus.STUCK) or state.status_code == "closed"
    return RunResult(
        status=state.status,
        text=text,
        output=output,
        usage=usage,
        steps=steps,
        first_seq=first_seq,
        last_seq=state.head,
        pending=state.pending if state.status is not ConversationStatus.RUNNING else (),
        error=RunFailure(code=state.status_code or "unknown", detail=state.status_detail or "") if failed else None,
    )
