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


def test_a_reference_is_replaced_by_what_it_points_to_and_what_stands_beside_it_wins() -> None:
    plain = plain_schema(
        {
            "$defs": {"Town": {"type": "string", "title": "Town", "description": "A town.", "minLength": 1}},
            "type": "object",
            "properties": {
                "here": {"$ref": "#/$defs/Town"},
                "there": {"$ref": "#/$defs/Town", "description": "The other one."},
            },
        }
    )
    assert plain == {
        "type": "object",
        "properties": {
            "here": {"type": "string", "description": "A town.", "minLength": 1},
            "there": {"type": "string", "description": "The other one.", "minLength": 1},
        },
    }


def test_the_schema_that_was_given_stays_as_it_is() -> None:
    schema = {
        "$defs": {"A": {"oneOf": [{"const": 1}, {"const": 2}], "title": "A"}},
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"type": "array", "items": [{"type": "string"}]}},
    }
    before = copy.deepcopy(schema)
    plain_schema(schema)
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


def test_a_property_called_title_is_no_title() -> None:
    plain = plain_schema(
        {"type": "object", "title": "Book", "properties": {"title": {"type": "string", "title": "Title"}}}
    )
    assert plain == {"type": "object", "properties": {"title": {"type": "string"}}}


def test_data_that_looks_like_schema_is_left_alone() -> None:
    default = {"title": "x", "$ref": "#/$defs/None", "oneOf": [1], "const": 2}
    plain = plain_schema({"type": "object", "properties": {"a": {"type": "object", "default": default}}})
    assert plain["properties"] == {"a": {"type": "object", "default": default}}


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


def test_escaped_names_in_references_are_found() -> None:
    plain = plain_schema(
        {
            "definitions": {"a/b~c d": {"type": "boolean"}},
            "type": "object",
            "properties": {"x": {"$ref": "#/definitions/a~1b~0c%20d"}},
        }
    )
    assert plain["properties"] == {"x": {"type": "boolean"}}


def test_a_choice_of_models_with_a_discriminator_becomes_a_plain_union() -> None:
    cat = {"type": "object", "properties": {"kind": {"const": "cat", "type": "string"}}}
    dog = {"type": "object", "properties": {"kind": {"const": "dog", "type": "string"}}}
    plain = plain_schema(
        {
            "$defs": {"Cat": cat, "Dog": dog},
            "type": "object",
            "properties": {
                "pet": {
                    "anyOf": [
                        {
                            "oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}],
                            "discriminator": {"propertyName": "kind", "mapping": {"cat": "#/$defs/Cat"}},
                        },
                        {"type": "null"},
                    ]
                }
            },
        }
    )
    assert plain["properties"] == {
        "pet": {
            "anyOf": [
                {"type": "object", "properties": {"kind": {"type": "string", "enum": ["cat"]}}},
                {"type": "object", "properties": {"kind": {"type": "string", "enum": ["dog"]}}},
                {"type": "null"},
            ]
        }
    }


def test_parts_of_an_all_of_are_merged_where_they_agree() -> None:
    one = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "description": "One."}
    two = {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}
    assert plain_schema({"allOf": [one, two]}) == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "required": ["a", "b"],
        "description": "One.",
    }
    odds = {"allOf": [{"type": "string"}, {"type": "integer"}]}
    assert plain_schema(odds) == odds


def test_every_array_says_what_is_in_it() -> None:
    plain = plain_schema(
        {
            "type": "object",
            "properties": {
                "any": {"type": "array"},
                "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "maxItems": 2},
                "same": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "integer"}], "items": False},
                "old": {"type": "array", "items": [{"type": "integer"}]},
            },
        }
    )
    integer, string = {"type": "integer"}, {"type": "string"}
    assert plain["properties"] == {
        "any": {"type": "array", "items": {}},
        "pair": {
            "type": "array",
            "prefixItems": [integer, string],
            "maxItems": 2,
            "items": {"anyOf": [integer, string]},
        },
        "same": {"type": "array", "prefixItems": [integer, integer], "maxItems": 2, "items": integer},
        "old": {"type": "array", "prefixItems": [integer], "items": integer},
    }


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
