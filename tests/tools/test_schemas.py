"""Each tool's schema against what each wire takes, as its documentation has it.

The checkers are stricter than the providers where the documentation is: a keyword that is not named there is an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import pytest
from pydantic.fields import FieldInfo

from agentcore.errors import ToolArgumentsError
from agentcore.llm.formats.anthropic import encode_tool
from agentcore.llm.formats.chat import encode_tools
from agentcore.llm.formats.responses import encode_function_tools
from agentcore.schema import plain_schema
from agentcore.tools import AnyTool, finish_tool, think_tool
from agentcore_tools import FACTORIES

Json = Mapping[str, Any]

TOOLS = [*(cast("Callable[[], AnyTool]", factory)() for factory in FACTORIES.values()), finish_tool(), think_tool()]

# JSON Schema's own words for types; each wire has all of them.
TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}
# What Gemini's `Schema` object names, and what its JSON Schema field takes besides.
GEMINI = {
    "type", "format", "title", "description", "nullable", "enum", "items", "properties", "required", "minItems", "maxItems",
    "minimum", "maximum", "anyOf", "default", "example", "minLength", "maxLength", "pattern", "minProperties", "maxProperties",
    "propertyOrdering", "prefixItems", "additionalProperties",
}  # fmt: skip
FORBIDDEN = {
    "$ref", "$defs", "definitions", "$schema", "$id", "oneOf", "allOf", "not", "const", "discriminator", "if", "then",
}  # fmt: skip


def nodes(schema: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """Give each schema in a schema, with where it is."""
    yield path or "the whole", schema
    for name, part in schema.get("properties", {}).items():
        yield from nodes(part, f"{path}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from nodes(schema["items"], f"{path}[]")
    for number, branch in enumerate(schema.get("anyOf", ())):
        yield from nodes(branch, f"{path}|{number}")


def problems_everywhere(schema: Json) -> Iterator[str]:
    """Give what every wire refuses."""
    if schema.get("type") != "object" or set(schema) & {"anyOf", "enum", *FORBIDDEN}:
        yield "the whole is an object, and no union"
    for path, node in nodes(schema):
        yield from (f"{path}: {word}" for word in set(node) & FORBIDDEN)
        kind = node.get("type")
        if kind is None and "anyOf" not in node:
            yield f"{path}: no type"
        if kind is not None and (not isinstance(kind, str) or kind not in TYPES):
            yield f"{path}: type {kind!r}"
        if kind == "array" and not isinstance(node.get("items"), dict):
            yield f"{path}: an array that does not say of what"
        if kind == "object" and not isinstance(node.get("properties", node.get("additionalProperties")), dict):
            yield f"{path}: an object that does not say of what"
        if not set(node.get("required", ())) <= set(node.get("properties", {})):
            yield f"{path}: what is required is no property"
        if "enum" in node and (not node["enum"] or len(set(node["enum"])) < len(node["enum"])):
            yield f"{path}: an enum that is empty, or says something twice"


def problems_for_openai(tool: Json) -> Iterator[str]:
    if set(tool) - {"name", "description", "parameters", "strict", "type"}:
        yield "unknown members of the function"
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["name"]):
        yield "name"
    # Its limits of strict schemas: so deep and so many properties are taken in any case.
    found = list(nodes(tool["parameters"]))
    if sum(len(node.get("properties", ())) for _, node in found) > 100 or any(path.count(".") > 5 for path, _ in found):
        yield "too many properties, or too deep"


def problems_for_anthropic(tool: Json) -> Iterator[str]:
    if set(tool) - {"name", "description", "input_schema"}:
        yield "unknown members of the tool"
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["name"]):
        yield "name"
    for path, node in nodes(tool["input_schema"]):
        if any(not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in node.get("properties", {})):
            yield f"{path}: a property's name"


def problems_for_gemini(parameters: Json) -> Iterator[str]:
    for path, node in nodes(parameters):
        yield from (f"{path}: {word}" for word in set(node) - GEMINI)
        if "enum" in node and (
            node.get("type") != "string" or not all(isinstance(value, str) for value in node["enum"])
        ):
            yield f"{path}: an enum of something else than strings"
        branches = node.get("anyOf", ())
        if branches and len([branch for branch in branches if branch.get("type") == "null"]) > 1:
            yield f"{path}: null twice"
        if "anyOf" in node and "type" in node:
            yield f"{path}: a union with a type beside it"


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_wire_takes_the_schema(tool: AnyTool) -> None:
    (chat,) = cast("list[dict[str, Any]]", encode_tools([tool.schema]))
    (responses,) = cast("list[dict[str, Any]]", encode_function_tools([tool.schema]))
    anthropic = encode_tool(tool.schema)
    assert list(problems_everywhere(tool.schema.parameters)) == []
    assert list(problems_for_openai(chat["function"])) == []
    assert list(problems_for_openai(responses)) == []
    assert list(problems_for_anthropic(anthropic)) == []
    assert list(problems_for_gemini(chat["function"]["parameters"])) == []
    assert chat["function"]["parameters"] == responses["parameters"] == anthropic["input_schema"]


def offered(tool: AnyTool) -> dict[str, FieldInfo]:
    """Give the fields of an action that a model is offered; others it may send out of habit."""
    fields: dict[str, FieldInfo] = tool.action.model_fields
    skipped = {
        name for name, field in fields.items() if "SkipJsonSchema" in {type(mark).__name__ for mark in field.metadata}
    }
    return {name: field for name, field in fields.items() if name not in skipped}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_nothing_of_an_action_is_lost_in_its_schema(tool: AnyTool) -> None:
    parameters = cast("dict[str, Any]", tool.schema.parameters)
    fields = offered(tool)
    assert list(parameters["properties"]) == list(fields)
    for name, field in fields.items():
        shown = parameters["properties"][name]
        assert shown["description"] == field.description, name
        assert (name in parameters.get("required", ())) is field.is_required(), name
        if not field.is_required():
            assert shown["default"] == field.default, name
    # Plain already: making it plain once more changes nothing, and no reference is left to follow.
    assert plain_schema(parameters) == parameters
    assert "$" not in json.dumps([list(node) for _, node in nodes(parameters)])
    # Limits are those of the model, which refuses what the schema refuses.
    for name, shown in parameters["properties"].items():
        for limits in (shown, *shown.get("anyOf", ())):
            if "minimum" in limits:
                with pytest.raises(ToolArgumentsError, match=name):
                    tool.parse({**dict.fromkeys(parameters.get("required", ()), "x"), name: limits["minimum"] - 1})


def test_what_is_nullable_takes_null_and_what_is_not_does_not() -> None:
    for tool in TOOLS:
        properties = cast("dict[str, Any]", tool.schema.parameters["properties"])
        for name, field in offered(tool).items():
            nullable = not field.is_required() and field.default is None
            assert any(branch["type"] == "null" for branch in properties[name].get("anyOf", ())) is nullable, name


WRONG: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}},
    {"type": "object", "properties": {"a": {"type": "array"}}},
    {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
    {"type": "object", "properties": {"a": {"type": "object"}}},
    {"type": "object", "properties": {}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "string", "enum": []}}},
    {"anyOf": [{"type": "object", "properties": {}}]},
]


@pytest.mark.parametrize("wrong", WRONG)
def test_the_checkers_find_what_is_wrong(wrong: dict[str, Any]) -> None:
    assert list(problems_everywhere(wrong))


def test_the_checkers_of_one_wire_find_what_it_refuses() -> None:
    odd = {"type": "object", "properties": {"a b": {"type": "integer", "enum": [1], "multipleOf": 2}}}
    assert list(problems_for_anthropic({"name": "a", "description": "", "input_schema": odd}))
    assert len(list(problems_for_gemini(odd))) == 2
    assert list(problems_for_openai({"name": "a b", "parameters": odd}))
