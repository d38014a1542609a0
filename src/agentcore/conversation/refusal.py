"""Calls that can't run: their tool is gone, or not what the model was told of it. Each is answered, and nothing is begun."""

from __future__ import annotations

from agentcore.agent import Call
from agentcore.conversation.core import Core
from agentcore.conversation.tools import NotRun
from agentcore.events import ActionEvent, AgentErrorEvent

__all__ = ["cannot_run", "not_run"]


def cannot_run(core: Core, call: Call) -> AgentErrorEvent | None:
    """Make the answer of a call whose tool is not there any more, or is another one; None where it can run."""
    now = core.tool_sessions.resolve(call.tool.name, call.tool.schema.digest)
    return not_run(call.event, now.text, now.code) if isinstance(now, NotRun) else None


def not_run(event: ActionEvent, error: str, code: str) -> AgentErrorEvent:
    """Make the answer of an action that never started."""
    return AgentErrorEvent(
        cause=event.id, tool_name=event.tool_name, call_id=event.call_id, error=error, outcome="not_run", code=code
    )
