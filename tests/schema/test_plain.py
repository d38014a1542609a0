"""Schemas in the dialect that every provider takes."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any, cast

import pytest

from agentcore.errors import SchemaError
from agentcore.schema import plain_schema


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Give every object in a schema."""
    if isinstance(value, dict):
        yield cast("dict[str, Any]", value)
        for part in cast("dict[str, Any]", value).values():
            yield from nodes(part)
    elif isinstance(value, list):
        for part in cast("list[Any]", value):
            yield from nodes(part)


TOWN = {"type": "string", "title": "Town", "description": "A town.", "minLength": 1}
LOOKS_LIKE = {"title": "x", "$ref": "#/$defs/None", "oneOf": [1], "const": 2}
CAT, DOG = ({"type": "object", "properties": {"kind": {"const": kind, "type": "string"}}} for kind in ("cat", "dog"))
ONE_OF = {
    "oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}],
    "discriminator": {"propertyName": "kind", "mapping": {"cat": "#/$defs/Cat"}},
}
INTEGER, STRING = {"type": "integer"}, {"type": "string"}
PAIR = {"type": "array", "prefixItems": [INTEGER, STRING], "maxItems": 2}
ONE = {"type": "object", "properties": {"a": STRING}, "required": ["a"], "description": "One."}
TWO = {"type": "object", "properties": {"b": STRING}, "required": ["b"]}

PROPERTIES: list[tuple[Any, Any]] = [
    # What stands beside a reference goes before what it points to; names in references may be escaped.
    ({"$ref": "#/$defs/Town"}, {"type": "string", "description": "A town.", "minLength": 1}),
    (
        {"$ref": "#/$defs/Town", "description": "The other one."},
        {"type": "string", "description": "The other one.", "minLength": 1},
    ),
    ({"$ref": "#/$defs/a~1b~0c%20d"}, {"type": "boolean"}),
    # A property called title is no title, and data that looks like schema is left alone.
    (
        {"type": "object", "title": "Book", "properties": {"title": {"type": "string", "title": "Title"}}},
        {"type": "object", "properties": {"title": {"type": "string"}}},
    ),
    ({"type": "object", "default": LOOKS_LIKE}, {"type": "object", "default": LOOKS_LIKE}),
    # A choice with a discriminator becomes a plain union.
    (
        {"anyOf": [ONE_OF, {"type": "null"}]},
        {
            "anyOf": [
                {"type": "object", "properties": {"kind": {"type": "string", "enum": ["cat"]}}},
                {"type": "object", "properties": {"kind": {"type": "string", "enum": ["dog"]}}},
                {"type": "null"},
            ]
        },
    ),
    # Parts of an allOf are merged where they agree.
    (
        {"allOf": [ONE, TWO]},
        {**ONE, "properties": {"a": STRING, "b": STRING}, "required": ["a", "b"]},
    ),
    ({"allOf": [STRING, INTEGER]}, {"allOf": [STRING, INTEGER]}),
    # Every array says what is in it.
    ({"type": "array"}, {"type": "array", "items": {}}),
    (PAIR, {**PAIR, "items": {"anyOf": [INTEGER, STRING]}}),
    (
        {"type": "array", "prefixItems": [INTEGER, INTEGER], "items": False},
        {"type": "array", "prefixItems": [INTEGER, INTEGER], "maxItems": 2, "items": INTEGER},
    ),
    ({"type": "array", "items": [INTEGER]}, {"type": "array", "prefixItems": [INTEGER], "items": INTEGER}),
]


@pytest.mark.parametrize(("given", "plain"), PROPERTIES, ids=lambda value: json.dumps(value)[:40])
def test_a_property_is_said_in_the_plain_dialect_and_the_schema_that_was_given_stays_as_it_is(
    given: Any, plain: Any
) -> None:
    parts = {"Town": TOWN, "a/b~c d": {"type": "boolean"}, "Cat": CAT, "Dog": DOG}
    schema = {"$defs": parts, "type": "object", "properties": {"x": given}}
    before = copy.deepcopy(schema)
    assert plain_schema(schema) == {"type": "object", "properties": {"x": plain}}
    assert schema == before


def test_what_helps_a_model_is_kept() -> None:
    field = {
        "type": "integer",
        "description": "How many.",
        "default": 3,
        "minimum": 1,
        "exclusiveMaximum": 10,
        "multipleOf": 1,
        "examples": [3],
        "deprecated": True,
    }
    text = {
        "type": "string",
        "enum": ["a", "b"],
        "pattern": "^.$",
        "format": "date-time",
        "minLength": 1,
        "maxLength": 2,
    }
    schema = {"type": "object", "properties": {"n": field, "t": text}, "required": ["n"], "additionalProperties": False}
    assert plain_schema(schema) == schema


def test_a_recursive_part_is_spelled_out_once_and_named_where_it_comes_back() -> None:
    plain = plain_schema(
        {
            "$defs": {
                "Node": {
                    "type": "object",
                    "title": "Node",
                    "properties": {
                        "value": {"type": "integer"},
                        "left": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
                        "right": {"$ref": "#/$defs/Node", "description": "The larger ones."},
                    },
                }
            },
            "type": "object",
            "properties": {"tree": {"$ref": "#/$defs/Node"}},
        }
    )
    again = "Node again, of the shape that is given under this title."
    assert plain["properties"] == {
        "tree": {
            "title": "Node",
            "type": "object",
            "properties": {
                "value": {"type": "integer"},
                "left": {"anyOf": [{"type": "object", "description": again}, {"type": "null"}]},
                "right": {"type": "object", "description": f"The larger ones. {again}"},
            },
        }
    }


def test_parts_that_contain_each_other_do_not_multiply() -> None:
    """Twenty kinds of expression, each of which may hold all of them, as in a syntax tree."""
    kinds = [f"Kind{number}" for number in range(20)]
    any_kind = {"anyOf": [{"$ref": f"#/$defs/{kind}"} for kind in kinds]}
    schema = {
        "$defs": {kind: {"type": "object", "properties": {"parts": any_kind}} for kind in kinds},
        "type": "object",
        "properties": {"expression": any_kind},
    }
    plain = plain_schema(schema)
    spelled_out = [node["title"] for node in nodes(plain) if "title" in node]
    # Once under each of the branches where one of them begins.
    assert max(spelled_out.count(kind) for kind in kinds) <= len(kinds)
    assert len(json.dumps(plain)) < 1_000_000


@pytest.mark.parametrize("reference", ["#/$defs/Loop", "#/$defs/A", "#/nowhere", "https://example.org/schema", "#"])
def test_a_reference_that_leads_nowhere_or_round_in_a_circle_ends(reference: str) -> None:
    plain = plain_schema(
        {
            "$defs": {"Loop": {"$ref": "#/$defs/Loop"}, "A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}},
            "type": "object",
            "properties": {"a": {"$ref": reference, "description": "kept"}},
        }
    )
    assert "$ref" not in json.dumps(plain)
    assert "kept" in json.dumps(plain)


def test_references_that_multiply_are_refused() -> None:
    parts = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(60)}
    with pytest.raises(SchemaError, match="too large"):
        plain_schema({"$defs": parts | {"a60": {}}, "$ref": "#/$defs/a0"})


def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(3_000):
        schema = {"properties": {"a": schema}}
    with pytest.raises(SchemaError, match="too deeply"):
        plain_schema(schema)
