"""The rule by which the tools of toolsets are deferred: left out of requests, to be searched for and called through two tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from agentcore.agent import Agent
from agentcore.events import SystemPromptEvent
from agentcore.llm import Model, model_features
from agentcore.llm.estimate import estimate_tokens
from agentcore.tools import AnyTool

_MOST_TOOLS: Final = 40
_MOST_OF_WINDOW: Final = 0.1


class Deferral(NamedTuple):
    """The rule of one agent. By itself it defers nothing."""

    setting: bool | None = False
    """See `Agent.defer_tools`."""
    model: Model | None = None
    """The model whose window counts."""

    @classmethod
    def of(cls, agent: Agent) -> Deferral:
        """Return the rule of an agent."""
        return cls(agent.defer_tools, agent.llm)

    async def applies(
        self,
        tools: Sequence[AnyTool],
        own: Mapping[str, AnyTool],
        pair: Mapping[str, AnyTool],
        prompt: SystemPromptEvent | None,
    ) -> bool:
        """Return whether the tools of the agent's toolsets are deferred.

        Args:
            tools: The tools of its toolsets, all together.
            own: Its own ones, by name.
            pair: The two that would stand for the tools, by name.
            prompt: The prompt in force: what is deferred in it stays so.
        """
        if self.setting is not None:
            return self.setting
        if any(name in own for name in pair):
            return False  # the names are taken
        if prompt is not None and {tool.schema.digest for tool in pair.values()} <= {
            schema.digest for schema in prompt.tools
        }:
            return True
        if not tools or len(tools) > _MOST_TOOLS:
            return bool(tools)
        features = None if self.model is None else await model_features(self.model)
        window = None if features is None else features.context_window
        return window is not None and estimate_tokens((), [tool.schema for tool in tools]) > _MOST_OF_WINDOW * window
