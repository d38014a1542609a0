"""The system prompt and the tools' schemas as they stand now, composed again only when what they are made of has changed."""

from __future__ import annotations

from collections.abc import Sequence

from agentcore.agent import Agent
from agentcore.context import system_prompt
from agentcore.events import Event, SystemPromptEvent
from agentcore.messages import ToolSchema
from agentcore.record import ConversationState
from agentcore.secrets import Masker, SecretRegistry

__all__ = ["PromptSource"]


class PromptSource:
    """Composes the prompt of one conversation."""

    def __init__(self, agent: Agent, root: str, secrets: SecretRegistry) -> None:
        self._agent = agent
        self._root = root
        self._secrets = secrets
        self._masker: Masker | None = None
        self._prompt = ""
        self._tools: tuple[ToolSchema, ...] = ()
        self._checked: SystemPromptEvent | None = None
        """The event that says what is composed, once one in force was found to."""

    def compose(self) -> None:
        """Compose it, unless what it is made of is as it was.

        Raises:
            SchemaError: A model can't be told of one of the tools.
        """
        masker = self._secrets.masker
        if self._masker is masker:
            return
        self._tools = tuple(tool.schema for tool in self._agent.all_tools)
        self._prompt = masker.mask_text(system_prompt(self._agent.system_prompt, self._agent.context, self._root))
        self._masker = masker
        self._checked = None

    def changed(self, state: ConversationState) -> Sequence[Event]:
        """Give the event that puts in force what was composed; none where it is in force on the active branch."""
        in_force = state.prompt
        if self._masker is None or (in_force is not None and in_force is self._checked):
            return ()
        if in_force is not None and (in_force.prompt, in_force.tools) == (self._prompt, self._tools):
            self._checked = in_force
            return ()
        return (SystemPromptEvent(prompt=self._prompt, tools=self._tools),)
