"""Pieces of a stream in the Chat Completions format: shown one by one, and put together to the message that they make.

What the message says is read in `chat_reply`.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from typing import Any, cast

from agentcore.llm.formats.chat_reply import call_id, read_arguments, reasoning_in, text_in, written_arguments
from agentcore.llm.formats.text import ThinkTags, clean
from agentcore.llm.reply import Delta, ReasoningDelta, RefusalDelta, TextDelta, ToolCallDelta


def _is_whole(arguments: str) -> bool:
    return bool(arguments.strip()) and isinstance(read_arguments(arguments), dict)


class _CallNumbers:
    """Which call of a reply a fragment belongs to, whatever its provider makes of `index`."""

    def __init__(self) -> None:
        self._positions: dict[int, int] = {}
        self._ids: list[str | None] = []
        self._arguments: list[list[str]] = []

    def position(self, fragment: dict[str, Any]) -> int:
        """Return the position of the call that a fragment continues or begins."""
        index, named = fragment.get("index") or 0, call_id(fragment)
        function: dict[str, Any] = fragment.get("function") or {}
        more = written_arguments(function)
        position = self._positions.get(index)
        if position is None or self._begins_another(position, named, function.get("name"), more):
            position = self._positions[index] = len(self._ids)
            self._ids.append(None)
            self._arguments.append([])
        self._ids[position] = self._ids[position] or named
        self._arguments[position].append(more)
        return position

    def _begins_another(self, position: int, named: str | None, name: object, more: str) -> bool:
        """Some servers say index 0 for every call. Then a new id begins one, or a name where the last one is whole."""
        if named and self._ids[position]:
            return named != self._ids[position]
        return bool(name and more) and _is_whole("".join(self._arguments[position]))


class ChatDecoder:
    """A decoder of the pieces of a stream."""

    def __init__(self) -> None:
        self._numbers = _CallNumbers()
        self._tags: ThinkTags | None = ThinkTags()

    def read(self, choice: dict[str, Any]) -> Iterator[Delta]:
        """Yield the deltas of one piece."""
        delta: dict[str, Any] = choice.get("delta") or {}
        if words := reasoning_in(delta):
            yield from self._end_of_tags()
            yield ReasoningDelta(text=clean(words))
        if text := text_in(delta.get("content")):
            pieces = [(False, text)] if self._tags is None else self._tags.feed(text)
            yield from _tagged(pieces)
        if refusal := delta.get("refusal"):
            yield from self._end_of_tags()
            yield RefusalDelta(text=clean(refusal))
        if spoken := _audio(delta).get("transcript"):
            yield TextDelta(text=clean(spoken))
        if delta.get("tool_calls") or choice.get("finish_reason"):
            yield from self._end_of_tags()
        for fragment in delta.get("tool_calls") or ():
            function: dict[str, Any] = fragment.get("function") or {}
            yield ToolCallDelta(
                index=self._numbers.position(fragment),
                id=call_id(fragment),
                name=clean(function.get("name") or "") or None,
                arguments=clean(written_arguments(function)),
            )

    def _end_of_tags(self) -> Iterator[Delta]:
        if self._tags is not None:
            yield from _tagged(self._tags.finish())
            self._tags = None


def _tagged(pieces: Iterable[tuple[bool, str]]) -> Iterator[Delta]:
    for is_thought, words in pieces:
        yield ReasoningDelta(text=clean(words)) if is_thought else TextDelta(text=clean(words))


def assemble(choices: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Put the pieces of a stream together: the message that the provider would have sent at once."""
    texts: list[str] = []
    reasoning: list[str] = []
    refusal: list[str] = []
    thinking: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    details: list[Any] = []
    audio: list[dict[str, Any]] = []
    lists: dict[str, list[Any]] = {name: [] for name in _LISTS}
    others: list[Any] = []
    extra: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    numbers = _CallNumbers()
    for choice in choices:
        delta: dict[str, Any] = choice.get("delta") or {}
        texts.append(text_in(delta.get("content")))
        reasoning.append(reasoning_in(delta))
        refusal.append(delta.get("refusal") or "")
        own: dict[str, Any] = delta.get("provider_specific_fields") or {}
        details.extend(delta.get("reasoning_details") or own.get("reasoning_details") or ())
        fields.update(own)
        audio.append(_audio(delta))
        for name in _LISTS:
            lists[name].extend(delta.get(name) or ())
        if isinstance(content := delta.get("content"), list):
            others += [part for part in cast("list[dict[str, Any]]", content) if part.get("type") not in _WORDS]
        extra.update(delta.get("extra_content") or {})
        for block in delta.get("thinking_blocks") or ():
            _add_thinking(thinking, block)
        for fragment in delta.get("tool_calls") or ():
            _add_call(calls, numbers.position(fragment), fragment)
    words = "".join(texts)
    return {
        **lists,
        "content": [{"type": "text", "text": words}, *others] if others else words,
        "audio": _join_audio(audio),
        "extra_content": extra,
        "reasoning_content": "".join(reasoning),
        "refusal": "".join(refusal),
        "thinking_blocks": thinking,
        "tool_calls": calls,
        "reasoning_details": details,
        "provider_specific_fields": fields,
    }


def _add_thinking(blocks: list[dict[str, Any]], fragment: dict[str, Any]) -> None:
    """A block comes as words, words, ..., signature; the signature ends it."""
    last = blocks[-1] if blocks else None
    if fragment.get("type") == "redacted_thinking" or last is None or last.get("signature") or "thinking" not in last:
        blocks.append(dict(fragment))
        return
    last["thinking"] = (last.get("thinking") or "") + (fragment.get("thinking") or "")
    last["signature"] = fragment.get("signature")


def _add_call(calls: list[dict[str, Any]], position: int, fragment: dict[str, Any]) -> None:
    function: dict[str, Any] = fragment.get("function") or {}
    if position == len(calls):
        calls.append({"id": None, "type": "function", "function": {"name": "", "arguments": ""}})
    call = calls[position]
    call["id"] = call["id"] or call_id(fragment)
    call["function"]["name"] = call["function"]["name"] or function.get("name") or ""
    call["function"]["arguments"] += written_arguments(function)
    for name in ("provider_specific_fields", "extra_content"):
        if own := fragment.get(name):
            call[name] = {**call.get(name, {}), **own}


_LISTS = ("annotations", "executed_tools", "images")
"""Fields that a stream may send in several pieces, each a list."""
_WORDS = frozenset({"text", "thinking"})


def _audio(delta: dict[str, Any]) -> dict[str, Any]:
    audio = delta.get("audio")
    return cast("dict[str, Any]", audio) if isinstance(audio, dict) else {}


def _join_audio(pieces: Iterable[dict[str, Any]]) -> dict[str, Any]:
    joined: dict[str, Any] = {}
    data = bytearray()
    for piece in pieces:
        joined |= {name: value for name, value in piece.items() if name not in {"data", "transcript"} and value}
        joined["transcript"] = joined.get("transcript", "") + (piece.get("transcript") or "")
        # Each piece is padded by itself.
        data += b64decode(piece.get("data") or "")
    if data:
        joined["data"] = b64encode(data).decode("ascii")
    return joined if data or joined.get("transcript") else {}
