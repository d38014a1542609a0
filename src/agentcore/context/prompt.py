"""The system prompt, and the instructions in it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeAlias, cast

from typing_extensions import TypeVar

from agentcore._text import Mask
from agentcore._threads import Threads
from agentcore.context.sections import DEFAULT_PROMPT
from agentcore.record import ConversationState
from agentcore.workspace import Workspace

DepsT_co = TypeVar("DepsT_co", covariant=True, default=Any)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionsContext(Generic[DepsT_co]):
    """Handed to a function that writes instructions, where it takes an argument."""

    deps: DepsT_co = field(repr=False)
    """The value that the program passed as `Conversation(deps=...)`."""
    state: ConversationState
    """The conversation up to now: to be read, and not to be changed."""
    workspace: Workspace
    """Where the agent works."""


_Text: TypeAlias = str | None
Instructions: TypeAlias = (
    str | Callable[[], _Text | Awaitable[_Text]] | Callable[[InstructionsContext[Any]], _Text | Awaitable[_Text]]
)
"""Text, or a function that returns it, async or not, with an `InstructionsContext` as its argument or with none."""

_THREADS: Final = Threads("instructions", 8)


async def write_instructions(instructions: Instructions | None, context: InstructionsContext[Any]) -> str | None:
    """Return the text, or what the function returns; one that is not async is called in a worker thread.

    Raises:
        TypeError: It returned something else than text or None.
    """
    if instructions is None or isinstance(instructions, str):
        return instructions
    function = cast("Callable[..., Any]", instructions)
    arguments = (context,) if _takes_an_argument(function) else ()
    text: object = await _THREADS.call(function, *arguments)
    if text is not None and not isinstance(text, str):
        raise TypeError(f"The function passed as `instructions` returned {text!r}: it has to return text, or None.")
    return text


def _takes_an_argument(function: Callable[..., Any]) -> bool:
    # One with a default is the function's own, as in `lambda name=name: ...`.
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return any(each.kind in places and each.default is inspect.Parameter.empty for each in parameters)


_MOST_INSTRUCTIONS = 10_000
_MOST_NAME = 100


def system_prompt(
    base: str | None,
    instructions: str | None,
    root: str,
    toolsets: Mapping[str, str] | None = None,
    *,
    mask: Mask,
    deferred: Sequence[str] = (),
    examples: str | None = None,
    parts: Sequence[str] = (),
    date: str | None = None,
) -> str:
    """Compose a system prompt: what is the same for every conversation first, so that providers can cache it.

    Args:
        base: Replaces the prompt that agentcore brings.
        instructions: What is added to it.
        root: The workspace's folder.
        toolsets: What toolsets say of their tools as a whole, by their names; each is cut where it is too long.
        mask: Replaces secrets, before that cut.
        deferred: The names of toolsets whose tools the model has to search for.
        examples: Examples of calls.
        parts: The parts of context.
        date: The day.
    """
    texts = [base or DEFAULT_PROMPT]
    if instructions:
        texts.append(instructions)
    for name, text in (toolsets or {}).items():
        texts.append(f"The tools of {name!r} come with these instructions:\n{mask(text)[:_MOST_INSTRUCTIONS]}")
    if deferred:
        names = ", ".join(dict.fromkeys(repr(mask(name)[:_MOST_NAME]) for name in deferred))
        texts.append(
            f"There are more tools than are listed, of: {names}. Find them with search_tools, call them with call_tool."
        )
    if examples:
        texts.append(examples)
    texts += parts
    texts.append(f"You work in the folder {root}. Relative paths start there.")
    if date:
        texts.append(date)
    return "\n\n".join(texts)
