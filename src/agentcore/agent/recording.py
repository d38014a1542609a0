"""The record of an agent, as a log holds it, and the agent that is made of it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue

from agentcore.agent.agent import Agent
from agentcore.condense import Condenser, CondenserSpec, record_condenser, resolve_condenser
from agentcore.context import record_context, restore_context
from agentcore.llm import Model, describe_unrecorded, record_model, restore_model
from agentcore.stuck import StuckThresholds
from agentcore.tools import (
    OutputSchema,
    Tool,
    Toolset,
    ToolsetSpec,
    ToolSpec,
    output_schema_of,
    resolve_tool,
    resolve_toolset,
)


def record_agent(agent: Agent) -> tuple[dict[str, JsonValue], tuple[str, ...]]:
    """Return the record of an agent, never a key, and the names of the parts that cannot be recorded."""
    missing: list[str] = []
    recorded: dict[str, JsonValue] = {"max_parallel_calls": agent.max_parallel_calls}
    if (llm := record_model(agent.llm)) is not None:
        recorded["llm"] = llm
    else:
        missing.append(f"the model ({describe_unrecorded(agent.llm)})")
    tools: list[JsonValue] = []
    for tool in agent.tools:
        if not isinstance(tool, Tool):
            continue
        if tool.spec is None:
            missing.append(f"the tool {tool.name!r}")
        else:
            tools.append(tool.spec.model_dump(mode="json"))
    recorded["tools"] = tools
    _record_toolsets(agent.toolsets, recorded, missing)
    if isinstance(agent.instructions, str):
        recorded["instructions"] = agent.instructions
    elif agent.instructions is not None:
        missing.append("the function that writes the instructions")
    if agent.context is not None:
        recorded["context"], missing_parts = record_context(agent.context)
        missing += missing_parts
    if agent.condenser is not None:
        if (spec := record_condenser(agent.condenser)) is not None:
            recorded["condenser"] = spec.model_dump(mode="json")
        else:
            missing.append(f"the condenser ({type(agent.condenser).__name__})")
    if agent.output is not None:
        recorded["output"] = output_schema_of(agent.output)
    if agent.defer_tools is not None:
        recorded["defer_tools"] = agent.defer_tools
    recorded["system_prompt"] = agent.system_prompt
    recorded["stuck"] = None if agent.stuck is None else agent.stuck.model_dump(mode="json")
    return recorded, tuple(missing)


def _record_toolsets(toolsets: Sequence[Toolset], recorded: dict[str, JsonValue], missing: list[str]) -> None:
    specs: list[JsonValue] = []
    for toolset in toolsets:
        if (spec := toolset.record()) is None:
            missing.append(f"the toolset {toolset.name!r}")
        else:
            specs.append(spec.model_dump(mode="json"))
    if specs:
        recorded["toolsets"] = specs


def _restore_toolsets(recorded: dict[str, Any]) -> list[Toolset]:
    return [resolve_toolset(ToolsetSpec.model_validate(spec)) for spec in recorded.get("toolsets", ())]


def restore_agent(recorded: dict[str, Any], *, llm: Model | None = None) -> Agent:
    """Make the agent again that `record_agent` wrote down with nothing missing.

    Nothing is imported that only the record names. It may take a while: call it in a worker thread.

    Args:
        recorded: What `record_agent` gave.
        llm: The model to work with, in place of the recorded one.

    Raises:
        AgentcoreError: a tool, a toolset, a condenser or a context source is not registered here, or the model is at an address that was not named here.
        ValueError: it does not describe an agent.
    """
    return Agent(
        llm=restore_model(recorded["llm"]) if llm is None else llm,
        tools=(
            *(resolve_tool(ToolSpec.model_validate(spec)) for spec in recorded["tools"]),
            *_restore_toolsets(recorded),
        ),
        instructions=recorded.get("instructions"),
        context=None if recorded.get("context") is None else restore_context(recorded["context"]),
        condenser=_restore_condenser(recorded.get("condenser")),
        output=_restore_output(recorded.get("output")),
        system_prompt=recorded.get("system_prompt"),
        max_parallel_calls=recorded["max_parallel_calls"],
        defer_tools=recorded.get("defer_tools"),
        stuck=None if recorded.get("stuck") is None else StuckThresholds.model_validate(recorded["stuck"]),
    )


def _restore_condenser(recorded: Any) -> Condenser | None:
    return None if recorded is None else resolve_condenser(CondenserSpec.model_validate(recorded))


def _restore_output(recorded: Any) -> OutputSchema | None:
    if recorded is None:
        return None
    match recorded:
        case {"name": str(name), "schema": {**schema}}:
            return OutputSchema(name, schema)
        case _:
            raise ValueError(f"The recorded output {recorded!r} is not a name and a JSON Schema. Pass the agent.")
