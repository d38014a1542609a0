"""The seam between agentcore and anything that can answer a conversation.

Above: an agent's step, which knows only `Model`. Below: `LLM` and its routes, the scripted model of
`agentcore.testing`, and wrappers: a class that holds a `Model`, is one, and changes one thing (see `RetryingModel`).
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Protocol, Self

from anyio.lowlevel import checkpoint
from pydantic import Field, JsonValue

from agentcore._value import Value
from agentcore.llm.reply import Delta, Reply
from agentcore.messages import Message, ToolSchema

_Tokens = Annotated[int, Field(gt=0)] | None

UNFINISHED = "The stream has not ended yet: read all of its deltas before asking for the reply."
"""The message of the error that `DeltaStream.reply` raises before the stream has ended."""


class RetryReport(NamedTuple):
    """An attempt failed and another one follows."""

    attempt: int
    """The attempt that failed, from 1."""
    error: Exception
    delay: float
    """Seconds until the next attempt."""
    next_model: str | None = None
    """The model that is asked then, where it is another one."""


class Features(Value):
    """Features of a model; None is unknown."""

    context_window: _Tokens = None
    """The most tokens it reads in one request."""
    max_output_tokens: _Tokens = None
    """The most tokens it writes in one reply."""
    vision: bool | None = None
    """True if it takes images."""
    pdf: bool | None = None
    """True if it takes PDF files."""
    tool_calls: bool | None = None
    """True if it asks for tools."""
    reasoning: bool | None = None
    """True if it thinks before it answers."""
    prompt_caching: bool | None = None
    """True if its provider keeps prompts, and asks less for what it has kept."""
    response_schema: bool | None = None
    """True if it can be held to a JSON Schema."""
    mode: Literal["chat", "responses"] | None = None
    """The interface that it is listed with: with "responses" it has no other."""


def common_features(features: Sequence[Features | None]) -> Features | None:
    """Return what all of several models can do; what is not known of one of them is not known of all."""
    known = [each for each in features if each is not None]
    if not known or len(known) < len(features):
        return None
    return Features(**{name: _common([getattr(each, name) for each in known]) for name in Features.model_fields})


def _common(values: Sequence[Any]) -> Any:
    if False in values:
        return False
    if None in values:
        return None
    # The least of numbers; of words only those that are the same.
    return min(values) if isinstance(values[0], int) else values[0] if len(set(values)) == 1 else None


class ResponseSchema(NamedTuple):
    """The shape that the words of a reply are to have."""

    name: str
    """Letters, digits, underscores and dashes."""
    schema: dict[str, JsonValue]
    """A JSON Schema of type "object"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """Facts about the call besides the messages. Its time limit is the caller's cancel scope."""

    conversation_id: str | None = None
    """The conversation the call belongs to: a model may keep what it encoded for the next call of the same one."""
    prompt_cache_key: str | None = None
    """Calls with the same key share a prefix; sent to providers that route by it, so that their caches are hit."""
    on_retry: Callable[[RetryReport], Awaitable[None]] | None = None
    """Awaited before each wait for another attempt."""
    first: bool = False
    """True if no call was answered since the conversation was opened: where a connection is refused then, the address may
    be wrong, or have been another one's when the log was written."""
    response_schema: ResponseSchema | None = None
    """The schema that the reply has to follow. A model without support ignores it, so the caller checks the reply."""
    stop: tuple[str, ...] = ()
    """Words before which the reply is to end. A model without support ignores them, so the caller looks for them."""


class DeltaStream(Protocol):
    """The deltas of one reply, to be iterated in the task that opened it. After the last one there is a `reply`."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Delta: ...

    @property
    def reply(self) -> Reply:
        """The whole reply.

        Raises:
            RuntimeError: The stream has not ended yet.
        """
        ...


class Model(Protocol):
    """Anything that answers messages.

    `complete` and `stream` read `messages` only while they run, and take any sequence. A stream holds no cancel scope and no task
    group between two deltas, so that a caller may put a deadline around any part of reading it; leaving it early ends
    the call at the provider.
    """

    @property
    def name(self) -> str:
        """The model's name, as in "anthropic/claude-sonnet-4-5"."""
        ...

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, context: CallContext | None = None
    ) -> Reply:
        """Answer, all at once.

        Raises:
            ModelError: The call failed; the class says why.
        """
        ...

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, context: CallContext | None = None
    ) -> AbstractAsyncContextManager[DeltaStream]:
        """Answer, piece by piece.

        Raises:
            ModelError: There is no reply; raised when the stream is entered or while it is read.
        """
        ...

    async def get_features(self) -> Features | None:
        """Return what the model can do and what it accepts; None where that is not known."""
        ...

    def record(self) -> dict[str, JsonValue] | None:
        """Return the model as a log holds it, without keys; None where it can't be written down.

        What `kind` names in it is made again by what `agentcore.llm.register_model` or an entry point has for that kind.
        """
        ...


# A model that was written for one program need not have more than the two methods that answer.


async def model_features(model: Model) -> Features | None:
    """Return what a model can do; None where that is not known, as where it has no `get_features`."""
    if not hasattr(model, "get_features"):
        await checkpoint()
        return None
    return await model.get_features()


def record_model(model: Model) -> dict[str, JsonValue] | None:
    """Return a model as a log holds it, without keys; None where it can't be written down, as where it has no `record`."""
    return model.record() if hasattr(model, "record") else None


def describe_unrecorded(model: Model) -> str:
    """Name the part of a model because of which it can't be written down; a wrapper names it by `describe_unrecorded()`."""
    describe: Callable[[], str] | None = getattr(model, "describe_unrecorded", None)
    return f"{type(model).__name__} {model.name!r}" if describe is None else describe()
