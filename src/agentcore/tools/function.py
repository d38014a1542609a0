"""A typed function as a tool."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, Generic, ParamSpec, TypeVar, overload

import anyio
import anyio.to_thread

from agentcore._threads import Threads
from agentcore.assessment import SecurityRisk
from agentcore.display import DisplayBlock
from agentcore.errors import SchemaError, ToolError
from agentcore.messages import ToolSchema
from agentcore.schema import Signature, read_signature
from agentcore.tools.context import ToolContext
from agentcore.tools.definition import Action, Aliases, Arguments, Ignored, Tool, ToolAnnotations, ToolSpec
from agentcore.tools.observation import Observation, observe
from agentcore.tools.resources import Resource

SYNC_TOOLS_AT_ONCE: Final = 40
"""How many synchronous tools run at once on one event loop; more wait for their turn."""

ResultT = TypeVar("ResultT")

_THREADS: Final = Threads("sync_tools", SYNC_TOOLS_AT_ONCE)


async def run_in_thread(function: Callable[[], ResultT], ctx: ToolContext) -> ResultT:
    """Run a function in a worker thread.

    When the wait for it is cancelled, the function is told through `ctx.cancel_requested`, and its thread is left to
    end by itself.
    """

    def boxed() -> tuple[ResultT]:
        return (function(),)  # in a box, because trio refuses a coroutine as the result of a thread

    async with _THREADS.limiter:
        try:
            # A limiter for this one thread: a thread that was left behind must not hold a place (on trio it would).
            (result,) = await anyio.to_thread.run_sync(boxed, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))
            return result
        except BaseException:
            ctx.request_cancel()
            raise


FUNCTION_SPEC: Final = "function"
"""The name under which functions are recorded; their import path is the parameter."""

P = ParamSpec("P")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FunctionTool(Tool[Action, Observation], Generic[P, ResultT]):
    """A tool that is a function. Calling it calls the function, as if it had not been made a tool."""

    function: Callable[P, ResultT]
    signature: Signature

    def __post_init__(self) -> None:
        """Look like the function when inspected."""
        super().__post_init__()
        object.__setattr__(self, "__wrapped__", self.function)
        object.__setattr__(self, "__doc__", self.function.__doc__)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> ResultT:
        """Call the function."""
        return self.function(*args, **kwargs)

    @cached_property
    def schema(self) -> ToolSchema:
        """The schema that the model reads."""
        return ToolSchema(name=self.name, description=self.description, parameters=self.signature.schema)


@overload
def tool(function: Callable[P, ResultT], /) -> FunctionTool[P, ResultT]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    title: str | None = None,
    read_only: bool = False,
    destructive: bool = True,
    idempotent: bool = False,
    open_world: bool = True,
    resources: Callable[[Any, str], Sequence[Resource]] | Sequence[Resource] | None = None,
    aliases: Aliases = (),
    normalize: Callable[[Arguments], Arguments] | None = None,
    ignored: Ignored = (),
    risk: Callable[[Any], SecurityRisk] | SecurityRisk | None = None,
    display_call: Callable[[Any], Sequence[DisplayBlock]] | None = None,
    display_answer: Callable[[Any, Any], Sequence[DisplayBlock]] | None = None,
) -> Callable[[Callable[P, ResultT]], FunctionTool[P, ResultT]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    title: str | None = None,
    read_only: bool = False,
    destructive: bool = True,
    idempotent: bool = False,
    open_world: bool = True,
    resources: Callable[[Any, str], Sequence[Resource]] | Sequence[Resource] | None = None,
    aliases: Aliases = (),
    normalize: Callable[[Arguments], Arguments] | None = None,
    ignored: Ignored = (),
    risk: Callable[[Any], SecurityRisk] | SecurityRisk | None = None,
    display_call: Callable[[Any], Sequence[DisplayBlock]] | None = None,
    display_answer: Callable[[Any, Any], Sequence[DisplayBlock]] | None = None,
) -> Any:
    """Make a tool of a typed function, async or not: `@tool` or `@tool(read_only=True, ...)`.

    The arguments' schema is the signature, the description is the docstring. A parameter annotated with `ToolContext` is
    filled in and not shown to the model. What the function returns is shown as it is where it is a string, blocks or an
    `Observation`, and as JSON else. A function that is not async runs in a worker thread: when the call is cancelled it is
    told through `ctx.cancel_requested`, but its thread can't be stopped; long work belongs in a process.

    The keywords are those of `Tool` and `ToolAnnotations`.

    Raises:
        SchemaError: a parameter can't be described to a model; the error names the function and the parameter.
    """
    annotations = ToolAnnotations(
        title=title, read_only=read_only, destructive=destructive, idempotent=idempotent, open_world=open_world
    )
    names = _names_of_the_caller()

    def make(function: Callable[..., Any]) -> FunctionTool[..., Any]:
        signature = read_signature(function, inject=ToolContext, base=Action, names=names)
        _refuse_generators(function)
        tool_name = name or function.__name__
        return FunctionTool(
            name=tool_name,
            description=signature.text if description is None else description,
            action=_action(signature),
            execute=_executor(signature, tool_name),
            annotations=annotations,
            resources=resources,
            aliases=aliases,
            normalize=normalize,
            ignored=ignored,
            risk=risk,
            display_call=display_call,
            display_answer=display_answer,
            spec=_spec(function),
            function=function,
            signature=signature,
        )

    return make if function is None else make(function)


def _names_of_the_caller() -> Mapping[str, Any]:
    """Return the local names that an annotation in the decorated function's own scope may use."""
    frame = inspect.currentframe()
    caller = frame.f_back.f_back if frame is not None and frame.f_back is not None else None
    return dict(caller.f_locals) if caller is not None else {}


def _refuse_generators(function: Callable[..., Any]) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise SchemaError(
            f"{function.__qualname__}() yields, and a tool has one answer: return it, "
            "and use `ctx.progress(...)` for what people should see before."
        )


def _action(signature: Signature) -> type[Action]:
    assert issubclass(signature.model, Action), "it was read with this base"
    return signature.model


def _executor(signature: Signature, tool_name: str) -> Callable[[Action, ToolContext], Any]:
    is_async = inspect.iscoroutinefunction(signature.function)

    async def execute(action: Action, ctx: ToolContext) -> Observation:
        by_place, by_name = signature.bind(action, dict.fromkeys(signature.injected, ctx))
        call = partial(signature.function, *by_place, **by_name)
        try:
            result = call() if is_async else await run_in_thread(call, ctx)
            if inspect.isawaitable(result):  # also what a plain function made without waiting for it
                result = await result
        except SystemExit as error:
            # A tool that wraps a command line must not end the program that runs the conversation.
            raise ToolError(f"The tool {tool_name!r} tried to leave the program (exit code {error.code}).") from error
        return observe(result, tool_name)

    return execute


def _spec(function: Callable[..., Any]) -> ToolSpec | None:
    path = import_path(function)
    # Where the function itself stands under its name, the tool made of it is somewhere else, or nowhere.
    if path is None or look_up(path) is function:
        return None
    return ToolSpec(name=FUNCTION_SPEC, params={"import": path})


def import_path(thing: Any) -> str | None:
    """Return `module:name` for a function or class that stands at the top of a module, else None."""
    module: str | None = getattr(thing, "__module__", None)
    name: str | None = getattr(thing, "__qualname__", None)
    if module is None or name is None or not name.isidentifier():
        return None  # inside a function or a class, or a lambda
    return f"{module}:{name}"


def look_up(path: str) -> Any:
    """Return the object at an import path in a module that is imported already, or None. It imports nothing."""
    module, _, name = path.partition(":")
    # Not getattr: a module may import others when it is asked for a name that it does not have yet.
    return getattr(sys.modules.get(module), "__dict__", {}).get(name)
