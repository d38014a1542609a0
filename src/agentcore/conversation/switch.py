"""Switching agents: the command that sets another one, and what an agent has to have to go on with a conversation.

Above: the handle, which hands the command over, and the setup, which holds an agent to the same. `Core` puts the agent in
force: between two steps.
"""

from __future__ import annotations

from agentcore.agent import Agent, record_agent
from agentcore.commands import SetAgent
from agentcore.conversation.journal import Attachment
from agentcore.errors import ToolNotFound
from agentcore.events import ActionEvent
from agentcore.record import ConversationState
from agentcore.tools.deferred import CALL_TOOL, SEARCH_TOOLS


def switch_command(agent: Agent, state: ConversationState) -> tuple[SetAgent, Attachment]:
    """Return the command that sets an agent, and the agent to travel beside it.

    Raises:
        ToolNotFound: It lacks a tool that was used.
    """
    refuse_vanished_tools(agent, state)
    recorded, missing = record_agent(agent)
    return SetAgent(agent=recorded, missing=missing), Attachment(agent=agent)


def refuse_vanished_tools(agent: Agent, state: ConversationState) -> None:
    """Refuse an agent without a tool that the model has used: its history would speak of what is not there.

    What toolsets bring is known when they are open, and may come and go.
    """
    if state.prompt is None or agent.toolsets:
        return
    offered = {schema.name for schema in state.prompt.tools}
    used = dict.fromkeys(event.tool_name for event in state.shown if isinstance(event, ActionEvent))
    aliases = [alias for tool in agent.own_tools for alias in tool.aliases]
    known = {alias if isinstance(alias, str) else alias[0] for alias in aliases}
    known.update(tool.name for tool in agent.own_tools)
    known.update((SEARCH_TOOLS, CALL_TOOL))  # they come with toolsets, and go
    gone = [name for name in used if name in offered and name not in known]
    if gone:
        others = f", nor {', '.join(map(repr, gone[1:]))}" if len(gone) > 1 else ""
        raise ToolNotFound(
            gone[0],
            f"the agent does not have it{others}, and it was used in this conversation. Add it to the agent's tools, or begin "
            "a new conversation.",
        )
