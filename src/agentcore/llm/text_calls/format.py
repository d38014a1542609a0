"""Messages with calls and results in them, as messages that are all words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, cast

from pydantic import JsonValue

from agentcore.llm.text_calls.kept import Kept
from agentcore.llm.text_calls.values import write_value
from agentcore.messages import Block, Message, TextBlock, ToolCallBlock, ToolResultBlock, ToolSchema

__all__ = ["Properties", "properties_of", "write_call", "write_messages", "write_result"]

_UNKNOWN: Final = ToolSchema.model_construct(name="", description="", parameters={})
_kept = Kept()

Properties = Mapping[str, Mapping[str, Any]]
"""The schemas of a tool's parameters, by name."""


def properties_of(tool: ToolSchema | None) -> Properties:
    """Give the schemas of a tool's parameters; of an unknown tool none."""
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
