"""The typed value that an agent finishes with."""

from __future__ import annotations

from typing import Any

from agentcore.agent import Agent
from agentcore.events import ActionEvent
from agentcore.record import ConversationState
from agentcore.tools import read_output

__all__ = ["RunOutput"]


class RunOutput:
    """The value by which the newest run finished: as it was made, while the process lives, then as the log has it."""

    def __init__(self) -> None:
        self._action: str | None = None
        self._value: Any = None

    def set(self, action_id: str, value: Any) -> None:
        """Keep the value that a finishing call was made with."""
        self._action, self._value = action_id, value

    def get(self, agent: Agent, state: ConversationState) -> Any:
        """Give the value; None where the agent has no output type, or did not finish with one.

        Where the value held a secret, the log has its name instead; then what is there need not fit the type, and None it is.
        """
        finished_by = state.finished_by
        if agent.output is None or finished_by is None:
            return None
        if finished_by == self._action:
            return self._value
        for event in reversed(state.shown):
            if isinstance(event, ActionEvent) and event.id == finished_by:
                try:
                    return read_output(agent.output, event.arguments.get("result"))
                except ValueError:
                    return None
        return None
