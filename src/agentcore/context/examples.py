"""Examples of calls, made from the schemas of the tools that are there: small models call by what they see, not by what they read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from agentcore.errors import SchemaError
from agentcore.messages import ToolSchema
from agentcore.schema import schema_errors

_MOST_TOOLS: Final = 20
_LONGEST: Final = 300
_DEEPEST: Final = 6

_TEXTS: Final = {
    "path": "src/main.py",
    "file": "src/main.py",
    "folder": "src",
    "command": "ls",
    "pattern": "main",
    "query": "main",
    "url": "https://example.com",
    "message": "Done.",
    "thought": "First I look at the tests.",
}
"""The text of an example, by a part of its name."""


def example_calls(tools: Iterable[ToolSchema]) -> str | None:
    """Return a section with an example of a call for each tool; None where there is none.

    A tool is left out if the arguments that are made up do not fit its schema. The first call imports what checks them
    and takes a while: make it in a worker thread.
    """
    lines: list[str] = []
    for tool in tools:
        example = example_arguments(tool.parameters)
        if example is not None and len(line := f"- {tool.name}: {json.dumps(example, ensure_ascii=False)}") <= _LONGEST:
            lines.append(line)
        if len(lines) == _MOST_TOOLS:
            break
    if not lines:
        return None
    return "\n".join(["Examples of arguments, to show their form. Make up none of the values in a real call.", *lines])


def example_arguments(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return arguments that fit the schema of a tool: those that are required; None where none were found."""
    try:
        made = _example("arguments", schema, schema)
        if isinstance(made, dict) and not schema_errors(schema, cast("dict[str, Any]", made)):
            return cast("dict[str, Any]", made)
    except (SchemaError, LookupError, TypeError, ValueError):  # a server's schema may hold anything
        pass
    return None


def _example(name: str, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> Any:
    if depth > _DEEPEST:
        return None
    known = [schema.get("const"), schema.get("default"), *(schema.get("examples") or ()), *(schema.get("enum") or ())]
    if (value := next((each for each in known if each is not None), None)) is not None:
        return value
    other = next((schema[key][0] for key in ("anyOf", "oneOf", "allOf") if schema.get(key)), None)
    if isinstance(schema.get("$ref"), str):
        other = _resolve(schema["$ref"], root)
    if other is not None:
        return _example(name, other, root, depth + 1)
    match schema.get("type", "object"):
        case "string":
            return _text(name, schema)
        case "integer" | "number":
            return _number(schema)
        case "array":
            item = _example(name.removesuffix("s"), schema.get("items") or {}, root, depth + 1)
            return [item] * max(1, schema.get("minItems", 1))
        case "object":
            properties: Mapping[str, Any] = schema.get("properties") or {}
            required: Iterable[str] = schema.get("required") or ()
            return {each: _example(each, properties.get(each) or {}, root, depth + 1) for each in required}
        case kind:
            return True if kind == "boolean" else None


def _text(name: str, schema: Mapping[str, Any]) -> str:
    text = next((text for part, text in _TEXTS.items() if part in name.lower()), "text")
    text = text.ljust(int(schema.get("minLength", 0)), "x")
    return text[: int(schema.get("maxLength", len(text)))]


def _number(schema: Mapping[str, Any]) -> Any:
    number = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    number = number + 1 if "exclusiveMinimum" in schema or number == 0 else number
    return min(number, schema.get("maximum", number))


def _resolve(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    found = root
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return found
