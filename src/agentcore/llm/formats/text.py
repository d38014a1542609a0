"""Values as models really send them: text, counts, and thinking between tags."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, cast

from pydantic import JsonValue

from agentcore._value import is_too_deep


def clean(text: str) -> str:
    """Make text that can be stored: halves of a character that came apart are joined, lone halves are replaced.

    JSON can say half a character by its escape, and models, which cut text anywhere, do so.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_json(value: JsonValue) -> JsonValue:
    """Clean all the text in a JSON value."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [clean_json(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): clean_json(item) for key, item in value.items()}
    return cast("JsonValue", value)


_MOST = 10**15


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
    kept = _storable(cast("object", usage))
    return kept if isinstance(kept, dict) else {}


def _storable(value: object) -> JsonValue:
    """Leave out what says nothing, and numbers that JSON does not have."""
    if isinstance(value, dict):
        items = ((clean(str(name)), _storable(item)) for name, item in cast("dict[str, object]", value).items())
        return {name: item for name, item in items if item is not None}
    if isinstance(value, list):
        return [_storable(item) for item in cast("list[object]", value)]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return clean(value)
    return value if isinstance(value, bool | int) else None


_OPEN, _CLOSE = "<think>", "</think>"


def split_thinking(text: str) -> tuple[str, str]:
    """Return the thinking and the text."""
    thought: list[str] = []
    spoken: list[str] = []
    tags = ThinkTags()
    for is_thought, words in (*tags.feed(text), *tags.finish()):
        (thought if is_thought else spoken).append(words)
    return "".join(thought), "".join(spoken)


class ThinkTags:
    """Tells the one from the other in words that come in pieces."""

    def __init__(self) -> None:
        self._held = ""
        """Text that may be the beginning of a tag."""
        self._mark: str | None = _OPEN
        """The mark that comes next; None where none can come any more."""

    def feed(self, text: str) -> Iterator[tuple[bool, str]]:
        """Take words in, and give those of which it is known whether they are thought."""
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
