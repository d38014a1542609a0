"""Prompt and messages for models that call tools in text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, cast

from pydantic import JsonValue

from agentcore.llm.caches import IdentityTupleCache
from agentcore.llm.text_calls.values import write_value
from agentcore.messages import Block, Message, TextBlock, ToolCallBlock, ToolResultBlock, ToolSchema

_UNKNOWN: Final = ToolSchema.model_construct(name="", description="", parameters={})
_kept = IdentityTupleCache()

Properties = Mapping[str, Mapping[str, Any]]
"""The schemas of a tool's parameters, by name."""


def properties_of(tool: ToolSchema | None) -> Properties:
    """Return the schemas of a tool's parameters; of an unknown tool none."""
    properties = cast("dict[str, Any]", tool.parameters.get("properties", {})) if tool is not None else {}
    # JSON Schema has `true` for anything goes.
    return {name: cast("dict[str, Any]", one) if isinstance(one, dict) else {} for name, one in properties.items()}


def write_call(name: str, arguments: Mapping[str, JsonValue] | str, properties: Properties) -> str:
    """Write a call; one that could not be read is written as it came."""
    if isinstance(arguments, str):
        written = arguments.strip()
        if not written.startswith("<function="):
            written = f"<function={name}>\n{written}"
        return written if written.endswith("</function>") else f"{written}\n</function>"
    lines = [
        f"<parameter={key}>{write_value(value, properties.get(key, {}))}</parameter>"
        for key, value in arguments.items()
    ]
    return "\n".join([f"<function={name}>", *lines, "</function>"])


def write_result(name: str, text: str, *, is_error: bool = False) -> str:
    """Write what a tool answered."""
    return f"{'Error' if is_error else 'Result'} of {name}:\n{text or '(nothing)'}"


def write_messages(messages: Sequence[Message], tools: Mapping[str, ToolSchema], prompt: str = "") -> list[Message]:
    """Write calls into the words of who made them, results into messages of the user, and `prompt` into the system's.

    Results and what the user says after them become one message: many of these models want the roles to take turns.
    """
    written: list[Message] = []
    results: list[Message] = []
    for number, message in enumerate(messages):
        if message.role == "tool":
            results.append(message)
            continue
        if results:
            answered = (*results, message) if message.role == "user" else tuple(results)
            written.append(_kept(answered, partial(_as_user, answered)))
            results = []
            if message.role == "user":
                continue
        if message.role == "system" and number == 0 and prompt:
            written.append(_kept((message, *tools.values()), partial(_with_prompt, message, prompt)))
            prompt = ""
        elif calls := message.tool_calls:
            schemas = tuple(tools.get(call.name, _UNKNOWN) for call in calls)
            written.append(_kept((message, *schemas), partial(_said, message, tools)))
        else:
            written.append(message)
    if results:
        answered = tuple(results)
        written.append(_kept(answered, partial(_as_user, answered)))
    if prompt:
        written.insert(0, _kept(tuple(tools.values()), partial(Message.system, prompt)))
    return written


def _with_prompt(message: Message, prompt: str) -> Message:
    """Put it at the end, where it leaves what comes before as it is."""
    return message.model_copy(update={"content": tuple(_joined([*message.content, TextBlock(text=prompt)]))})


def _as_user(messages: Sequence[Message]) -> Message:
    return Message.user(
        *_joined(piece for message in messages for block in message.content for piece in _result(block))
    )


def _said(message: Message, tools: Mapping[str, ToolSchema]) -> Message:
    blocks = [
        TextBlock(text=write_call(block.name, block.arguments, properties_of(tools.get(block.name))))
        if isinstance(block, ToolCallBlock)
        else block
        for block in message.content
    ]
    return message.model_copy(update={"content": tuple(_joined(blocks))})


def _result(block: Block) -> Iterator[Block]:
    if not isinstance(block, ToolResultBlock):
        yield block
        return
    yield TextBlock(text=write_result(block.name, block.text, is_error=block.is_error))
    yield from (part for part in block.content if not isinstance(part, TextBlock))


def _joined(blocks: Iterable[Block]) -> list[Block]:
    """Put words that stand next to each other into one block, a line apart."""
    joined: list[Block] = []
    for block in blocks:
        if isinstance(block, TextBlock) and joined and isinstance(joined[-1], TextBlock):
            joined[-1] = TextBlock(text=f"{joined[-1].text}\n\n{block.text}")
        else:
            joined.append(block)
    return joined


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
    """Describe the tools and how to call them, with an example."""
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
    sentence = f"{name} ({_kind(schema)}, {'required' if required else 'optional'})"
    if description := str(schema.get("description", "")).strip():
        sentence += f": {' '.join(description.split())}"
    if (allowed := _allowed(schema)) is not None:
        sentence += f" Allowed values: {', '.join(json.dumps(value, ensure_ascii=False) for value in allowed)}."
    if schema.get("default") is not None:
        sentence += f" Default: {json.dumps(schema['default'], ensure_ascii=False)}."
    if "properties" in schema or isinstance(schema.get("items"), Mapping) or _is_composed(schema):
        # A list or an object is written as JSON: what it is made of is said best in the words of JSON.
        shape = {key: value for key, value in schema.items() if key not in {"description", "default"}}
        sentence += f" JSON Schema: {json.dumps(shape, ensure_ascii=False)}"
    return sentence


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
