"""Tools whose arguments are described by a JSON Schema of somebody else."""

from __future__ import annotations

from typing import Any, cast

import pytest
from pydantic import JsonValue

from agentcore import ToolContext
from agentcore.errors import SchemaError, ToolArgumentsError
from agentcore.messages import ToolSchema
from agentcore.schema import check_schema
from agentcore.tools import RawAction, ToolAnnotations, raw_tool, read_call

# What checks is imported before an event loop runs, as a conversation does in a thread.
check_schema({})

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"path": {"type": "string"}, "mode": {"$ref": "#/$defs/Mode"}},
    "required": ["path"],
    "additionalProperties": False,
    "$defs": {"Mode": {"enum": ["r", "w"]}},
}


async def execute(arguments: dict[str, JsonValue], ctx: ToolContext) -> Any:
    return {"opened": arguments["path"]}


open_file = raw_tool("open_file", "Open a file.", SCHEMA, execute, annotations=ToolAnnotations(read_only=True))


def test_the_model_is_told_the_schema_in_the_plain_dialect() -> None:
    assert open_file.schema.parameters == {
        "type": "object",
        "properties": {"path": {"type": "string"}, "mode": {"enum": ["r", "w"]}},
        "required": ["path"],
        "additionalProperties": False,
    }
    assert raw_tool("a", "d", {}, execute).schema.parameters == {"type": "object", "properties": {}}


async def test_what_fits_is_run_and_shown_as_what_any_function_returns() -> None:
    read = read_call("open_file", '{"path": "a.py", "mode": "r"}', [open_file])
    assert read.action == RawAction(arguments={"path": "a.py", "mode": "r"})
    assert open_file.execute is not None
    observation = await open_file.execute(open_file.parse(read.arguments), cast("ToolContext", None))
    assert observation.to_data() == {"value": {"opened": "a.py"}}
    numbers = raw_tool("add", "Add.", {"type": "object", "properties": {"n": {"type": "integer"}}}, execute)
    assert read_call("Add", '{"N": "3"}', [numbers]).action == RawAction(arguments={"n": 3})


def test_what_does_not_fit_is_an_answer_that_a_model_can_act_on() -> None:
    read = read_call("open_file", '{"mode": "x", "how": 1}', [open_file])
    assert read.code == "bad_arguments"
    assert read.problem is not None
    assert "'path' is a required property" in read.problem
    assert "`mode`: 'x' is not one of ['r', 'w']" in read.problem
    assert "'how' is not one of its properties" in read.problem
    assert 'Wanted: path (string, required); mode (one of "r", "w")' in read.problem


def test_a_schema_that_can_not_be_checked_is_an_answer_too() -> None:
    broken = raw_tool("a", "d", {"type": "object", "properties": {"n": {"type": "nonsense"}}}, execute)
    with pytest.raises(ToolArgumentsError, match="not a valid JSON Schema"):
        broken.parse({"n": 1})
    with pytest.raises(SchemaError, match="of type 'array', and arguments are an object"):
        raw_tool("a", "d", {"type": "array"}, execute)


def test_a_digest_is_of_what_the_model_is_told() -> None:
    one = ToolSchema(name="a", description="d", parameters={"type": "object", "properties": {"x": {}, "y": {}}})
    same = ToolSchema(name="a", description="d", parameters={"properties": {"y": {}, "x": {}}, "type": "object"})
    assert one.digest == same.digest
    for changed in (
        ToolSchema(name="b", description="d", parameters=one.parameters),
        ToolSchema(name="a", description="D", parameters=one.parameters),
        ToolSchema(name="a", description="d", parameters={**one.parameters, "required": ["x"]}),
    ):
        assert changed.digest != one.digest
    # It is recorded, and outlives masking.
    masked = one.model_copy(update={"description": "<secret:KEY>"})
    assert ToolSchema.model_validate_json(masked.model_dump_json()).digest == one.digest
