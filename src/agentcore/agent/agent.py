"""The agent: a model, its tools and its instructions. A value that holds nothing of any conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from inspect import isroutine
from typing import Any, Final

from pydantic import JsonValue

from agentcore._arguments import MODEL, TEXT, WHOLE_NUMBER, Argument, checked, instance_of, object_with, optional
from agentcore.condense import Condenser
from agentcore.context import Instructions
from agentcore.llm import Model, describe_unrecorded, record_model, restore_model
from agentcore.stuck import StuckThresholds
from agentcore.tools import (
    AnyTool,
    OutputSchema,
    Tool,
    Toolset,
    ToolsetSpec,
    ToolSpec,
    finish_tool,
    output_schema_of,
    resolve_tool,
    resolve_toolset,
    think_tool,
)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _explain_tools(value: object) -> str | None:
    if isroutine(value):
        return "Decorate it with @tool, and pass a list: tools=[...]."
    if isinstance(value, Tool) or (isinstance(value, Toolset) and not isinstance(value, type)):
        return "Put it in a list: tools=[...]."
    return None


def _is_type(value: object) -> bool:
    # Anything else may be one of the many forms of a type: pydantic says whether it knows it.
    return not isinstance(value, str | int | float | list | tuple | Mapping) and not isroutine(value)


def _is_instructions(value: object) -> bool:
    return isinstance(value, str) or (callable(value) and not isinstance(value, type))


_ARGUMENTS: Final = {
    "llm": MODEL,
    "tools": Argument("a list of tools and toolsets", _is_list, _explain_tools),
    "instructions": optional(Argument("text, or a function that returns text", _is_instructions)),
    "condenser": optional(object_with("condense", description="a condenser")),
    "output": Argument("a type, as a pydantic model, list[int] or str", _is_type),
    "system_prompt": optional(TEXT),
    "max_parallel_calls": WHOLE_NUMBER,
    "stuck": optional(instance_of(StuckThresholds, description="StuckThresholds(...)")),
}


@checked(**_ARGUMENTS)
@dataclass(frozen=True, kw_only=True)
class Agent:
    """A model, its tools, and its instructions. One value serves any number of conversations at once.

    Raises:
        TypeError: an argument is not what it has to be, or there is none of that name. A type as `output` that JSON Schema
            can't say is a `SchemaError`.
        ValueError: two tools have one name, or `max_parallel_calls` is below 1.
    """

    llm: Model
    """The model: `LLM(...)`, a wrapper around one, or a scripted one."""
    tools: Sequence[AnyTool | Toolset] = ()
    """Its tools and toolsets; `finish` and `think` are added."""
    instructions: Instructions | None = None
    """Added to the system prompt: conventions, the tone, what not to do. A function, async or not, is called when the conversation
    is opened and after its history was cut or rewound, with an `InstructionsContext` if it takes an argument."""
    condenser: Condenser | None = None
    """Makes the history shorter when it decides to; None keeps all of it."""
    output: Any = None
    """The type of `RunResult.output`, any that pydantic knows (a model, a dataclass, a TypedDict, `list[int]`, `str`, a
    union), or an `OutputSchema`: the agent then has to finish with a value of it. A conversation that is resumed
    without the agent has the type's JSON Schema here, and plain data that fits it as its output."""
    system_prompt: str | None = None
    """Replaces the prompt that agentcore brings."""
    max_parallel_calls: int = 8
    """How many calls of one reply run at once, where their resources allow."""
    stuck: StuckThresholds | None = field(default_factory=StuckThresholds)
    """When the agent counts as stuck; None never."""

    def __post_init__(self) -> None:
        for given in self.tools:
            _refuse_other_than_tool(given)
        if self.max_parallel_calls < 1:
            raise ValueError(
                f"max_parallel_calls is {self.max_parallel_calls}: at least one call has to run at a time."
            )
        names = [tool.name for tool in self.own_tools]
        if doubled := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(
                f"Two tools are called {', '.join(map(repr, doubled))}: a model could not tell them apart."
            )

    @cached_property
    def own_tools(self) -> tuple[AnyTool, ...]:
        """The tools that are there whatever is open: those that were given one by one, and the built-in ones."""
        tools = tuple(each for each in self.tools if isinstance(each, Tool))
        names = {tool.name for tool in tools}
        built_in = (finish_tool(self.output), think_tool())
        return (*tools, *(tool for tool in built_in if tool.name not in names))

    @property
    def toolsets(self) -> tuple[Toolset, ...]:
        """The toolsets, whose tools are known when they are open."""
        return tuple(each for each in self.tools if not isinstance(each, Tool))


def _refuse_other_than_tool(given: object) -> None:
    if isinstance(given, Tool):
        return
    name = getattr(given, "__qualname__", repr(given))
    if isinstance(given, type) and hasattr(given, "record") and hasattr(given, "open"):
        raise TypeError(f"{name} is the class of a toolset: pass a toolset, {name}(...).")
    if not isinstance(given, Toolset):
        raise TypeError(
            f"{name} is neither a tool nor a toolset: decorate the function with @tool, or make a Tool(...) of it."
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
    if agent.condenser is not None:
        missing.append(f"the condenser ({type(agent.condenser).__name__})")
    if agent.output is not None:
        recorded["output"] = output_schema_of(agent.output)
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
        AgentcoreError: a tool or a toolset is not registered here, or the model is at an address that was not named here.
        ValueError: it does not describe an agent.
    """
    return Agent(
        llm=restore_model(recorded["llm"]) if llm is None else llm,
        tools=(
            *(resolve_tool(ToolSpec.model_validate(spec)) for spec in recorded["tools"]),
            *_restore_toolsets(recorded),
        ),
        instructions=recorded.get("instructions"),
        output=_restore_output(recorded.get("output")),
        system_prompt=recorded.get("system_prompt"),
        max_parallel_calls=recorded["max_parallel_calls"],
        stuck=None if recorded.get("stuck") is None else StuckThresholds.model_validate(recorded["stuck"]),
    )


def _restore_output(recorded: Any) -> OutputSchema | None:
    if recorded is None:
        return None
    match recorded:
        case {"name": str(name), "schema": {**schema}}:
            return OutputSchema(name, schema)
        case _:
            raise ValueError(f"The recorded output {recorded!r} is not a name and a JSON Schema. Pass the agent.")
