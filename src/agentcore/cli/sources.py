"""The sources of context of the command line: what its agents are shown besides their prompt."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from agentcore.agent import Agent
from agentcore.context import AgentContext, ContextSource, Memory, ProjectFiles, register_context_source
from agentcore.mcp import MCPPrompts, MCPToolset
from agentcore.skills import Skills

_SOURCES: Final[Mapping[str, Callable[..., ContextSource]]] = {
    "project_files": ProjectFiles,
    "memory": Memory,
    "skills": Skills,
}
"""By the names under which they are recorded."""
_OF_SERVERS: Final[ContextSource] = MCPPrompts()
"""For an agent with MCP servers."""


def build_context(without: Collection[str]) -> AgentContext | None:
    """Return the context of a new conversation's agent.

    Args:
        without: The names of the sources to leave out.
    """
    sources = tuple(make() for name, make in _SOURCES.items() if name not in without)
    return AgentContext(sources=sources) if sources else None


def register_sources() -> None:
    """Make recorded sources known: an installed distribution declares them, and a source checkout does not."""
    for name, make in _SOURCES.items():
        register_context_source(name, make)
    register_context_source("mcp_prompts", MCPPrompts)


def add_servers(agent: Agent, servers: Sequence[MCPToolset]) -> Agent:
    """Return the agent with these MCP servers, whose prompts a message may call."""
    if not servers:
        return agent
    context = agent.context or AgentContext()
    if _OF_SERVERS not in context.sources:
        context = replace(context, sources=(*context.sources, _OF_SERVERS))
    return replace(agent, tools=(*agent.tools, *servers), context=context)


def leave_out_sources(agent: Agent, without: Collection[str]) -> Agent:
    """Return the agent without these sources, the agent itself if it has none of them."""
    sources = () if agent.context is None else agent.context.sources
    kept = tuple(each for each in sources if (spec := each.record()) is None or spec.name not in without)
    if agent.context is None or len(kept) == len(sources):
        return agent
    return replace(agent, context=replace(agent.context, sources=kept))
