"""To finish, and to think."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from pydantic import BaseModel

from agentcore.assessment import SecurityRisk
from agentcore.errors import SchemaError, ToolArgumentsError
from agentcore.messages import TextBlock
from agentcore.tools import (
    AnyTool,
    FinishObservation,
    Observation,
    OutputSchema,
    ToolContext,
    ToolSpec,
    finish_tool,
    read_call,
    think_tool,
)


class Report(BaseModel):
    """What was found."""

    title: str
    due: dt.date | None = None


async def outcome(made: AnyTool, arguments: dict[str, Any], ctx: ToolContext) -> Observation:
    async with made.open_executor(ctx.workspace, ctx.conversation_id) as execute:
        return await execute(made.parse(arguments), ctx)


async def test_finishing_ends_the_run_with_a_message(ctx: ToolContext) -> None:
    finish = finish_tool()
    assert finish.finishes
    seen = await outcome(finish, {"message": "All done."}, ctx)
    assert seen == FinishObservation(message="All done.")
    assert seen.to_data() == {"message": "All done.", "result": None}
    assert seen.blocks() == (TextBlock(text="The work is marked as finished."),)


async def test_finishing_with_a_model_gives_its_fields_typed_and_recorded(ctx: ToolContext) -> None:
    finish = finish_tool(Report)
    assert finish.schema.parameters["required"] == ["message", "result"]
    assert finish.schema.parameters["properties"] == {
        "message": {
            "type": "string",
            "description": "What to tell the user: what was done, what was found, and what is left.",
        },
        "result": {
            "type": "object",
            "description": "The result of the work.",
            "properties": {
                "title": {"type": "string"},
                "due": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": None},
            },
            "required": ["title"],
        },
    }
    arguments = {"message": "Done.", "result": {"title": "T", "due": "2026-11-21"}}
    action = finish.parse(arguments)
    assert vars(action)["result"] == Report(title="T", due=dt.date(2026, 11, 21))
    assert (await outcome(finish, arguments, ctx)).to_data() == arguments


async def test_thinking_writes_the_thought_down(ctx: ToolContext) -> None:
    think = think_tool()
    assert not think.finishes
    assert (await outcome(think, {"thought": "Hm."}, ctx)).blocks() == (TextBlock(text="The thought is written down."),)


@pytest.mark.parametrize("made", [finish_tool(), think_tool()], ids=repr)
def test_they_touch_nothing_and_are_harmless(made: AnyTool) -> None:
    action = made.action.model_construct()
    assert made.resources_of(action, "/w") == ()
    assert made.risk_of(action) is SecurityRisk.LOW


@pytest.mark.parametrize("arguments", [{"text": "Done."}, {"summary": "Done."}, {"message": "Done."}])
def test_the_message_is_found_under_its_other_names(arguments: dict[str, Any]) -> None:
    read = read_call("submit", arguments, [think_tool(), finish_tool()])
    assert (read.name, read.arguments, read.problem) == ("finish", {"message": "Done."}, None)


def test_an_output_is_recorded_as_its_schema_wherever_its_type_is() -> None:
    class Local(BaseModel):
        a: int

    schema = Local.model_json_schema()
    assert finish_tool(Local).spec == ToolSpec(name="finish", params={"output": {"name": "Local", "schema": schema}})


def test_an_output_that_is_a_schema_is_checked_and_stays_plain_data() -> None:
    finish = finish_tool(OutputSchema("Report", Report.model_json_schema()))
    assert finish.schema == finish_tool(Report).schema
    (name,) = Report.model_json_schema()["required"]
    with pytest.raises(ToolArgumentsError, match=f"'{name}' is a required property"):
        finish.parse({"message": "Done.", "result": {}})
    with pytest.raises(ToolArgumentsError, match=r"`result.title` is missing"):
        finish_tool(Report).parse({"message": "Done.", "result": {}})
    with pytest.raises(SchemaError, match="`type`"):
        OutputSchema("x", {"type": "text"})
