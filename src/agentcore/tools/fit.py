"""Arguments brought into the form that a schema wants, where there is no doubt about what was meant.

What fits already is never changed, and a string stays a string wherever the schema takes one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from pydantic import JsonValue

from agentcore.tools.json_text import decode_prefix

__all__ = ["fit", "rename_keys"]

Schema = Mapping[str, Any]

_INTEGER: Final = re.compile(r"[+-]?\d{1,100}(\.0+)?")
_NUMBER: Final = re.compile(r"[+-]?\d{1,100}(\.\d{0,100})?([eE][+-]?\d{1,3})?")
_BOOLEANS: Final = {"true": True, "false": False}
_NULLS: Final = frozenset({"", "null", "none"})


def rename_keys(arguments: Mapping[str, JsonValue], schema: Schema) -> dict[str, JsonValue]:
    """Give arguments the names of the schema where they differ in case, hyphens and underscores only (`filePath`)."""
    known: Mapping[str, Any] = schema.get("properties", {})
    missing = [name for name in known if name not in arguments]
    renamed: dict[str, JsonValue] = {}
    for name, value in arguments.items():
        meant = [other for other in missing if _folded(other) == _folded(name)] if name not in known else []
        renamed[meant[0] if len(meant) == 1 and meant[0] not in renamed else name] = value
    return renamed


def fit(value: JsonValue, schema: Schema) -> JsonValue:
    """Bring a value into the form that the schema wants, as far as that is beyond doubt."""
    types = _types(schema)
    if isinstance(value, str):
        value = _from_text(value, schema, types)
    elif types is not None and types <= {"string", "null"} and value is not None:
        value = _to_text(value)
    if isinstance(value, dict):
        return _fit_object(value, schema)
    if isinstance(value, list):
        return _fit_array(value, schema)
    return value


def _fit_object(value: dict[str, JsonValue], schema: Schema) -> JsonValue:
    branch = _branch(schema, "object", value)
    if branch is None:
        return value
    known: Mapping[str, Schema] = branch.get("properties", {})
    others: Schema | bool = branch.get("additionalProperties", True)
    fitted: dict[str, JsonValue] = {}
    for name, part in value.items():
        of_part = known.get(name, others)
        if part is None and not _nullable(of_part):
            continue  # a model's way of leaving it out
        fitted[name] = part if isinstance(of_part, bool) else fit(part, of_part)
    return fitted


def _fit_array(value: list[JsonValue], schema: Schema) -> JsonValue:
    branch = _branch(schema, "array", value)
    if branch is None:
        return value
    places: list[Schema] = branch.get("prefixItems", [])
    items: Schema = branch["items"] if isinstance(branch.get("items"), dict) else {}
    return [fit(part, places[number] if number < len(places) else items) for number, part in enumerate(value)]


def _branches(schema: Schema) -> Iterable[Schema]:
    if "anyOf" not in schema:
        yield schema
    for branch in schema.get("anyOf", ()):
        yield from _branches(branch)


def _branch(schema: Schema, kind: str, value: Any) -> Schema | None:
    """Find the one branch of a union that an object or array can be meant for, by its fixed properties if need be."""
    found = [branch for branch in _branches(schema) if kind in (_types(branch) or ())]
    if len(found) > 1 and isinstance(value, dict):
        found = [branch for branch in found if _tags_match(branch, cast("dict[str, Any]", value))]
    return found[0] if len(found) == 1 else None


def _tags_match(branch: Schema, value: Mapping[str, Any]) -> bool:
    properties: Mapping[str, Schema] = branch.get("properties", {})
    tags = {name: part["enum"] for name, part in properties.items() if "enum" in part}
    return bool(tags) and all(value[name] in allowed for name, allowed in tags.items() if name in value)


def _types(schema: Schema) -> set[str] | None:
    """Give the JSON types that the schema takes, or None where it does not say."""
    if "anyOf" in schema:
        types: set[str] = set()
        for branch in schema["anyOf"]:
            of_branch = _types(branch)
            if of_branch is None:
                return None
            types |= of_branch
        return types
    kind = schema.get("type")
    if kind is None:
        return None
    return {kind} if isinstance(kind, str) else set(kind)


def _nullable(schema: Schema | bool) -> bool:
    if isinstance(schema, bool):
        return schema
    types = _types(schema)
    return types is None or "null" in types


def _from_text(text: str, schema: Schema, types: set[str] | None) -> JsonValue:
    if types is None or "string" in types:
        return _from_choices(text, schema)
    word = text.strip()
    if types & {"object", "array"} and word[:1] in {"{", "["}:
        return _decoded(word, types, text)
    if "boolean" in types and word.lower() in _BOOLEANS:
        return _BOOLEANS[word.lower()]
    if types & {"integer", "number"} and _INTEGER.fullmatch(word):
        return int(word.split(".")[0])
    if "number" in types and _NUMBER.fullmatch(word):
        return float(word)
    return None if "null" in types and word.lower() in _NULLS else text


def _decoded(word: str, types: set[str], text: str) -> JsonValue:
    try:
        value, _ = decode_prefix(word)
    except ValueError:
        return text
    kind = "object" if isinstance(value, dict) else "array" if isinstance(value, list) else None
    return value if kind in types else text


def _from_choices(text: str, schema: Schema) -> JsonValue:
    """Find the choice that was meant where there are choices and it differs in case, space or hyphens only."""
    choices: list[Any] = []
    for branch in _branches(schema):
        if "enum" not in branch and branch.get("type") != "null":
            return text
        choices += branch.get("enum", ())
    if text in choices:
        return text
    meant = [choice for choice in choices if isinstance(choice, str) and _folded(choice) == _folded(text)]
    return meant[0] if len(meant) == 1 else text


def _to_text(value: JsonValue) -> JsonValue:
    """Make text of the pieces of a text, or of a number; an object may have been meant in more than one way."""
    if isinstance(value, list) and value and all(isinstance(piece, str) for piece in value):
        return "".join(cast("list[str]", value))
    return value if isinstance(value, dict | list) else json.dumps(value)


def _folded(name: str) -> str:
    return re.sub(r"[-_\s]", "", name).casefold()
