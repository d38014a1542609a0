"""Whatever is written as a call is read as the same call, also in pieces."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agentcore.llm.text_calls.prompt import properties_of, write_call
from agentcore.llm.text_calls.stream import CallBegan, CallEnded, Piece, TextDecoder, Thinking, Words
from agentcore.llm.text_calls.values import read_value, schema_types, write_value
from agentcore.messages import ToolSchema

_PIECES = [
    *("</parameter>", "</function>", "<parameter=", "<parameter=path>", "<parameter=path=", "<function=", "</func"),
    *("<function=write>", "<tool_call>", "</tool_call>", "<think>", "</think>", "<", ">", "=", "&", "&lt;", "&amp;"),
    *("&lt;/parameter>", "&amp;lt;/function>", "&gt;", "\n", "\r\n", "    ", "\t", '"', "\\", "{", "}", "[1]"),
    *("null", "True", "12", "1e5", "NaN", "\ufffd", "\u2028", "🐢"),
]
texts = st.lists(st.sampled_from(_PIECES) | st.text(max_size=4), max_size=8).map("".join)
numbers = st.integers(-(2**80), 2**80) | st.floats(allow_nan=False, allow_infinity=False)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
schemas_and_values: st.SearchStrategy[tuple[dict[str, Any], Any]] = st.one_of(
    st.tuples(st.just({"type": "string"}), texts),
    st.tuples(st.just({"type": "integer"}), st.integers(-(2**80), 2**80)),
    st.tuples(st.just({"type": "number"}), numbers),
    st.tuples(st.just({"type": "boolean"}), st.booleans()),
    st.tuples(st.just({"type": "null"}), st.none()),
    st.tuples(st.just({"type": "array"}), st.lists(json_values, max_size=3)),
    st.tuples(st.just({"type": "object"}), st.dictionaries(texts, json_values, max_size=3)),
    st.tuples(st.just({"anyOf": [{"type": "string"}, {"type": "null"}]}), texts | st.none()),
    st.tuples(st.just({"type": ["string", "integer", "boolean"]}), texts | st.integers() | st.booleans()),
    st.tuples(st.just({"anyOf": [{"type": "array"}, {"type": "string"}]}), texts | st.lists(json_values, max_size=3)),
    st.tuples(st.just({"enum": ["null", "12", "a\nb"]}), st.sampled_from(["null", "12", "a\nb"])),
    st.tuples(st.just({"enum": ["1", 1, None]}), st.sampled_from(["1", 1, None])),
    st.tuples(st.just({"const": "true"}), st.just("true")),
    st.tuples(st.just({"description": "Anything."}), json_values),
    # Where it does not fit the schema, but is no string for something else either.
    st.tuples(st.just({"type": "integer"}), json_values),
)
keys = st.from_regex(r"[A-Za-z_][\w.$@-]{0,8}", fullmatch=True) | st.sampled_from(["path", "a=b", "a>b", "x y", "é"])


@st.composite
def calls(draw: st.DrawFn) -> tuple[ToolSchema, dict[str, JsonValue]]:
    """A tool, and arguments for it; some of them of no parameter it has."""
    given_ = draw(st.dictionaries(keys, schemas_and_values, max_size=4))
    extra = draw(st.dictionaries(st.sampled_from(["extra", "more"]), json_values, max_size=1))
    parameters: Any = {"type": "object", "properties": {key: schema for key, (schema, _) in given_.items()}}
    name = draw(st.sampled_from(["write", "mcp__files__read", "a-b", "2nd"]))
    arguments = {key: value for key, (_, value) in given_.items()}
    return ToolSchema(name=name, description="", parameters=parameters), {**extra, **arguments}


def same(one: Any, other: Any) -> bool:
    """Whether they are the same JSON: 1, 1.0 and true are not."""
    return json.dumps(one) == json.dumps(other)


def cut(text: str, places: list[int]) -> list[str]:
    ends = sorted({place % (len(text) + 1) for place in places} | {len(text)})
    return [text[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def read(tool: ToolSchema, pieces: list[str], *, cut_off: bool = False) -> list[Piece]:
    """Read in pieces, and put together what of one kind stands together."""
    reader = TextDecoder({tool.name: tool})
    found: list[Piece] = []
    for piece in [*(each for text in pieces for each in reader.feed(text)), *reader.finish(cut_off=cut_off)]:
        last = found[-1] if found else None
        if isinstance(piece, Words) and isinstance(last, Words):
            found[-1] = Words(last.text + piece.text)
        elif isinstance(piece, Thinking) and isinstance(last, Thinking):
            found[-1] = Thinking(last.text + piece.text)
        else:
            found.append(piece)
    return found


@given(calls(), st.lists(st.integers(0, 10_000), max_size=12))
def test_a_call_that_is_written_is_read_as_it_was_also_in_pieces(
    call: tuple[ToolSchema, dict[str, JsonValue]], places: list[int]
) -> None:
    tool, arguments = call
    written = write_call(tool.name, arguments, properties_of(tool))
    for pieces in ([written], cut(written, places), list(written)):
        began, ended = read(tool, pieces)
        assert began == CallBegan(tool.name)
        assert isinstance(ended, CallEnded)
        assert ended.name == tool.name
        assert same(ended.arguments, arguments), written


@given(st.lists(calls(), min_size=1, max_size=3), st.lists(st.integers(0, 10_000), max_size=12))
def test_several_calls_with_words_around_them_are_read_one_by_one(
    several: list[tuple[ToolSchema, dict[str, JsonValue]]], places: list[int]
) -> None:
    tool = several[0][0]
    written = [write_call(tool.name, arguments, properties_of(tool)) for _, arguments in several]
    read_alone = [read(tool, [text])[-1] for text in written]
    text = "First this.\n\n" + "\n\nThen that.\n".join(written) + "\nThat was all."
    found = read(tool, cut(text, places))
    assert [piece for piece in found if isinstance(piece, CallEnded)] == read_alone
    assert [piece.text for piece in found if isinstance(piece, Words)] == [
        "First this.",
        *["Then that."] * (len(several) - 1),
        "That was all.",
    ]


@given(
    st.lists(st.sampled_from([*_PIECES, "<function=write>\n", "<parameter=n>", "I see.", "\n"]), max_size=14),
    st.lists(st.integers(0, 10_000), max_size=8),
    st.booleans(),
)
def test_where_a_reply_is_cut_into_pieces_changes_nothing(parts: list[str], places: list[int], cut_off: bool) -> None:
    parameters: Any = {"properties": {"path": {"type": "string"}, "n": {"type": "integer"}, "a=b": {}}}
    tool = ToolSchema(name="write", description="", parameters=parameters)
    text = "".join(parts)
    whole = read(tool, [text], cut_off=cut_off)
    assert read(tool, cut(text, places), cut_off=cut_off) == whole
    assert read(tool, list(text), cut_off=cut_off) == whole


@given(schemas_and_values)
def test_a_value_is_read_as_it_was_written(given_: tuple[dict[str, Any], Any]) -> None:
    schema, value = given_
    assert same(read_value(write_value(value, schema), schema), value)


@pytest.mark.parametrize(
    ("schema", "written", "value"),
    [
        ({"type": "string"}, "12", "12"),
        ({"type": "string"}, '"quoted"', '"quoted"'),
        ({"type": "string"}, "null", "null"),
        ({"type": "string"}, "\n    indented\n  less\n", "    indented\n  less"),
        ({"type": "string"}, " spaces ", " spaces "),
        ({"type": "integer"}, " 12\n", 12),
        ({"type": "integer"}, "twelve", "twelve"),
        ({"type": "integer"}, '"12"', "12"),
        ({"type": "number"}, "-1.5", -1.5),
        ({"type": "boolean"}, "True", True),
        ({"type": "boolean"}, "FALSE", False),
        ({"type": "boolean"}, "yes", "yes"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "None", None),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, '"hello"', '"hello"'),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, '"null"', "null"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "12", "12"),
        ({"type": "array"}, '\n["a",\n "b"]\n', ["a", "b"]),
        ({"type": "object"}, '{"a": {"b": null}}', {"a": {"b": None}}),
        ({"type": "object"}, "{'a': 1}", "{'a': 1}"),  # the tools floor reads that
        ({}, "12", 12),
        ({}, "True", "True"),
        ({}, "ls -la", "ls -la"),
        ({"anyOf": [{"type": "string"}, {}]}, "12", 12),
    ],
)
def test_a_value_is_read_by_what_the_schema_says(schema: dict[str, Any], written: str, value: JsonValue) -> None:
    assert same(read_value(written, schema), value)


def test_what_a_schema_says_nothing_of_may_be_anything() -> None:
    assert schema_types({"anyOf": [{"type": "string"}, {"description": "?"}]}) is None
    assert schema_types({"oneOf": [{"type": "string"}, {"const": 1}]}) == {"string", "integer", "number"}


def test_text_of_several_lines_stands_on_lines_of_its_own() -> None:
    written = write_call("write", {"path": "a.py", "text": "if x:\n    y()", "n": 2}, {"text": {"type": "string"}})
    assert written == (
        "<function=write>\n<parameter=path>a.py</parameter>\n"
        "<parameter=text>\nif x:\n    y()\n</parameter>\n<parameter=n>2</parameter>\n</function>"
    )
