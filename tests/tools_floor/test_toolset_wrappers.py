"""Toolsets that change which tools another one has, and what they are called."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore import OpenToolset, Toolset, ToolsetContext, filtered, prefixed, renamed, tool
from agentcore.errors import ToolNotFound
from agentcore.testing import ToolsetContract
from agentcore.tools import AnyTool, ToolsetRegistry, ToolsetSpec
from live_toolset import Service, raw

CONTEXT = cast("ToolsetContext", None)


@tool
async def weather(city: str) -> str:
    """Tell the weather."""
    return f"{city}: sunny"


@asynccontextmanager
async def opened(toolset: Toolset) -> AsyncGenerator[OpenToolset]:
    async with toolset.open(CONTEXT) as live:
        yield live


async def names_of(toolset: Toolset) -> list[str]:
    async with opened(toolset) as live:
        return [tool.name for tool in live.tools()]


SERVICE = Service("s", raw("a"), raw("b"), raw("c"))


@pytest.mark.parametrize(
    ("toolset", "names"),
    [
        (prefixed(SERVICE, "x_"), "x_a x_b x_c"),
        (filtered(SERVICE, ["b", "not there"]), "b"),
        (filtered(SERVICE, "b"), "b"),
        (filtered(SERVICE, lambda tool: tool.name > "a"), "b c"),
        (renamed(SERVICE, {"a": "z", "not there": "y"}), "z b c"),
        (prefixed(renamed(filtered(SERVICE, ["a", "b"]), {"a": "z"}), "x_"), "x_z x_b"),
        (filtered(prefixed(SERVICE, "x_"), ["x_c"]), "x_c"),
        (prefixed(prefixed(SERVICE, "x_"), "y_"), "y_x_a y_x_b y_x_c"),
    ],
)
async def test_wrappers_change_names_and_leave_tools_out_and_hold_each_other(toolset: Toolset, names: str) -> None:
    assert await names_of(toolset) == names.split()


async def test_a_tool_with_another_name_is_the_same_tool_otherwise() -> None:
    async with opened(prefixed(Service("s", weather), "x_")) as live:
        (changed,) = live.tools()
        again = await changed.execute(changed.parse({"city": "Ulm"}), cast("Any", None))  # pyright: ignore[reportOptionalCall]
    assert (changed.name, changed.description) == ("x_weather", weather.description)
    assert changed.schema.parameters == weather.schema.parameters
    assert changed.schema.digest != weather.schema.digest
    assert changed.spec is None, "made again from its record it would have its old name"
    assert again.text == "Ulm: sunny"


async def test_a_tool_is_changed_once_as_long_as_it_is_the_same() -> None:
    service = Service("s", raw("a"), raw("b"))
    async with opened(prefixed(service, "x_")) as live:
        first = list(live.tools())
        assert list(live.tools()) == first
        service.tools = [service.tools[1], raw("c")]
        second = list(live.tools())
    assert second[0] is first[1]
    assert [tool.name for tool in second] == ["x_b", "x_c"]


@pytest.mark.parametrize("prefix", ["", "github.", "ein präfix", "x" * 33])
def test_a_prefix_that_could_not_be_in_a_name_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match="can't be a prefix"):
        prefixed(Service(), prefix)


def test_new_names_that_could_not_work_are_refused() -> None:
    with pytest.raises(ValueError, match="'a b' can't be the name of a tool"):
        renamed(Service(), {"a": "a b"})
    with pytest.raises(ValueError, match="Two tools would be called 'z'"):
        renamed(Service(), {"a": "z", "b": "z"})


@given(st.sets(st.from_regex(r"[a-zA-Z0-9_-]{1,64}", fullmatch=True), max_size=8), st.sampled_from(["x_", "y" * 32]))
async def test_names_stay_valid_and_different_under_a_prefix(names: set[str], prefix: str) -> None:
    # Names that differ at their very end, where a cut would take the difference away.
    many = {*names, *(f"{'n' * 62}{n:02}" for n in range(3))}
    changed = await names_of(prefixed(Service("s", *map(raw, many)), prefix))
    assert len(set(changed)) == len(many)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) and name.startswith(prefix) for name in changed)


def test_what_wraps_is_made_again_with_what_it_wraps() -> None:
    registry = ToolsetRegistry()
    registry.register("live_toolset.Service", Service)
    toolset = prefixed(renamed(filtered(Service("s"), ["b", "a"]), {"a": "z"}), "x_")
    spec = toolset.record()
    assert spec is not None
    again = registry.resolve(ToolsetSpec.model_validate_json(spec.model_dump_json()))
    assert (again.name, again.record()) == ("s", spec)


def test_a_function_that_filters_can_not_be_recorded() -> None:
    assert prefixed(filtered(Service(), lambda tool: True), "x_").record() is None


def test_equal_wrappers_of_equal_keys_have_equal_keys() -> None:
    one, two = Service(), Service()
    assert prefixed(one, "x_").session_key is None
    one.session_key = two.session_key = "server"
    assert prefixed(one, "x_").session_key == prefixed(two, "x_").session_key
    assert prefixed(one, "x_").session_key != prefixed(two, "y_").session_key
    assert filtered(one, ["a"]).session_key != renamed(one, {"a": "b"}).session_key
    assert filtered(one, lambda tool: True).session_key is None


def test_what_can_not_be_made_again_says_why_and_nothing_is_imported() -> None:
    registry = ToolsetRegistry()
    for name in ("nowhere", "live_toolset:Service", "os:system"):
        with pytest.raises(ToolNotFound, match=r"recorded toolset .* no factory has this name"):
            registry.resolve(ToolsetSpec(name=name))
    registry.register("service", Service)
    inner: Any = {"name": "service", "params": {}}
    wrong: list[Any] = [
        {"toolset": inner, "prefix": 7},
        {"toolset": inner, "prefix": ""},
        {"prefix": "x_"},
        {"toolset": 1},
    ]
    for params in wrong:
        with pytest.raises(ToolNotFound, match="refused its parameters"):
            registry.resolve(ToolsetSpec.model_validate({"name": "prefixed", "params": params}))
    with pytest.raises(ValueError, match="another toolset factory"):
        registry.register("service", _another)
    registry.register("none", cast("Any", lambda: "a string"))
    with pytest.raises(ToolNotFound, match="not a toolset but 'a string'"):
        registry.resolve(ToolsetSpec(name="none"))


def _another(name: str = "another") -> Toolset:
    return Service(name)


class TestService(ToolsetContract):
    @pytest.fixture
    def toolset(self) -> Toolset:
        return Service("service", raw("a"), raw("b"))


class TestWrapped(ToolsetContract):
    @pytest.fixture
    def toolset(self) -> Toolset:
        return prefixed(filtered(Service("service", raw("a"), raw("b")), _all), "x_")


def _all(tool: AnyTool) -> bool:
    return True
