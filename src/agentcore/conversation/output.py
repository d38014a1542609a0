"""The typed value that an agent finishes with, read back from the log."""

from __future__ import annotations

from typing import Any

from agentcore.conversation.core import Core
from agentcore.events import ActionEvent, ObservationEvent
from agentcore.tools import read_output

__all__ = ["recorded_output"]


def recorded_output(core: Core) -> Any:
    """Give the output of the run that finished last; None where the agent has no output type.

    Where the value held a secret, the log has its name instead; then what is there need not fit the type, and None it is.
    """
    if core.agent.output is None or core.output is not None:
        return core.output
    finished: str | None = None
    for event in reversed(core.state.shown):
        if isinstance(event, ObservationEvent) and event.data.get("finished") is True:
            finished = event.cause
        elif isinstance(event, ActionEvent) and event.id == finished:
            try:
                return read_output(core.agent.output, event.arguments.get("result"))
            except ValueError:
                return None
    return None
