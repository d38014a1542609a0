"""How a run settled, and the typed value that the agent finished with."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from typing import Any

from pydantic import Field

from agentcore._value import Value
from agentcore.agent import Agent
from agentcore.events import ActionEvent, ConversationStatus, QuestionAsked
from agentcore.record import ConversationState
from agentcore.tools import read_output
from agentcore.usage import Usage


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
    """The actions that wait for `approve` or `reject`, and questions that wait for `answer` or `decline`."""
    questions: tuple[QuestionAsked, ...] = ()
    """The questions of pending actions, for `answer` or `decline`."""
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


def make_result(state: ConversationState, output: Any = None) -> RunResult:
    """Build the result of the newest run from the state."""
    run = state.run
    failed = state.status in (ConversationStatus.ERROR, ConversationStatus.STUCK) or state.status_code == "closed"
    return RunResult(
        status=state.status,
        text=run.text,
        output=output,
        usage=run.usage,
        steps=run.steps,
        first_seq=run.seq,
        last_seq=state.head,
        pending=state.pending if state.status is not ConversationStatus.RUNNING else (),
        questions=state.questions if state.status is not ConversationStatus.RUNNING else (),
        error=RunFailure(code=state.status_code or "unknown", detail=state.status_detail or "") if failed else None,
    )


class RunOutput:
    """The value by which the newest run finished: as it was made, while the process lives, then as the log has it."""

    def __init__(self) -> None:
        self._action: str | None = None
        self._value: Any = None

    def set(self, action_id: str, value: Any) -> None:
        """Keep the value that a finishing call was made with."""
        self._action, self._value = action_id, value

    def get(self, agent: Agent, state: ConversationState) -> Any:
        """Return the value; None where the agent has no output type, or did not finish with one."""
        finished_by = state.finished_by
        if finished_by is not None and finished_by == self._action:
            return self._value  # whichever agent it was: another one may have been set since
        return finished_value(agent.output, state)


def finished_value(output: Any, state: ConversationState) -> Any:
    """Return the value that the newest reply finished the run with, of an output type, as the log has it; None where it did not.

    Where the value held a secret, the log has its name instead; then what is there need not fit the type, and None it is.
    """
    finished_by = state.finished_by
    if output is None or finished_by is None:
        return None
    for event in reversed(state.events):
        if isinstance(event, ActionEvent) and event.id == finished_by:
            try:
                return read_output(output, event.arguments.get("result"))
            except ValueError:
                return None
    return None
