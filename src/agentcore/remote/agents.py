"""Agents of a client as they travel to a server: the record, the key of the model, and which tools run where."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, cast

from pydantic import SecretStr

from agentcore.agent import Agent, record_agent
from agentcore.errors import ConversationError
from agentcore.llm import LLM, Model
from agentcore.llm.keys import find_key
from agentcore.llm.providers import HOSTS
from agentcore.tools import AnyTool, Tool
from agentcore.tools.function import FUNCTION_SPEC
from agentcore.wire.requests import ClientAgent, ClientTool, Version


def divide_tools(agent: Agent, version: Version) -> tuple[list[AnyTool], list[AnyTool]]:
    """Return the agent's tools that the server makes again, and those that run here."""
    there: list[AnyTool] = []
    here: list[AnyTool] = []
    for tool in agent.tools:
        if isinstance(tool, Tool):
            (there if _is_known(tool, version) else here).append(tool)
    return there, here


def _is_known(tool: AnyTool, version: Version) -> bool:
    spec = tool.spec
    if spec is None:
        return False
    if spec.name != FUNCTION_SPEC:
        return spec.name in version.tools
    module = str(spec.params.get("import", "")).partition(":")[0]
    return module in version.modules


def make_client_agent(agent: Agent, tools: Collection[AnyTool]) -> ClientAgent:
    """Return an agent with these tools as it travels, with the key of its model.

    Raises:
        ConversationError: A part of it cannot be recorded.
    """
    toolsets = [each for each in agent.tools if not isinstance(each, Tool)]
    record, missing = record_agent(replace(agent, llm=_with_address(agent.llm), tools=(*tools, *toolsets)))
    if missing:
        raise ConversationError(
            f"This agent cannot work on a server: {', '.join(missing)} cannot be recorded. Use parts that can, or an agent "
            "that the server has: RemoteWorkspace(url, agent=...)."
        )
    key = find_key(agent.llm) if isinstance(agent.llm, LLM) else None
    return ClientAgent(record=record, model_key=None if key is None else SecretStr(key))


def _with_address(llm: Model) -> Model:
    """Return a model with the address that this environment has for its provider: the server's may have another one."""
    if not isinstance(llm, LLM) or llm.base_url is not None or llm.provider not in HOSTS:
        return llm
    host = HOSTS[llm.provider]
    address = host.address(None)
    return llm if address in (None, host.base_url) else llm.model_copy(update={"base_url": address})


def describe_tool(tool: AnyTool) -> ClientTool:
    """Return a tool that runs here, as the server tells the model of it."""
    schema = tool.schema
    # A function that says what a call uses would have to run here, before the call.
    resources = None if tool.resources is None or callable(tool.resources) else tool.resources
    return ClientTool(
        name=tool.name,
        description=schema.description,
        parameters=cast("dict[str, Any]", schema.parameters),
        annotations=tool.annotations.model_dump(mode="json"),
        resources=None if resources is None else tuple(each.model_dump(mode="json") for each in resources),
    )
