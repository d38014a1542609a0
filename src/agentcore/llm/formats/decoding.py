"""A decoded reply, before it has a price; and what formats decode alike: arguments, counts, and thinking between tags."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, cast

from pydantic import JsonValue

from agentcore._text import replace_lone_surrogates
from agentcore._value import is_too_deep
from agentcore.errors import ModelConnectionError
from agentcore.llm.catalog import ModelInfo, Surcharges, priced
from agentcore.llm.reply import Delta, Reply, TokenLogprob
from agentcore.llm.settings import LLMSettings
from agentcore.messages import Message
from agentcore.usage import Usage

DONE: dict[str, Any] = {"type": "[DONE]"}
"""The event that a decoder receives for `[DONE]`, which is not JSON."""

_MOST = 10**15
_OPEN, _CLOSE = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class DecodedReply:
    """A reply as it came, not yet priced."""

    message: Message
    usage: Usage
    stop_reason: str
    model: str | None
    provider_id: str | None
    reported_cost: float | None = None
    surcharges: Surcharges = field(default_factory=Surcharges)
    reported_usage: dict[str, Any] | None = None
    """The provider's own counts."""
    service_tier: str | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None

    def priced(self, settings: LLMSettings, info: ModelInfo, *, latency: float, first: float | None) -> Reply:
        """Return the reply with its cost; `first` is how long its first delta took."""
        provider = f"{settings.provider}/"
        # A reply is not worth less because what is around it has not the type that the interface says.
        model = _text(self.model)
        return Reply(
            message=self.message,
            usage=priced(info, settings, self.usage, reported=self.reported_cost, surcharges=self.surcharges),
            stop_reason=_text(self.stop_reason) or "end",
            model=f"{provider}{model.removeprefix(provider)}" if model else settings.model,
            provider_id=_text(self.provider_id),
            latency=latency,
            time_to_first_token=first,
            reported_usage=as_reported(self.reported_usage),
            service_tier=_text(self.service_tier),
            logprobs=self.logprobs,
        )


def _text(value: object) -> str | None:
    return None if value is None else replace_lone_surrogates(str(value))


class StreamDecoder(Protocol):
    """Reads one stream."""

    def read(self, event: dict[str, Any]) -> Iterable[Delta]:
        """Decode one event and return its deltas."""
        ...

    def answer(self) -> DecodedReply:
        """Return the whole reply.

        Raises:
            ModelConnectionError: The stream ended too early for there to be one.
        """
        ...


def stream_truncated(model: str) -> ModelConnectionError:
    """Return the error for a stream that ended without its last event."""
    return ModelConnectionError(
        f"{model}: the reply broke off: the stream ended before the model said that it was done.", model=model
    )


def read_arguments(arguments: object) -> dict[str, JsonValue] | str:
    """Read the arguments of a call; what is not a JSON object stays text. No text at all is no arguments."""
    text = arguments_text(arguments)
    if not text.strip():
        return {}
    try:
        read: JsonValue = json.loads(text, parse_constant=_refuse_number, parse_float=_number)
    except (ValueError, RecursionError):
        return replace_lone_surrogates(text)
    return replace_lone_surrogates(read if isinstance(read, dict) and not is_too_deep(read) else text)


def _refuse_number(word: str) -> NoReturn:
    # Python reads NaN and Infinity, and writes them: in what is sent back nobody else could read them.
    raise ValueError(f"{word} is not JSON")


def _number(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse_number(digits)


def arguments_text(arguments: object) -> str:
    """Return the arguments of a call as text; a few servers send an object."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""


def counted(usage: object) -> dict[str, Any]:
    """Keep what is a count, and what holds counts: a reply is not worth less because its bill can't be read."""
    if not isinstance(usage, dict):
        return {}
    kept: dict[str, Any] = {}
    for name, value in cast("dict[str, Any]", usage).items():
        if isinstance(value, dict):
            kept[name] = counted(cast("object", value))
        elif (count := _count(value)) is not None:
            kept[name] = count
    return kept


def _count(value: object) -> int | None:
    if isinstance(value, str) and value.isdecimal() and len(value) < 16:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value) if 0 <= value < _MOST else None


def as_reported(usage: object) -> dict[str, JsonValue]:
    """Return what a provider says of a reply's usage, in its own words, as far as it can be stored."""
    if not isinstance(usage, dict) or is_too_deep(cast("object", usage)):
        return {}
    return replace_lone_surrogates(_storable(cast("object", usage)))


def _storable(value: object) -> JsonValue:
    """Leave out what says nothing, and numbers that JSON does not have."""
    if isinstance(value, dict):
        items = ((str(name), _storable(item)) for name, item in cast("dict[str, object]", value).items())
        return {name: item for name, item in items if item is not None}
    if isinstance(value, list):
        return [_storable(item) for item in cast("list[object]", value)]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | bool | int) else None


def split_thinking(text: str) -> tuple[str, str]:
    """Return the thinking and the text."""
    thought: list[str] = []
    spoken: list[str] = []
    tags = ThinkTags()
    for is_thought, words in (*tags.feed(text), *tags.finish()):
        (thought if is_thought else spoken).append(words)
    return "".join(thought), "".join(spoken)


class ThinkTags:
    """Separates thinking between tags from the text after it, in words that come in pieces."""

    def __init__(self) -> None:
        self._held = ""
        """Text that may be the beginning of a tag."""
        self._mark: str | None = _OPEN
        """The mark that comes next; None where none can come any more."""

    @property
    def over(self) -> bool:
        """True if no mark can come any more: what follows is text."""
        return self._mark is None

    def feed(self, text: str) -> Iterator[tuple[bool, str]]:
        """Take words in, and yield those of which it is known whether they are thought."""
        text = self._held + text
        self._held = ""
        if self._mark == _OPEN:
            begun = text.lstrip()
            if len(begun) < len(_OPEN) and _OPEN.startswith(begun):
                self._held = text
                return
            self._mark = _CLOSE if begun.startswith(_OPEN) else None
            if self._mark is not None:
                text = begun[len(_OPEN) :]
        if self._mark == _CLOSE:
            thought, found, rest = text.partition(_CLOSE)
            if not found:
                keep = _ends_with_beginning_of(_CLOSE, text)
                thought, self._held = text[: len(text) - keep], text[len(text) - keep :]
            if thought:
                yield True, thought
            if not found:
                return
            self._mark, text = None, rest
        if text:
            yield False, text

    def finish(self) -> Iterator[tuple[bool, str]]:
        """Yield the text that was held back."""
        held, self._held = self._held, ""
        if held:
            yield self._mark == _CLOSE, held


def _ends_with_beginning_of(mark: str, text: str) -> int:
    return next((size for size in range(len(mark) - 1, 0, -1) if text.endswith(mark[:size])), 0)
