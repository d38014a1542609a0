"""The server's catalog: its version, and the agents, models and tools that conversations may use."""

from __future__ import annotations

from typing import Final

from anyio.to_thread import run_sync

import agentcore
from agentcore.agent import Agent
from agentcore.errors import MissingExtra
from agentcore.llm import LLM
from agentcore.llm.catalog import model_info
from agentcore.tools import AnyTool, Tool
from agentcore.wire.requests import AgentInfo, ServedModel, ToolInfo, Version
from agentcore.wire.routes import API
from agentcore_serve.routes.table import Call, Route

_TAG: Final = "catalog"


async def _version(call: Call) -> Version:
    names = await run_sync(call.hub.allowed_parts.tool_names)  # it reads what is installed
    return Version(version=agentcore.__version__, tools=names, modules=call.hub.settings.allowed_modules)


async def _agents(call: Call) -> list[AgentInfo]:
    profiles = call.hub.profiles
    return [
        AgentInfo(
            name=name,
            description="" if (profile := profiles.get(name)) is None else profile.description,
            model=_model_of(agent),
            tools=tuple(tool.name for tool in _tools_of(agent)),
            default=number == 0,
        )
        for number, (name, agent) in enumerate(call.hub.agents.items())
    ]


async def _models(call: Call) -> list[ServedModel]:
    settings = {agent.llm.model: agent.llm for agent in call.hub.agents.values() if isinstance(agent.llm, LLM)}
    return [await _describe(llm) for llm in settings.values()]


async def _describe(llm: LLM) -> ServedModel:
    try:
        known = await model_info(llm)
    except MissingExtra:
        return ServedModel(name=llm.model, provider=llm.provider)
    return ServedModel(
        name=llm.model,
        provider=llm.provider,
        context_window=known.features.context_window,
        priced=known.prices is not None,
    )


async def _tools(call: Call) -> list[ToolInfo]:
    tools = {tool.name: tool for agent in call.hub.agents.values() for tool in _tools_of(agent)}
    return [
        ToolInfo(name=tool.name, description=tool.description, parameters=tool.schema.parameters)
        for tool in tools.values()
    ]


def _tools_of(agent: Agent) -> list[AnyTool]:
    return [tool for tool in agent.tools if isinstance(tool, Tool)]


def _model_of(agent: Agent) -> str | None:
    return agent.llm.model if isinstance(agent.llm, LLM) else None


CATALOG: Final = (
    Route("GET", f"{API}/version", _version, "read", answer=Version, summary="The version of the server.", tag=_TAG),
    Route("GET", f"{API}/agents", _agents, "read", answer=list[AgentInfo], summary="The agents by name.", tag=_TAG),
    Route(
        "GET", f"{API}/models", _models, "read", answer=list[ServedModel], summary="The models of the agents.", tag=_TAG
    ),
    Route("GET", f"{API}/tools", _tools, "read", answer=list[ToolInfo], summary="The tools of the agents.", tag=_TAG),
)
"""The routes of the catalog."""
