"""The agent: a model, its tools and its instructions. A value that holds nothing of any conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from inspect import isroutine
from typing import Any, Final, Protocol, runtime_checkable

from agentcore._arguments import MODEL, TEXT, WHOLE_NUMBER, Argument, checked, instance_of, object_with, optional
from agentcore.condense import Condenser, recall_tool
from agentcore.context import AgentContext, Instructions
from agentcore.llm import Model
from agentcore.stuck import StuckThresholds
from agentcore.tools import AnyTool, Tool, Toolset, finish_tool, think_tool
from agentcore.tools.deferred import CALL_TOOL, SEARCH_TOOLS


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
    "context": optional(instance_of(AgentContext, description="AgentContext(...)")),
    "condenser": optional(object_with("condense", description="a condenser")),
    "output": Argument("a type, as a pydantic model, list[int] or str", _is_type),
    "system_prompt": optional(TEXT),
    "max_parallel_calls": WHOLE_NUMBER,
    "defer_tools": optional(instance_of(bool, description="True or False")),
    "stuck": optional(instance_of(StuckThresholds, description="StuckThresholds(...)")),
}


@runtime_checkable
class _HasTools(Protocol):
    """A source of context that brings tools, as skills do."""

    def tools(self) -> Sequence[AnyTool]: ...


@checked(**_ARGUMENTS)
@dataclass(frozen=True, kw_only=True)
class Agent:
    """A model, its tools, and its instructions. One value serves any number of conversations at once.

    Raises:
        TypeError: an argument is not what it has to be, or there is none of that name. A type as `output` that JSON Schema
            can't say is a `SchemaError`.
        ValueError: two tools have one name, one has the name of a tool that `defer_tools` adds, or `max_parallel_calls` is below 1.
    """

    llm: Model
    """The model: `LLM(...)`, a wrapper around one, or a scripted one."""
    tools: Sequence[AnyTool | Toolset] = ()
    """Its tools and toolsets; `finish` and `think` are added, and `recall` where it has a condenser."""
    instructions: Instructions | None = None
    """Added to the system prompt: conventions, the tone, what not to do. A function, async or not, is called when the conversation
    is opened and after its history was cut or rewound, with an `InstructionsContext` if it takes an argument."""
    context: AgentContext | None = None
    """The sections of its prompt, and what it is shown besides: project files, memory, skills, the date. None: the default prompt alone."""
    condenser: Condenser | None = None
    """Makes the history shorter when that is large, as `Summary()`; None keeps all of it."""
    output: Any = None
    """The type of `RunResult.output`, any that pydantic knows (a model, a dataclass, a TypedDict, `list[int]`, `str`, a
    union), or an `OutputSchema`: the agent then has to finish with a value of it. A conversation that is resumed
    without the agent has the type's JSON Schema here, and plain data that fits it as its output."""
    system_prompt: str | None = None
    """Replaces the prompt that agentcore brings; not together with the sections of a `context`."""
    max_parallel_calls: int = 8
    """How many calls of one reply run at once, where their resources allow."""
    defer_tools: bool | None = None
    """True if the tools of its toolsets are not in the requests: the model finds them with `search_tools`, and calls them with
    `call_tool`. None: where there are more than 40 of them, or their schemas take more than a tenth of the model's window."""
    stuck: StuckThresholds | None = field(default_factory=StuckThresholds)
    """When the agent counts as stuck; None never."""

    def __post_init__(self) -> None:
        for given in self.tools:
            _refuse_other_than_tool(given)
        context = self.context
        if self.system_prompt and context is not None and (named := context.named_sections):
            raise ValueError(
                f"`system_prompt` replaces all sections of the prompt, so that `{named}` of `context` would do nothing: "
                "pass one of the two."
            )
        if self.max_parallel_calls < 1:
            raise ValueError(
                f"max_parallel_calls is {self.max_parallel_calls}: at least one call has to run at a time."
            )
        names = [tool.name for tool in self.own_tools]
        if doubled := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(
                f"Two tools are called {', '.join(map(repr, doubled))}: a model could not tell them apart."
            )
        if self.defer_tools and (taken := [name for name in (SEARCH_TOOLS, CALL_TOOL) if name in names]):
            raise ValueError(
                f"A tool is called {taken[0]!r}, as the one that `defer_tools` adds: rename it, or pass defer_tools=False."
            )

    @cached_property
    def own_tools(self) -> tuple[AnyTool, ...]:
        """The tools that are there whatever is open: those that were given one by one, those of context sources, and the built-in ones."""
        sources = () if self.context is None else self.context.sources
        tools = (
            *(each for each in self.tools if isinstance(each, Tool)),
            *(tool for source in sources if isinstance(source, _HasTools) for tool in source.tools()),
        )
        names = {tool.name for tool in tools}
        recall = () if self.condenser is None else (recall_tool(),)
        built_in = (finish_tool(self.output), think_tool(), *recall)
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
