"""JSON Schema in the plain dialect that every provider takes.

Providers differ in what they refuse: references, `oneOf` with a discriminator, `const`, arrays that do not say what is in
them. A plain schema has none of these and means the same. What helps a model to fill it in (descriptions, defaults,
limits, enums) is all still there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, cast
from urllib.parse import unquote

from pydantic import BaseModel, JsonValue, TypeAdapter
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from agentcore.errors import SchemaError

_Json = dict[str, Any]

_MOST_PARTS: Final = 20_000
"""The most parts that a schema may come to: parts that refer to each other multiply when they are spelled out."""

# Keywords that hold a schema, a list of schemas, or schemas by name. Everything else is data and is left alone.
_SCHEMA = frozenset(
    {"items", "additionalProperties", "unevaluatedProperties", "not", "contains", "propertyNames", "if", "then", "else"}
)
_SCHEMAS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
# Said by other means once references are gone, or said to validators and not to models.
_DROPPED = frozenset(
    {"$ref", "$defs", "definitions", "$schema", "$id", "$anchor", "$comment", "discriminator", "title"}
)


def plain_schema(schema: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Return the schema in the plain dialect; the one that was given stays as it is.

    A recursive part is spelled out once, titled, and where it comes back it is named instead.

    Raises:
        SchemaError: it is nested too deeply, or too large once nothing in it is a reference.
    """
    try:
        return _Walk(dict(schema)).plain()
    except RecursionError:
        raise SchemaError("The JSON Schema is nested too deeply to be told to a model.") from None


class _Walk:
    def __init__(self, root: _Json) -> None:
        self._root = root
        self._recursive: dict[str, bool] = {}
        self._parts = 0

    def plain(self) -> _Json:
        return self._visit(self._root, None)

    def _visit(self, node: _Json, shown: set[str] | None) -> _Json:
        """`shown` holds the recursive parts that are spelled out already, from where the first of them began."""
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise SchemaError("The JSON Schema is too large to be told to a model once its references are spelled out.")
        reference = node.get("$ref")
        if isinstance(reference, str):
            return self._follow(reference, node, shown)
        plain: _Json = {}
        for keyword, value in node.items():
            if keyword in _SCHEMA:
                plain[keyword] = self._maybe(value, shown)
            elif keyword in _SCHEMAS and isinstance(value, list):
                plain[keyword] = [self._maybe(branch, shown) for branch in cast("list[Any]", value)]
            elif keyword in _NAMED and isinstance(value, dict):
                plain[keyword] = {name: self._maybe(part, shown) for name, part in cast("_Json", value).items()}
            elif keyword not in _DROPPED:
                plain[keyword] = value
        return _simplified(plain)

    def _maybe(self, value: Any, shown: set[str] | None) -> Any:
        if isinstance(value, list):  # `items` of an older draft: one schema per place
            return [self._maybe(part, shown) for part in cast("list[Any]", value)]
        return self._visit(cast("_Json", value), shown) if isinstance(value, dict) else value

    def _follow(self, reference: str, node: _Json, shown: set[str] | None) -> _Json:
        beside = {keyword: value for keyword, value in node.items() if keyword != "$ref"}
        target = self._target(reference)
        if target is None:  # it points out of the document, or nowhere: anything goes there
            return self._visit(beside, shown)
        if not self._is_recursive(reference):
            return self._visit(target | beside, shown)
        name = unquote(reference.rsplit("/", 1)[-1]) if "/" in reference else "the whole"
        shown = set() if shown is None else shown
        if reference in shown:
            return _again(name, target, self._visit(beside, shown))
        shown.add(reference)
        return {"title": name} | self._visit(target | beside, shown)

    def _target(self, reference: str) -> _Json | None:
        if not reference.startswith("#"):
            return None
        found: Any = self._root
        for step in reference[1:].split("/")[1:]:
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or key not in found:
                return None
            found = cast("_Json", found)[key]
        return cast("_Json", found) if isinstance(found, dict) else None

    def _is_recursive(self, reference: str) -> bool:
        if reference not in self._recursive:
            reached: set[str] = set()
            waiting = [reference]
            while waiting:
                new = set(_references(self._target(waiting.pop()))) - reached
                reached |= new
                waiting.extend(new)
            self._recursive[reference] = reference in reached
        return self._recursive[reference]


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        reference = cast("_Json", value).get("$ref")
        if isinstance(reference, str):
            yield reference
        for part in cast("_Json", value).values():
            yield from _references(part)
    elif isinstance(value, list):
        for part in cast("list[Any]", value):
            yield from _references(part)


def _again(name: str, target: _Json, beside: _Json) -> _Json:
    kind = {"type": target["type"]} if "type" in target else {}
    words = [beside.get("description"), f"{name} again, of the shape that is given under this title."]
    return kind | beside | {"description": " ".join(filter(None, words))}


def _simplified(node: _Json) -> _Json:
    if "oneOf" in node and "anyOf" not in node:
        node["anyOf"] = node.pop("oneOf")
    if "allOf" in node:
        node = _all_in_one(node)
    if "const" in node:
        node.setdefault("enum", [node["const"]])
        del node["const"]
    if "anyOf" in node:
        node["anyOf"] = list(_flat(node["anyOf"]))
        if len(node["anyOf"]) == 1 and isinstance(node["anyOf"][0], dict):
            (only,) = node.pop("anyOf")
            node = only | node
    if node.get("type") == "array" or "prefixItems" in node:
        _say_the_items(node)
    return node


def _flat(branches: list[Any]) -> Iterator[Any]:
    """Take the branches of a union that is itself a bare branch up into the outer one."""
    for branch in branches:
        if isinstance(branch, dict) and set(cast("_Json", branch)) == {"anyOf"}:
            yield from cast("_Json", branch)["anyOf"]
        else:
            yield branch


def _all_in_one(node: _Json) -> _Json:
    """Merge the parts of an `allOf`, or leave it where they disagree."""
    merged = {keyword: value for keyword, value in node.items() if keyword != "allOf"}
    for part in node["allOf"]:
        if not isinstance(part, dict):
            return node
        for keyword, value in cast("_Json", part).items():
            if keyword == "properties" and not _disagree(merged.get("properties", {}), value):
                merged["properties"] = merged.get("properties", {}) | value
            elif keyword == "required":
                merged["required"] = list(dict.fromkeys([*merged.get("required", ()), *value]))
            elif keyword in {"description", "title"}:
                merged.setdefault(keyword, value)
            elif merged.setdefault(keyword, value) != value:
                return node
    return merged


def _disagree(one: _Json, other: _Json) -> bool:
    return any(name in one and one[name] != part for name, part in other.items())


def _say_the_items(node: _Json) -> None:
    """Add the `items` that OpenAI demands to an array, also to a tuple: it has nothing beyond its places, so the meaning is the same."""
    if isinstance(node.get("items"), list):
        node["prefixItems"] = node.pop("items")
    places: list[Any] = node.get("prefixItems", [])
    if isinstance(node.get("items"), dict):
        return
    if node.pop("items", True) is False:
        node["maxItems"] = min(node.get("maxItems", len(places)), len(places))
    different = [part for number, part in enumerate(places) if part not in places[:number]]
    node["items"] = {} if not different else different[0] if len(different) == 1 else {"anyOf": different}


class _Generator(GenerateJsonSchema):
    # A default that JSON can't say is still a default; the model is only told that the field may be left out.
    ignored_warning_kinds: AbstractSet[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # pyright: ignore[reportIncompatibleVariableOverride] pydantic declares a set and only reads it


def json_schema_of(model: type[BaseModel]) -> dict[str, JsonValue]:
    """Return the JSON Schema of what the model is made from, with references, as data is checked against it.

    Raises:
        SchemaError: a field has a type that JSON Schema can't say.
    """
    try:
        return model.model_json_schema(schema_generator=_Generator)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        reason = str(error).split("\n", 1)[0]
        raise SchemaError(f"The model {model.__qualname__!r} can't be said in JSON Schema: {reason}") from error


def json_schema_of_type(annotation: Any) -> dict[str, JsonValue]:
    """Return the JSON Schema of a type's values, with references: of any type that pydantic knows.

    Raises:
        SchemaError: it is not a type, or one that JSON Schema can't say.
    """
    try:
        return TypeAdapter[Any](annotation).json_schema(schema_generator=_Generator)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        reason = str(error).split("\n", 1)[0].split(". ", 1)[0].removesuffix(".")
        name = getattr(annotation, "__qualname__", repr(annotation))
        raise SchemaError(f"The type {name} can't be said in JSON Schema: {reason}.") from error


def schema_of(model: type[BaseModel]) -> dict[str, JsonValue]:
    """Return the plain JSON Schema of what the model is made from: an object, its fields by the names they have in JSON.

    Raises:
        SchemaError: a field has a type that JSON Schema can't say, or the model is not an object.
    """
    schema = plain_schema(json_schema_of(model))
    if schema.get("type") != "object":
        raise SchemaError(
            f"The model {model.__qualname__!r} is not an object in JSON, and arguments are one: give it fields."
        )
    schema.setdefault("properties", {})
    return schema
