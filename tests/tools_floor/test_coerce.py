"""Arguments brought into the form that a schema wants."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agentcore.schema import schema_of
from agentcore.tools.arguments import coerce, rename_keys


class Step(BaseModel):
    title: str
    done: bool = False


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    names: list[str] = []


class Everything(BaseModel):
    text: str = ""
    maybe_text: str | None = None
    number: float = 0
    count: int = 0
    maybe_count: int | None = None
    flag: bool = False
    command: Literal["view", "str_replace"] = "view"
    tags: list[str] = []
    steps: list[Step] = []
    step: Step | None = None
    table: dict[str, int] = {}
    pair: tuple[int, str] = (0, "")
    pet: Cat | Dog | None = None
    text_or_list: str | list[str] = ""
    anything: Any = None


SCHEMA = schema_of(Everything)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"tags": '["a", "b"]'}, {"tags": ["a", "b"]}),
        ({"tags": " [ 'a' ] "}, {"tags": ["a"]}),
        ({"tags": '["a"]</parameter>'}, {"tags": ["a"]}),
        ({"table": '{"a": "1"}'}, {"table": {"a": 1}}),
        ({"table": '{"a":\n1}'}, {"table": {"a": 1}}),
        ({"steps": '[{"title": "x", "done": "true"}]'}, {"steps": [{"title": "x", "done": True}]}),
        ({"steps": ['{"title": "x"}']}, {"steps": [{"title": "x"}]}),
        ({"step": '{"title": "x"}'}, {"step": {"title": "x"}}),
        ({"step": "null"}, {"step": None}),
        ({"pair": '["1", 2]'}, {"pair": [1, "2"]}),
        ({"count": "12"}, {"count": 12}),
        ({"count": " -3.0 "}, {"count": -3}),
        ({"number": "2"}, {"number": 2}),
        ({"number": "-2.5e3"}, {"number": -2500.0}),
        ({"maybe_count": "5"}, {"maybe_count": 5}),
        ({"maybe_count": "None"}, {"maybe_count": None}),
        ({"maybe_count": ""}, {"maybe_count": None}),
        ({"flag": "True"}, {"flag": True}),
        ({"flag": "false"}, {"flag": False}),
        ({"text": ["one ", "text"]}, {"text": "one text"}),
        ({"maybe_text": ["a\n", "b\n"]}, {"maybe_text": "a\nb\n"}),
        ({"text": 5}, {"text": "5"}),
        ({"text": True}, {"text": "true"}),
        ({"command": "View"}, {"command": "view"}),
        ({"command": " str-replace "}, {"command": "str_replace"}),
        ({"pet": '{"kind": "dog", "names": "[\\"Rex\\"]"}'}, {"pet": {"kind": "dog", "names": ["Rex"]}}),
        ({"pet": {"kind": "cat", "lives": "7"}}, {"pet": {"kind": "cat", "lives": 7}}),
        ({"text": None, "tags": None, "count": None}, {}),
        ({"steps": [{"title": "x", "done": None}]}, {"steps": [{"title": "x"}]}),
        ({"maybe_text": None, "anything": None, "pet": None}, {"maybe_text": None, "anything": None, "pet": None}),
    ],
    ids=lambda value: json.dumps(value)[:40],
)
def test_what_was_meant_is_given(arguments: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert coerce(arguments, SCHEMA) == wanted
    Everything.model_validate(coerce(arguments, SCHEMA))
    # What is not known and null is dropped only where nothing else is allowed.
    closed = {**SCHEMA, "additionalProperties": False}
    assert coerce({**arguments, "unknown": None}, closed) == wanted


IN_DOUBT: list[dict[str, Any]] = [
    *({"text": value} for value in ('["a"]', "5", "", {"a": 1}, ["a", 1], [])),
    *({"text_or_list": value} for value in ('["a"]', ["a", "b"])),
    *({"anything": value} for value in ('{"a": 1}', ["a"])),
    *({"tags": value} for value in ("a, b", '{"a": 1}', '["a"')),
    *({"count": value} for value in ("three", "1_000", "0x10")),
    {"maybe_text": "null"},
    {"table": "[1]"},
    {"flag": "maybe"},
    {"command": "delete"},
    {"unknown": "1"},
    {"unknown": None},
    {"pet": {"kind": "bird", "lives": "7"}},
]


@pytest.mark.parametrize("arguments", IN_DOUBT, ids=lambda value: json.dumps(value)[:40])
def test_what_is_in_doubt_is_left_as_it_is(arguments: dict[str, Any]) -> None:
    assert coerce(arguments, SCHEMA) == arguments


@pytest.mark.parametrize(
    ("given_", "renamed"),
    [
        *(({name: "x"}, {"maybe_text": "x"}) for name in ("maybeText", "Maybe-Text", "MAYBE_TEXT", "maybe text")),
        # A name is not taken from an argument that is there.
        ({"maybe_text": "a", "maybeText": "b"}, {"maybe_text": "a", "maybeText": "b"}),
        ({"maybeText": "a", "MaybeText": "b"}, {"maybe_text": "a", "MaybeText": "b"}),
    ],
)
def test_names_that_differ_in_case_and_hyphens_are_the_schemas(given_: dict[str, Any], renamed: dict[str, Any]) -> None:
    assert rename_keys(given_, SCHEMA) == renamed


steps = st.builds(Step, title=st.text(), done=st.booleans())
valid = st.builds(
    Everything,
    text=st.text(),
    maybe_text=st.none() | st.text(),
    number=st.floats(allow_nan=False, allow_infinity=False),
    count=st.integers(),
    maybe_count=st.none() | st.integers(),
    flag=st.booleans(),
    command=st.sampled_from(["view", "str_replace"]),
    tags=st.lists(st.text()),
    steps=st.lists(steps),
    step=st.none() | steps,
    table=st.dictionaries(st.text(), st.integers()),
    pair=st.tuples(st.integers(), st.text()),
    pet=st.none() | st.builds(Cat, lives=st.integers()) | st.builds(Dog, names=st.lists(st.text())),
    text_or_list=st.text() | st.lists(st.text()),
    anything=st.none() | st.text() | st.lists(st.text()),
)


@given(valid)
def test_what_fits_is_never_changed(model: Everything) -> None:
    value = model.model_dump(mode="json")
    assert coerce(value, SCHEMA) == value
    assert rename_keys(value, SCHEMA) == value


@given(valid)
def test_what_was_encoded_twice_is_what_it_was(model: Everything) -> None:
    value = model.model_dump(mode="json", include={"tags", "steps", "step", "table", "pair", "pet", "count", "flag"})
    twice: dict[str, Any] = {name: json.dumps(part) for name, part in value.items()}
    assert coerce(twice, SCHEMA) == value
