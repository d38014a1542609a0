"""Arguments that do not fit, explained to the model that gave them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import JsonValue, ValidationError

from agentcore.errors import ToolArgumentsError
from agentcore.tools.cut import cut

__all__ = ["misfit", "shown", "wanted"]

_GIVEN_LIMIT = 2_000
_VALUE_LIMIT = 200


def misfit(
    tool_name: str, error: ValidationError, arguments: Mapping[str, Any], parameters: Mapping[str, Any]
) -> ToolArgumentsError:
    """Say for each argument what is wrong with it, what was given and what is wanted."""
    problems: dict[str, None] = {}
    for detail in error.errors(include_url=False, include_context=False):
        where = _place(detail["loc"], arguments)
        given = detail["input"]
        match detail["type"]:
            case "missing":
                problem = f"{where} is missing."
            case "extra_forbidden":
                problem = f"{where} is not an argument of this tool."
            case _:
                problem = f"{where}: {detail['msg']}, not {shown(given, _VALUE_LIMIT)}."
        problems[problem] = None
    return ToolArgumentsError(tool_name, list(problems), shown(arguments), wanted(parameters))


def _place(loc: Sequence[int | str], arguments: Any) -> str:
    """Name the place in the arguments; what the location says besides (the branch of a union) means nothing to a model."""
    words = ""
    value = arguments
    for step in loc:
        if isinstance(value, dict) and (step in value or step == loc[-1]):
            words += f".{step}" if words else str(step)
            value = cast("dict[Any, Any]", value).get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(cast("list[Any]", value)):
            words += f"[{step}]"
            value = cast("list[Any]", value)[step]
    return f"`{words}`" if words else "The whole"


def shown(value: Any, limit: int = _GIVEN_LIMIT) -> str:
    """Give a value as JSON, cut to a length that a model can read."""
    return cut(json.dumps(value, ensure_ascii=False, default=str), limit)


def wanted(parameters: Mapping[str, Any]) -> str:
    """Say in one line what the arguments are to be."""
    properties: dict[str, dict[str, JsonValue]] = parameters.get("properties", {})
    required: Sequence[str] = parameters.get("required", ())
    parts = [
        f"{name} ({_kind(schema)}{', required' if name in required else ''})" for name, schema in properties.items()
    ]
    return "; ".join(parts) or "no arguments"


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(branch) for branch in schema["anyOf"]))
    kind = schema.get("type", "anything")
    if kind == "array" and schema.get("items"):
        return f"array of {_kind(schema['items'])}"
    return " or ".join(cast("list[str]", kind)) if isinstance(kind, list) else str(kind)
