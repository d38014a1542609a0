"""What a model is told that has to call tools in words: the tools, the form, and an example with these very tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from pydantic import JsonValue

from agentcore.llm.text_calls.format import properties_of, write_call, write_result
from agentcore.messages import ToolSchema

__all__ = ["tools_prompt"]

_RULES: Final = """\
To use a tool, write a call in exactly this form:

<function=NAME>
<parameter=FIRST>value</parameter>
<parameter=SECOND>
a value of several lines,
    with its indentation
</parameter>
</function>

- Begin with <function= and end with </function>. Give every required parameter.
- Words come before the call, not after it: a call ends your message. Its result is in the next message.
- Make one call at a time. Never write a result yourself.
- Write text as it is, without quotes and escapes, and everything else (numbers, true, false, null, lists, objects) as JSON.
- Where a value holds one of these tags itself, write the tag's < as &lt;.
- A message without a call ends your turn: write one only when there is nothing left to do."""
_PLAIN_TOOLS: Final = frozenset({"finish", "think"})


def tools_prompt(tools: Sequence[ToolSchema]) -> str:
    """Tell of the tools, how they are called, and show it."""
    blocks = "\n\n".join(_tool(number, tool) for number, tool in enumerate(tools, 1))
    return f"# Tools\n\nYou can use these tools:\n\n{blocks}\n\n# Calls\n\n{_RULES}\n\n{_example(tools)}"


def _tool(number: int, tool: ToolSchema) -> str:
    lines = [f"## Tool {number}: {tool.name}", tool.description.strip()]
    properties = properties_of(tool)
    required: Any = tool.parameters.get("required", [])
    if not properties:
        lines.append("It has no parameters.")
    else:
        lines.append("Parameters:")
        lines += [
            f"  {position}. {_parameter(name, schema, required=name in required)}"
            for position, (name, schema) in enumerate(properties.items(), 1)
        ]
    return "\n".join(line for line in lines if line)


def _parameter(name: str, schema: Mapping[str, Any], *, required: bool) -> str:
    said = f"{name} ({_kind(schema)}, {'required' if required else 'optional'})"
    if description := str(schema.get("description", "")).strip():
        said += f": {' '.join(description.split())}"
    if (allowed := _allowed(schema)) is not None:
        said += f" Allowed values: {', '.join(json.dumps(value, ensure_ascii=False) for value in allowed)}."
    if schema.get("default") is not None:
        said += f" Default: {json.dumps(schema['default'], ensure_ascii=False)}."
    if "properties" in schema or isinstance(schema.get("items"), Mapping) or _is_composed(schema):
        # A list or an object is written as JSON: what it is made of is said best in the words of JSON.
        shape = {key: value for key, value in schema.items() if key not in {"description", "default"}}
        said += f" JSON Schema: {json.dumps(shape, ensure_ascii=False)}"
    return said


def _is_composed(schema: Mapping[str, Any]) -> bool:
    branches: Any = schema.get("anyOf", ())
    return any(isinstance(branch, Mapping) and len(cast("Mapping[str, Any]", branch)) > 1 for branch in branches)


def _allowed(schema: Mapping[str, Any]) -> list[Any] | None:
    if isinstance(schema.get("enum"), list):
        return schema["enum"]
    return [schema["const"]] if "const" in schema else None


def _kind(schema: Mapping[str, Any]) -> str:
    kind: Any = schema.get("type")
    if isinstance(kind, list):
        return " or ".join(cast("list[str]", kind))
    if isinstance(kind, str):
        return kind
    branches: Any = schema.get("anyOf", ())
    kinds = [_kind(cast("Mapping[str, Any]", branch)) for branch in branches if isinstance(branch, Mapping)]
    return " or ".join(dict.fromkeys(kinds)) or "any"


def _example(tools: Sequence[ToolSchema]) -> str:
    """Play a short conversation with the tools there are."""
    shown = sorted(tools, key=lambda tool: (tool.name in _PLAIN_TOOLS, not properties_of(tool)))[:2]
    turns = ["# Example", "User: Please do what I need with these tools."]
    for position, tool in enumerate(shown):
        words = "First I use" if position == 0 else "Now I use"
        turns += [
            f"You: {words} {tool.name}.\n\n{write_call(tool.name, _arguments(tool), properties_of(tool))}",
            f"User: {write_result(tool.name, '(what the tool answers)')}",
        ]
    turns.append("You: It is done, and this is what I found.")
    return "\n\n".join([*turns, "(The example ends here. What follows is real.)"])


def _arguments(tool: ToolSchema) -> dict[str, JsonValue]:
    properties = properties_of(tool)
    required: Any = tool.parameters.get("required", [])
    names = [name for name in properties if name in required] or list(properties)[:1]
    return {name: _sample(name, properties[name]) for name in names}


def _sample(name: str, schema: Mapping[str, Any]) -> JsonValue:
    """Make a value that fits."""
    given = [*(_allowed(schema) or ()), schema.get("default"), *schema.get("examples", ())]
    for value in given:
        if value is not None:
            return value
    if schema.get("anyOf"):
        return _sample(name, schema["anyOf"][0])
    match _kind(schema).split(" ", 1)[0]:
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "null":
            return None
        case "array":
            return [_sample(name, schema["items"])] if schema.get("items") else []
        case "object":
            inner: dict[str, Any] = schema.get("properties", {})
            return {key: _sample(key, inner[key]) for key in schema.get("required", ()) if key in inner}
        case _:
            return f"the {name.replace('_', ' ')}"
