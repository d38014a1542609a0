"""The schema of a model."""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel

from agentcore.errors import SchemaError
from agentcore.schema import schema_of


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    """A place on the screen."""

    x: Annotated[int, Field(ge=0, description="From the left.")]
    y: int = Field(0, le=100)


class Line(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    start: Point
    """Where it starts."""
    end: Point | None = None
    colour: Colour = Colour.RED
    style: Literal["solid", "dotted"] = "solid"
    drawn: dt.datetime | None = None
    labels: dict[str, list[str]] = {}
    size: tuple[int, float] | Literal["auto"] = "auto"


def test_nothing_of_a_model_is_lost() -> None:
    start = {
        "type": "object",
        "properties": {
            "x": {"type": "integer", "minimum": 0, "description": "From the left."},
            "y": {"type": "integer", "default": 0, "maximum": 100},
        },
        "required": ["x"],
    }
    assert schema_of(Line) == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "start": {**start, "description": "Where it starts."},
            "end": {"anyOf": [{**start, "description": "A place on the screen."}, {"type": "null"}], "default": None},
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "style": {"type": "string", "enum": ["solid", "dotted"], "default": "solid"},
            "drawn": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}], "default": None},
            "labels": {
                "type": "object",
                "additionalProperties": {"type": "array", "items": {"type": "string"}},
                "default": {},
            },
            "size": {
                "anyOf": [
                    {
                        "type": "array",
                        "prefixItems": [{"type": "integer"}, {"type": "number"}],
                        "items": {"anyOf": [{"type": "integer"}, {"type": "number"}]},
                        "minItems": 2,
                        "maxItems": 2,
                    },
                    {"type": "string", "enum": ["auto"]},
                ],
                "default": "auto",
            },
        },
        "required": ["start"],
    }


def test_fields_go_by_the_names_they_have_in_json() -> None:
    class Aliased(BaseModel):
        inner: int = Field(alias="outer")

    assert schema_of(Aliased)["properties"] == {"outer": {"type": "integer"}}


def test_a_default_that_json_can_not_say_only_makes_the_field_optional() -> None:
    class Odd(BaseModel):
        value: Any = Field(default=object())

    schema = schema_of(Odd)
    assert schema["properties"] == {"value": {}}
    assert "required" not in schema


def test_a_model_without_fields_takes_no_arguments() -> None:
    class Empty(BaseModel):
        pass

    assert schema_of(Empty) == {"type": "object", "properties": {}}


def test_a_recursive_model_is_an_object_with_its_name() -> None:
    schema = schema_of(Tree)
    assert schema["type"] == "object"
    assert schema["title"] == "Tree"


class Tree(BaseModel):
    children: list[Tree] = []


def test_a_model_that_is_no_object_is_refused() -> None:
    with pytest.raises(SchemaError, match="not an object"):
        schema_of(RootModel[list[int]])


def test_a_type_that_json_schema_can_not_say_is_refused() -> None:
    class Calls(BaseModel):
        back: Callable[[], None]

    with pytest.raises(SchemaError, match="Calls"):
        schema_of(Calls)
