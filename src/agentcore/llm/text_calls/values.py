"""One argument as text: written so that it can be parsed back with its schema.

A string is written as it is where the schema wants a string, anything else as JSON. Where both may come, a string that would
be taken for something else is written as JSON too, in quotes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic import JsonValue

_TAG: Final = r"/?(?:function|parameter|tool_call|think)\b[^<>&\n]*>"
_PLAIN: Final = re.compile(rf"&(?=(?:amp;)*lt;{_TAG})|<(?={_TAG})")
_ESCAPED: Final = re.compile(rf"&((?:amp;)*)lt;(?={_TAG})")

_STRING: Final = frozenset({"string"})
_WORDS: Final[dict[str, tuple[str, JsonValue]]] = {
    "true": ("boolean", True),
    "false": ("boolean", False),
    "none": ("null", None),
    "null": ("null", None),
}
"""Spellings of literals by models that JSON spells in one way only."""


def write_value(value: JsonValue, schema: Mapping[str, Any]) -> str:
    """Write a value that `read_value` reads as the same one, if it is of a type that the schema allows."""
    if isinstance(value, str):
        written = _with_lines(_PLAIN.sub(lambda found: "&amp;" if found.group() == "&" else "&lt;", value))
        if read_value(written, schema) == value:
            return written
    written = json.dumps(value, ensure_ascii=False)
    # In JSON it can only stand in a string.
    return written.replace("<", "\\u003c") if _PLAIN.search(written) else written


def _with_lines(text: str) -> str:
    return f"\n{text}\n" if "\n" in text else text


def read_value(written: str, schema: Mapping[str, Any]) -> JsonValue:
    """Read what was written for an argument; what does not fit its schema is read as what it looks like."""
    return _read(written.removeprefix("\n").removesuffix("\n"), schema_types(schema))


def _read(text: str, types: frozenset[str] | None) -> JsonValue:
    if types == _STRING:
        return _unescaped(text)
    try:
        value: JsonValue = json.loads(text, strict=False, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        kind, value = _WORDS.get(text.strip().casefold(), ("", None))
        return value if types is not None and kind in types else _unescaped(text)
    if isinstance(value, str):
        # Quotes may be a part of the string. They are not where it would be something else without them.
        own = types is not None and "string" in types and _read(value, types) == value
        return _unescaped(text) if own else value
    if types is None or _type_of(value) & types or "string" not in types:
        return value
    return _unescaped(text)


def _no_constant(name: str) -> None:
    raise ValueError(f"JSON has no {name}")


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"&{found.group(1)[4:]}lt;" if found.group(1) else "<", text)


def _type_of(value: JsonValue) -> frozenset[str]:
    match value:
        case None:
            return frozenset({"null"})
        case bool():
            return frozenset({"boolean"})
        case int():
            return frozenset({"integer", "number"})
        case float():
            return frozenset({"integer", "number"} if value.is_integer() else {"number"})
        case str():
            return _STRING
        case list():
            return frozenset({"array"})
        case dict():
            return frozenset({"object"})


def schema_types(schema: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the types of JSON that a schema allows; None where it says nothing of them."""
    kinds: Any = schema.get("type")
    if isinstance(kinds, str):
        return frozenset({kinds})
    if isinstance(kinds, list):
        return frozenset(cast("list[str]", kinds))
    if "const" in schema:
        return _type_of(schema["const"])
    if isinstance(schema.get("enum"), list):
        return frozenset[str]().union(*(_type_of(value) for value in schema["enum"]))
    branches = schema.get("anyOf") or schema.get("oneOf")
    if not isinstance(branches, list):
        return None
    allowed: set[str] = set()
    for branch in cast("list[Any]", branches):
        of_branch = schema_types(cast("Mapping[str, Any]", branch)) if isinstance(branch, Mapping) else None
        if of_branch is None:
            return None
        allowed |= of_branch
    return frozenset(allowed)
