"""Checking data against a JSON Schema, whoever wrote it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, JsonValue

from agentcore.errors import SchemaError
from agentcore.schema import check_schema, schema_errors, schema_of
from agentcore.testing.http import HTTPRequest, Responder, serve_http

Schema = dict[str, Any]


class Line(BaseModel):
    text: str
    number: int | None = None


class Report(BaseModel):
    title: str
    lines: list[Line]


def nested(depth: int) -> list[Any]:
    data: list[Any] = []
    for _ in range(depth):
        data = [data]
    return data


def test_data_that_fits_has_no_errors() -> None:
    data: JsonValue = {"title": "a", "lines": [{"text": "b", "number": 3}, {"text": "c"}]}
    check_schema(Report.model_json_schema())
    assert schema_errors(schema_of(Report), data) == []
    assert schema_errors(Report.model_json_schema(), data) == []


def test_each_error_is_a_sentence_that_names_the_place() -> None:
    errors = schema_errors(Report.model_json_schema(), {"lines": [{"text": 1}, {"text": "a", "number": "b"}]})
    assert errors == [
        "`lines[0].text`: 1 is not of type 'string'.",
        (
            "`lines[1].number`: 'b' is not valid under any of the given schemas ('b' is not of type 'integer'; 'b' is not "
            "of type 'null')."
        ),
        "'title' is a required property.",
    ]
    (error,) = schema_errors({"type": "string"}, list(range(1_000)))
    assert error == "what is given is not of type 'string'."
    assert len(schema_errors({"items": {"type": "string"}}, list(range(1_000)))) == 20


KEYWORDS: list[tuple[Schema, JsonValue, JsonValue]] = [
    ({"enum": ["a", "b"]}, "a", "c"),
    ({"pattern": "^a+$"}, "aa", "ab"),
    ({"pattern": "^a+$"}, 3, "b"),
    ({"additionalProperties": False, "properties": {"a": {}}}, {"a": 1}, {"b": 1}),
    ({"additionalProperties": {"type": "string"}}, {"a": "b"}, {"a": 1}),
    ({"additionalProperties": False, "patternProperties": {"^x": {"type": "string"}}}, {"xy": "a"}, {"y": "a"}),
    ({"patternProperties": {"^x": {"type": "string"}}}, {"xy": "a", "y": 1}, {"xy": 1}),
    ({"unevaluatedProperties": False, "allOf": [{"properties": {"a": {}}}]}, {"a": 1}, {"b": 1}),
    ({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": True}, 4, 3),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}, ["a"], [1]),
    ({"$schema": "https://unknown.example/schema", "type": "string"}, "a", 1),
    (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"a": {"type": "null"}},
            "properties": {"a": {"$ref": "#/definitions/a"}},
        },
        {"a": None},
        {"a": 1},
    ),
    ({"$id": "https://x.example/", "$defs": {"a": {"$anchor": "b", "type": "null"}}, "$ref": "#b"}, None, 1),
    ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, {"type": "string"}, {"type": "text"}),
    ({"items": {"$ref": "#"}, "type": "array"}, nested(20), [[1]]),
]


@pytest.mark.parametrize(("schema", "fits", "does_not"), KEYWORDS)
def test_the_drafts_and_their_keywords_are_known(schema: Schema, fits: JsonValue, does_not: JsonValue) -> None:
    assert schema_errors(schema, fits) == []
    assert len(schema_errors(schema, does_not)) == 1


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": 12}, "`type`: 12 is not valid"),
        ({"properties": 3}, "`properties`: 3 is not of type 'object'"),
        ({"$ref": 5}, "'string'"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "text"}, "`type`"),
    ],
)
def test_an_invalid_schema_is_refused_with_the_place(schema: Schema, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        check_schema(schema)
    with pytest.raises(SchemaError, match=reason):
        schema_errors(schema, {"a": 1})


async def test_nothing_is_fetched_that_a_schema_refers_to() -> None:
    asked: list[HTTPRequest] = []

    async def answer(request: HTTPRequest, responder: Responder) -> None:
        asked.append(request)
        await responder.send(200, b"{}", {"Content-Type": "application/json"})

    async with serve_http(answer) as server:
        for schema in ({"$ref": f"{server.url}/schema"}, {"$id": server.url, "$ref": "schema"}):
            with pytest.raises(SchemaError, match="which is not in it"):
                schema_errors(schema, {})
    assert asked == []


def test_a_reference_that_leads_nowhere_is_an_error() -> None:
    for reference in ("#/$defs/none", "#none", "file:///etc/passwd", "other.json", "http://[bad"):
        with pytest.raises(SchemaError, match="can't be checked"):
            schema_errors({"$ref": reference}, {})


def doubling(depth: int) -> Schema:
    parts: Schema = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(depth)}
    return {"$defs": parts | {f"a{depth}": {}}, "$ref": "#/$defs/a0"}


def chain(length: int) -> Schema:
    parts: Schema = {f"a{n}": {"$ref": f"#/$defs/a{n + 1}"} for n in range(length)}
    return {"$defs": parts | {f"a{length}": {}}, "$ref": "#/$defs/a0"}


def deep(depth: int) -> Schema:
    schema: Schema = {}
    for _ in range(depth):
        schema = {"properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ({"$ref": "#"}, 1),
        ({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#"}]}}}, 1),
        ({"$dynamicRef": "#a", "$dynamicAnchor": "a"}, 1),
        ({"unevaluatedProperties": False, "$ref": "#"}, {"a": 1}),
        (doubling(60), 1),
        (chain(5_000), 1),
        ({"items": {"$ref": "#"}}, nested(3_000)),
    ],
)
def test_references_without_end_are_an_error(schema: Schema, data: JsonValue) -> None:
    with pytest.raises(SchemaError, match=r"without end|too many references"):
        schema_errors(schema, data)


def test_a_schema_that_is_nested_too_deeply_is_an_error() -> None:
    with pytest.raises(SchemaError, match="nested too deeply"):
        check_schema(deep(3_000))
    with pytest.raises(SchemaError):
        schema_errors(deep(3_000), {})


def test_many_values_may_follow_as_many_references() -> None:
    schema = {"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"type": "integer"}}}
    assert schema_errors(schema, list(range(20_000))) == []


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(?=(a+)+$)a"])
def test_no_pattern_stops_the_program(pattern: str) -> None:
    text = "a" * 60 + "!"
    schema_errors({"pattern": pattern}, text)
    schema_errors({"patternProperties": {pattern: {}}, "additionalProperties": False}, {text: 1})
    schema_errors({"patternProperties": {pattern: {}}, "unevaluatedProperties": False}, {text: 1})
    schema_errors({"allOf": [{"patternProperties": {pattern: {}}}], "unevaluatedProperties": False}, {text: 1})
