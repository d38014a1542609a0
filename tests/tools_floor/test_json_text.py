"""JSON as models write it."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.tools.json_text import read_object

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
objects = st.dictionaries(st.text(), json_values, max_size=4)


@given(objects)
def test_what_is_json_is_read_as_it_is(value: dict[str, Any]) -> None:
    assert read_object(json.dumps(value)) == value
    assert read_object(json.dumps(value, ensure_ascii=False, indent=2)) == value


@given(objects)
def test_what_broke_off_is_not_half_read(value: dict[str, Any]) -> None:
    text = json.dumps({"command": "x", **value})
    for end in range(1, len(text)):
        with pytest.raises(ValueError, match=r"."):
            read_object(text[:end])


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_anything_else_is_one_kind_of_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(read_object(text), dict)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        ("  \n", {}),
        ("null", {}),
        ("{}", {}),
        ('{"a": "one\ntwo\tthree\x1b[0m"}', {"a": "one\ntwo\tthree\x1b[0m"}),
        ('{"a": 1}</parameter>\n</function>', {"a": 1}),
        ('{"a": {"b": "}"}}}}', {"a": {"b": "}"}}),
        ('{"a": 1} {"a": 2}', {"a": 1}),
        ('{}{"a": 1}', {"a": 1}),
        ('{"a": \\n[1, 2]\\n\\n}', {"a": [1, 2]}),
        ('{"a": "keeps \\\\n and \\n", \\n "b": 1}', {"a": "keeps \\n and \n", "b": 1}),
        ('"{\\"a\\": \\"x\\"}"', {"a": "x"}),
        ('["{\\"a\\":", " \\"x\\"}"]', {"a": "x"}),
        ('[{"a": 1}]', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ("\ufeff" + '{"a": 1}', {"a": 1}),
        ("{'a': 'it', 'b': True, 'c': None, 'd': (1, 2)}", {"a": "it", "b": True, "c": None, "d": [1, 2]}),
        ('{"a": NaN, "b": -Infinity}', {"a": "NaN", "b": "-Infinity"}),
        ('{"a": "\\ud83d\\ude00 \\ud83d"}', {"a": "\U0001f600 \ufffd"}),
        ('{"a": 1, "a": 2}', {"a": 2}),
    ],
)
def test_what_is_beyond_doubt_is_understood(text: str, value: dict[str, Any]) -> None:
    read = read_object(text)
    assert read == value
    json.dumps(read, ensure_ascii=False).encode()  # and can be written to a log


@pytest.mark.parametrize(
    "text",
    [
        '{"command": "rm -rf /tmp/x',
        '{"command": "ls"',
        "[1, 2]",
        '["a", "b"]',
        "3",
        '"ls -la"',
        "ls -la",
        "{'a': {1, 2}}",
        "{'a': open('/etc/passwd')}",
        "[" * 100_000,
        '{"a": ' * 100_000,
        '{"a": ' + "9" * 10_000 + "}",
    ],
    ids=lambda text: repr(text)[:30],
)
def test_what_is_in_doubt_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_object(text)
