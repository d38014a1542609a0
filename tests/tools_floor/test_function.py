"""Typed functions as tools."""

from __future__ import annotations

import inspect
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Literal

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest
from anyio.lowlevel import checkpoint
from pydantic import BaseModel

from agentcore.assessment import SecurityRisk
from agentcore.errors import SchemaError, ToolError
from agentcore.messages import TextBlock
from agentcore.tools import (
    SYNC_TOOLS_AT_ONCE,
    AnyTool,
    FunctionTool,
    Observation,
    Resource,
    TextObservation,
    ToolContext,
    ToolHost,
    ToolSpec,
    tool,
)

NOTHING: dict[str, Any] = {}


class Town(BaseModel):
    name: str


@tool
async def weather(town: Town, days: int = 1, unit: Literal["C", "F"] = "C") -> str:
    """Tell the weather.

    Args:
        town: Where.
        days: How far ahead.
    """
    await checkpoint()
    return f"{town.name}: {days} x 20 {unit}"


@tool(name="sum", read_only=True, idempotent=True, open_world=False, title="Sum", aliases=("add",))
def total(numbers: list[float]) -> float:
    """Add numbers."""
    return sum(numbers)


async def outcome(made: AnyTool, arguments: dict[str, Any], ctx: ToolContext) -> Observation:
    """Call a tool as a conversation does."""
    async with made.open_executor(ctx.workspace, ctx.conversation_id) as execute:
        return await execute(made.parse(arguments), ctx)


async def words(made: AnyTool, arguments: dict[str, Any], ctx: ToolContext) -> str:
    seen = await outcome(made, arguments, ctx)
    return "\n".join(block.text for block in seen.blocks() if isinstance(block, TextBlock))


def test_name_description_and_schema_are_the_functions() -> None:
    assert isinstance(weather, FunctionTool)
    assert weather.schema.name == "weather"
    assert weather.schema.description == "Tell the weather."
    assert weather.schema.parameters["required"] == ["town"]
    assert repr(weather) == "FunctionTool('weather')"
    assert (total.name, total.aliases) == ("sum", ("add",))
    assert total.annotations.model_dump() == {
        "title": "Sum",
        "read_only": True,
        "destructive": True,
        "idempotent": True,
        "open_world": False,
    }


async def test_the_function_is_still_the_function() -> None:
    assert await weather(Town(name="Ulm"), unit="F") == "Ulm: 1 x 20 F"
    assert total([1, 2]) == 3
    assert weather.__doc__ is not None
    assert weather.__doc__.startswith("Tell the weather.")
    assert list(inspect.signature(weather).parameters) == ["town", "days", "unit"]


async def test_a_sync_function_runs_in_a_thread_of_its_own(ctx: ToolContext) -> None:
    @tool
    def where() -> str:
        return threading.current_thread().name

    assert await words(where, {}, ctx) != threading.current_thread().name
    assert await words(total, {"numbers": [1, 2.5]}, ctx) == "3.5"


async def test_the_context_is_filled_in_and_not_shown(ctx: ToolContext, host: ToolHost) -> None:
    @tool
    async def report(context: ToolContext, what: str) -> None:
        await context.progress(what)

    @tool
    def report_from_a_thread(what: str, ctx: ToolContext) -> str:
        anyio.from_thread.run(ctx.progress, what)
        return ctx.call_id

    for made in (report, report_from_a_thread):
        assert list(made.schema.parameters["properties"]) == ["what"]  # type: ignore[arg-type]
    assert await words(report, {"what": "one"}, ctx) == "Done."
    assert await words(report_from_a_thread, {"what": "two"}, ctx) == "call_1"
    assert vars(host)["heard"] == [("progress", "ev_1", "one"), ("progress", "ev_1", "two")]


async def test_results_are_observed(ctx: ToolContext) -> None:
    class Local(Town):
        """Known where the function is made."""

    @tool
    async def town() -> Town:
        return Town(name="Ulm")

    @tool
    async def own() -> TextObservation:
        return TextObservation(text="mine")

    def passes_on(a: int) -> Coroutine[Any, Any, str]:
        return weather(Town(name=str(a)))

    @tool
    def fails() -> None:
        raise KeyError("gone")

    @tool
    async def local(local_town: Local) -> str:
        return local_town.name

    assert await words(weather, {"town": {"name": "Ulm"}, "days": 2}, ctx) == "Ulm: 2 x 20 C"
    assert await words(town, {}, ctx) == '{"name":"Ulm"}'
    assert await words(tool(passes_on), {"a": 1}, ctx) == "1: 1 x 20 C"
    assert await words(local, {"local_town": {"name": "Ulm"}}, ctx) == "Ulm"
    with pytest.raises(KeyError, match="gone"):
        await outcome(fails, {}, ctx)
    assert await outcome(own, {}, ctx) == TextObservation(text="mine")


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_function_that_leaves_the_program_is_an_error_of_the_tool(ctx: ToolContext, is_async: bool) -> None:
    async def leaves_async() -> None:
        raise SystemExit(3)

    def leaves() -> None:
        raise SystemExit(3)

    with pytest.raises(ToolError, match="exit code 3"):
        await outcome(tool(leaves_async) if is_async else tool(leaves), {}, ctx)


async def test_a_cancelled_sync_function_is_told_and_left_behind(new_context: Callable[[], ToolContext]) -> None:
    ctx, other = new_context(), new_context()
    started, seen = threading.Event(), threading.Event()

    @tool
    def works_on(ctx: ToolContext) -> None:
        started.set()
        while not ctx.cancel_requested:
            threading.Event().wait(0.001)
        seen.set()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outcome, works_on, NOTHING, ctx)
            while not started.is_set():
                await anyio.sleep(0.001)
            tasks.cancel_scope.cancel()
        while not seen.is_set():
            await anyio.sleep(0.001)
    assert ctx.cancel_requested
    assert not other.cancel_requested


class Held:
    """Synchronous tools that run until they are let go."""

    def __init__(self) -> None:
        self.running = 0
        self._lock = threading.Lock()
        self._go = threading.Event()

    def hold(self) -> None:
        """Stay."""
        with self._lock:
            self.running += 1
        self._go.wait(60)

    def let_go(self) -> None:
        """End all."""
        self._go.set()

    async def are(self, number: int) -> None:
        """Wait until that many run."""
        while self.running < number:
            await anyio.sleep(0.001)


@pytest.fixture
def held() -> Iterator[Held]:
    held = Held()
    yield held
    held.let_go()


async def test_sync_tools_do_not_use_up_the_threads_of_others(
    held: Held, new_context: Callable[[], ToolContext]
) -> None:
    """As many of them as anyio's own limiter has places, all held; a thread for something else is there all the same."""
    made = tool(held.hold)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for _ in range(SYNC_TOOLS_AT_ONCE + 1):
                tasks.start_soon(outcome, made, NOTHING, new_context())
            await held.are(SYNC_TOOLS_AT_ONCE)
            assert await anyio.to_thread.run_sync(lambda: "free") == "free"
            assert held.running == SYNC_TOOLS_AT_ONCE
            held.let_go()
    assert held.running == SYNC_TOOLS_AT_ONCE + 1


async def test_threads_that_were_left_behind_take_no_place_from_others(
    held: Held, new_context: Callable[[], ToolContext]
) -> None:
    made = tool(held.hold)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for _ in range(SYNC_TOOLS_AT_ONCE):
                tasks.start_soon(outcome, made, NOTHING, new_context())
            await held.are(SYNC_TOOLS_AT_ONCE)
            tasks.cancel_scope.cancel()
        assert await words(total, {"numbers": [1]}, new_context()) == "1.0"


def test_resources_and_risk_can_be_declared() -> None:
    @tool(resources=lambda action, root: [Resource.file(action.path, "write", root=root)], risk=SecurityRisk.MEDIUM)
    async def touch(path: str) -> None: ...

    action = touch.parse({"path": "a"})
    assert touch.resources_of(action, "/w") == (Resource.file("/w/a", "write", root="/w"),)
    assert touch.risk_of(action) is SecurityRisk.MEDIUM


def plain(a: int) -> int:
    """Not decorated: its own name stands for the function, not for a tool."""
    return a


def test_a_function_travels_by_its_import_path_and_has_no_spec_where_it_can_not_be_found_again() -> None:
    @tool
    async def local() -> None: ...

    assert weather.spec == ToolSpec(name="function", params={"import": f"{__name__}:weather"})
    assert total.spec == ToolSpec(name="function", params={"import": f"{__name__}:total"})
    assert local.spec is None
    assert tool(plain).spec is None


async def async_generator() -> AsyncIterator[str]:
    yield "x"


def generator() -> Iterator[str]:
    yield "x"


def bad(a, b: int) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001 it is what is tested


REFUSED: list[tuple[Any, str]] = [(async_generator, "yields"), (generator, "yields"), (bad, r"bad\(\).*'a'")]


@pytest.mark.parametrize(("function", "words"), REFUSED)
def test_a_function_that_yields_or_can_not_be_described_is_refused(function: Callable[..., Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        tool(function)
