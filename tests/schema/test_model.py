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


class Odd(BaseModel):
    inner: int = Field(alias="outer")
    value: Any = Field(default=object())


class Empty(BaseModel):
    pass


class Tree(BaseModel):
    children: list[Tree] = []


class Calls(BaseModel):
    back: Callable[[], None]


def test_fields_go_by_their_names_in_json_and_a_default_that_json_can_not_say_only_makes_them_optional() -> None:
    schema = schema_of(Odd)
    assert schema["properties"] == {"outer": {"type": "integer"}, "value": {}}
    assert schema["required"] == ["outer"]
    assert schema_of(Empty) == {"type": "object", "properties": {}}
    tree = schema_of(Tree)
    assert (tree["type"], tree["title"]) == ("object", "Tree")


def test_a_model_that_is_no_object_and_a_type_that_json_schema_can_not_say_are_refused() -> None:
    with pytest.raises(SchemaError, match="not an object"):
        schema_of(RootModel[list[int]])
    with pytest.raises(SchemaError, match="Calls"):
        schema_of(Calls)
