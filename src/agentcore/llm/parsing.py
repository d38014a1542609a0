"""An answer as a value of a type, from any model.

The model is given one tool whose arguments are the type's fields (`how="tool"`, which every model that calls tools can do),
or is held to the type's schema by its provider (`how="response_schema"`, see `CallContext.response_schema`). Either way
what comes is checked, and an answer that does not fit is returned to the model once, to be corrected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from agentcore.errors import StructuredOutputError
from agentcore.llm.model import CallContext, Model, ResponseSchema
from agentcore.llm.reply import Reply
from agentcore.messages import Message, TextBlock, ToolCallBlock, ToolResultBlock, ToolSchema
from agentcore.schema import schema_of
from agentcore.usage import Usage

ValueT = TypeVar("ValueT", bound=BaseModel)

_TOOL: Final = "answer"
_CALL_IT: Final = (
    f"Give your answer by calling the tool {_TOOL!r} once. Its arguments are the answer; words besides it are not read."
)
_FENCED: Final = re.compile(r"```[a-zA-Z]*\s*\n(.*?)\n?\s*```", re.DOTALL)
_MOST_PROBLEMS: Final = 20


@dataclass(frozen=True, slots=True)
class Parsed(Generic[ValueT]):
    """A checked answer, and what it took to get it."""

    value: ValueT
    usage: Usage
    """Of both calls, where the first answer did not fit."""
    reply: Reply
    """The reply that the value was made of."""


async def parse(
    model: Model,
    messages: Sequence[Message],
    answer: type[ValueT],
    *,
    context: CallContext | None = None,
    how: Literal["tool", "response_schema"] = "tool",
) -> ValueT:
    """Ask for an answer of a type, and give it as a value of that type. `parse_reply` gives the usage as well.

    Args:
        model: Any model.
        messages: What it is asked.
        answer: A pydantic model; descriptions of its fields are sent to the language model.
        context: Goes to the model.
        how: "response_schema" for a model whose provider holds it to a schema; others ignore that and may answer in prose.

    Raises:
        StructuredOutputError: The answer does not fit, and neither did the corrected one.
        ModelError: There is no reply.
        SchemaError: The type can't be described to a language model.
    """
    return (await parse_reply(model, messages, answer, context=context, how=how)).value


async def parse_reply(
    model: Model,
    messages: Sequence[Message],
    answer: type[ValueT],
    *,
    context: CallContext | None = None,
    how: Literal["tool", "response_schema"] = "tool",
) -> Parsed[ValueT]:
    """Ask as `parse` does, and give the value with what it took to get it.

    Raises:
        StructuredOutputError: The answer does not fit, and neither did the corrected one.
        ModelError: There is no reply.
        SchemaError: The type can't be described to a language model.
    """
    schema = schema_of(answer)
    tools: tuple[ToolSchema, ...] = ()
    asked = list(messages)
    if how == "tool":
        tools = (ToolSchema(name=_TOOL, description=_description(answer), parameters=schema),)
        asked = _with_words(asked, _CALL_IT)
    else:
        context = replace(context or CallContext(), response_schema=ResponseSchema(_TOOL, schema))
    first = await model.complete(asked, tools, context=context)
    value = _read(first, answer)
    if not isinstance(value, str):
        return Parsed(value, first.usage, first)
    corrected = [*asked, *_told(first, value)]
    second = await model.complete(corrected, tools, context=context)
    usage = first.usage + second.usage
    value = _read(second, answer)
    if isinstance(value, str):
        raise StructuredOutputError(answer.__name__, value, _written(second), second.model, usage)
    return Parsed(value, usage, second)


def _description(answer: type[BaseModel]) -> str:
    # A model without a docstring of its own has none of its parents' either.
    return (answer.__doc__ or "").strip() or "The answer."


def _with_words(messages: list[Message], words: str) -> list[Message]:
    """Append the text to the last user message; some providers refuse two messages of one role in a row."""
    if not messages or messages[-1].role != "user":
        return [*messages, Message.user(words)]
    last = messages[-1]
    return [*messages[:-1], last.model_copy(update={"content": (*last.content, TextBlock(text=words))})]


def _read(reply: Reply, answer: type[ValueT]) -> ValueT | str:
    """Return the value, or a description of what is wrong with it."""
    calls = reply.message.tool_calls
    call = next((call for call in calls if call.name == _TOOL), calls[0] if calls else None)
    if call is not None and not isinstance(call.arguments, str):
        written = json.dumps(call.arguments)
    else:
        written = (reply.message.text if call is None else str(call.arguments)).strip()
        if not written:
            return "- There is no answer."
        # With words around it or without: one block is the answer.
        fenced = _FENCED.findall(written)
        if len(fenced) == 1 and not written.startswith(("{", "[")):
            (written,) = fenced
    try:
        # As JSON, not as the values it says: JSON has no dates, tuples and enums, and a strict type takes them only so.
        return answer.model_validate_json(written)
    except ValidationError as error:
        problems = [
            f"- {'.'.join(map(str, detail['loc'])) or 'The whole'}: {detail['msg']}"
            for detail in error.errors(include_url=False, include_context=False)
        ]
        more = [f"- and {len(problems) - _MOST_PROBLEMS} more"] if len(problems) > _MOST_PROBLEMS else []
        return "\n".join([*problems[:_MOST_PROBLEMS], *more])


def _told(reply: Reply, problems: str) -> list[Message]:
    """Go on from the reply with what is wrong with it."""
    words = f"The answer does not fit:\n{problems}\nGive the whole answer again, corrected."
    if reply.stop_reason == "length":
        words += " It was cut off at the longest output that is allowed: be shorter."
    calls = reply.message.tool_calls
    if calls:
        results = tuple(
            ToolResultBlock(call_id=call.id, name=call.name, content=(TextBlock(text=words),), is_error=True)
            for call in calls
        )
        return [reply.message, Message(role="tool", content=results)]
    exchange = [reply.message] if reply.message.text.strip() else [Message.assistant("(no words)")]
    return [*exchange, Message.user(words)]


def _written(reply: Reply) -> str:
    """Return the text of the model, for a person to read."""
    pieces = [
        block.text if isinstance(block, TextBlock) else _arguments(block)
        for block in reply.message.content
        if isinstance(block, TextBlock | ToolCallBlock)
    ]
    return "\n".join(pieces)


def _arguments(call: ToolCallBlock) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
