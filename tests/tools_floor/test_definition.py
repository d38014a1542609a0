"""Tools made of an action, an observation and an executor."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
from pydantic import Field

from agentcore.assessment import SecurityRisk
from agentcore.errors import ToolArgumentsError
from agentcore.tools import Action, AnyTool, Executor, Observation, Resource, Tool, ToolAnnotations, ToolContext
from agentcore.workspace import Workspace


class Pour(Action):
    """For programmers."""

    cups: int = Field(ge=1, le=12)
    """How many cups."""
    into: list[str] = []
    """Which cups."""


class Poured(Observation):
    left: int


async def pour(action: Pour, ctx: ToolContext) -> Poured:
    return Poured(left=12 - action.cups)


POT = Tool(name="pour", description="Pour tea.", action=Pour, execute=pour)


def pot(**changes: Any) -> Tool[Pour, Poured]:
    """Give the tool with some of it changed."""
    return replace(POT, **changes)


def test_the_schema_is_the_action_with_the_tools_own_description() -> None:
    tool: AnyTool = pot()
    assert repr(tool) == "Tool('pour')"
    with pytest.raises(FrozenInstanceError):
        tool.name = "other"  # pyright: ignore[reportAttributeAccessIssue] it is what is tested
    schema = tool.schema
    assert tool.schema is schema, "computed once"
    assert (schema.name, schema.description) == ("pour", "Pour tea.")
    assert schema.parameters == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "cups": {"type": "integer", "minimum": 1, "maximum": 12, "description": "How many cups."},
            "into": {"type": "array", "items": {"type": "string"}, "default": [], "description": "Which cups."},
        },
        "required": ["cups"],
    }


async def test_a_tool_with_live_state_opens_it_once_and_closes_it(ctx: ToolContext, workspace: Workspace) -> None:
    life: list[str] = []

    @asynccontextmanager
    async def open_pot(workspace: Workspace, conversation_id: str) -> AsyncGenerator[Executor[Pour, Poured]]:
        life.append(f"opened for {conversation_id}")
        left = 12

        async def execute(action: Pour, ctx: ToolContext) -> Poured:
            nonlocal left
            left -= action.cups
            return Poured(left=left)

        yield execute
        life.append("closed")

    stateless = pot()
    async with stateless.open_executor(workspace, "conversation") as execute:
        assert await execute(stateless.parse({"cups": 2}), ctx) == Poured(left=10)
    tool = pot(execute=None, open=open_pot)
    async with tool.open_executor(workspace, "one") as first, tool.open_executor(workspace, "two") as second:
        await first(Pour(cups=5), ctx)
        assert await first(Pour(cups=5), ctx) == Poured(left=2)
        assert await second(Pour(cups=1), ctx) == Poured(left=11)
    assert life == ["opened for one", "opened for two", "closed", "closed"]


def test_arguments_that_do_not_fit_are_explained_field_by_field() -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        pot().parse({"cups": "many", "into": ["a", 2], "sugar": True})
    text = str(caught.value)
    assert "'pour'" in text
    assert "`cups` must be a whole number, not" in text
    assert 'not "many"' in text
    assert "`into[1]` must be text, not 2." in text
    assert "`sugar` is not an argument of this tool." in text
    assert '{"cups": "many", "into": ["a", 2], "sugar": true}' in text
    assert "cups (integer, required); into (array of string)" in text
    assert len(caught.value.problems) == 3
    with pytest.raises(ToolArgumentsError, match="`cups` is missing"):
        pot().parse({})


def test_an_explanation_of_huge_arguments_is_short() -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        pot().parse({"cups": "x" * 100_000})
    assert len(str(caught.value)) < 4_000


def test_an_undeclared_tool_writes_the_workspace_and_a_read_only_one_reads_it() -> None:
    action = Pour(cups=1)
    assert pot().resources_of(action, "/w") == (Resource.workspace("write"),)
    reading = pot(annotations=ToolAnnotations(read_only=True))
    assert reading.resources_of(action, "/w") == (Resource.workspace("read"),)


def test_declared_resources_depend_on_the_action_and_the_root() -> None:
    def its_cup(action: Pour, root: str) -> Sequence[Resource]:
        return [Resource.file(f"cup{action.cups}", "write", root=root)]

    tool = pot(resources=its_cup)
    assert tool.resources_of(Pour(cups=2), "/w") == (Resource.file("/w/cup2", "write", root="/w"),)
    kettle = Resource.named("kettle", "read")
    assert pot(resources=[kettle]).resources_of(Pour(cups=1), "/w") == (kettle,)
    assert pot(resources=()).resources_of(Pour(cups=1), "/w") == ()


def test_the_risk_is_the_tools_word_else_low_for_reading_and_unknown_for_the_rest() -> None:
    action = Pour(cups=1)
    assert pot().risk_of(action) is SecurityRisk.UNKNOWN
    assert pot(annotations=ToolAnnotations(read_only=True)).risk_of(action) is SecurityRisk.LOW
    assert pot(risk=SecurityRisk.HIGH).risk_of(action) is SecurityRisk.HIGH

    def by_cups(action: Pour) -> SecurityRisk:
        return SecurityRisk.HIGH if action.cups > 5 else SecurityRisk.LOW

    assert [pot(risk=by_cups).risk_of(Pour(cups=cups)) for cups in (1, 6)] == [SecurityRisk.LOW, SecurityRisk.HIGH]


@pytest.mark.parametrize("name", ["", "two words", "a.b", "x" * 65, "café"])
def test_a_name_that_a_provider_would_refuse_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="can't be the name of a tool"):
        pot(name=name)


def test_a_tool_needs_one_way_to_be_done() -> None:
    with pytest.raises(ValueError, match="one of execute and open"):
        pot(execute=None)
    with pytest.raises(ValueError, match="one of execute and open"):
        pot(open=print)
