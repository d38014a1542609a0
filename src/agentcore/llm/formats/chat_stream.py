"""A stream in the Chat Completions format: each piece is read once, shown, and joined to the message it is a part of.

What the message says is read in `chat_reply`.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Any, cast

from agentcore._text import replace_lone_surrogates as clean
from agentcore.llm.error_bodies import find_error
from agentcore.llm.failures import refused_in_stream
from agentcore.llm.formats.chat_reply import answered, call_id, reasoning_in, text_in
from agentcore.llm.formats.decoding import (
    DONE,
    DecodedReply,
    ThinkTags,
    arguments_text,
    read_arguments,
    stream_truncated,
)
from agentcore.llm.reply import Delta, ReasoningDelta, RefusalDelta, TextDelta, ToolCallDelta
from agentcore.llm.settings import LLMSettings

_LISTS = ("annotations", "executed_tools", "images")
"""Fields that a stream may send in several pieces, each a list."""
_WORDS = frozenset({"text", "thinking"})
_ENVELOPE = ("id", "model", "service_tier", "citations", "search_results", "usage_breakdown")
"""Fields around the message, which any piece of a stream may have."""


class ChatDecoder:
    """Reads one stream."""

    def __init__(self, settings: LLMSettings) -> None:
        self._settings = settings
        self._pieces = ChatPieces()
        self._usages: list[dict[str, Any]] = []
        self._envelope: dict[str, Any] = {}
        self._reason: str | None = None
        self._done = False

    def read(self, event: dict[str, Any]) -> list[Delta]:
        """Decode one event and return its deltas.

        Raises:
            ModelError: The provider gives the reply up.
        """
        if event is DONE:
            self._done = True
            return []
        # A few servers send an error as it is in place of a piece.
        if error := event.get("error") if "choices" in event else find_error(event):
            raise refused_in_stream(self._settings, error)
        self._envelope |= {name: value for name in _ENVELOPE if (value := event.get(name))}
        for where in (event, event.get("x_groq")):
            if isinstance(where, dict) and isinstance(usage := where.get("usage"), dict):  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
                self._usages.append(usage)  # pyright: ignore[reportUnknownArgumentType]
        shown: list[Delta] = []
        for choice in event.get("choices") or ():
            if choice.get("index"):
                continue  # one reply is asked for
            if error := choice.get("error"):
                raise refused_in_stream(self._settings, error)
            if usage := choice.get("usage"):
                self._usages.append(usage)
            self._reason = choice.get("finish_reason") or self._reason
            # What they can't send in pieces, some servers send all at once.
            whole = choice.get("message") if choice.get("delta") is None and not self._pieces.begun else None
            shown += self._pieces.read({**choice, "delta": whole} if whole else choice)
        return shown

    def answer(self) -> DecodedReply:
        """Return the whole reply."""
        # The last word is a reason to stop; a few servers leave it out and say only that they are done.
        reason = self._reason or ("stop" if self._done and self._pieces.begun else None)
        if reason is None:
            raise stream_truncated(self._settings.model)
        return answered(
            self._settings, self._pieces.message(), reason, self._usages, self._envelope, logprobs=self._pieces.logprobs
        )


class ChatPieces:
    """The message that the pieces of a stream make."""

    def __init__(self) -> None:
        self.begun = False
        """True once there was a piece."""
        self.logprobs: list[dict[str, Any]] = []
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._thinking: list[dict[str, Any]] = []
        self._details: list[Any] = []
        self._audio: list[dict[str, Any]] = []
        self._lists: dict[str, list[Any]] = {name: [] for name in _LISTS}
        self._others: list[Any] = []
        self._extra: dict[str, Any] = {}
        self._fields: dict[str, Any] = {}
        self._calls: list[_Call] = []
        self._positions: dict[int, int] = {}
        self._tags: ThinkTags | None = ThinkTags()
        """None once no tag can come any more."""

    def read(self, choice: dict[str, Any]) -> list[Delta]:
        """Take a piece in, and return its deltas."""
        self.begun = True
        delta: dict[str, Any] = choice.get("delta") or {}
        shown: list[Delta] = []
        words, text = delta.get("reasoning_content") or delta.get("reasoning"), delta.get("content")
        if isinstance(text, list):
            parts = cast("list[dict[str, Any]]", text)
            self._others += [part for part in parts if part.get("type") not in _WORDS]
            words, text = reasoning_in(delta), text_in(parts)
        if words and isinstance(words, str):
            self._reasoning.append(words)
            shown += self._end_tags()
            shown.append(ReasoningDelta(text=_cleaned(words)))
        if text:
            self._text.append(text)
            shown += self._split_tags(text)
        if refusal := delta.get("refusal"):
            self._refusal.append(refusal)
            shown += self._end_tags()
            shown.append(RefusalDelta(text=_cleaned(refusal)))
        if isinstance(audio := delta.get("audio"), dict):
            self._audio.append(cast("dict[str, Any]", audio))
            if transcript := self._audio[-1].get("transcript"):
                shown.append(TextDelta(text=_cleaned(transcript)))
        if delta.get("tool_calls") or choice.get("finish_reason"):
            shown += self._end_tags()
        shown += map(self._read_call, delta.get("tool_calls") or ())
        probabilities: dict[str, Any] = choice.get("logprobs") or {}
        self.logprobs += probabilities.get("content") or ()
        own: dict[str, Any] = delta.get("provider_specific_fields") or {}
        self._fields |= own
        self._details += delta.get("reasoning_details") or own.get("reasoning_details") or ()
        self._extra |= delta.get("extra_content") or {}
        for name in _LISTS:
            self._lists[name] += delta.get(name) or ()
        for block in delta.get("thinking_blocks") or ():
            _add_thinking(self._thinking, block)
        return shown

    def _split_tags(self, text: str) -> list[Delta]:
        if self._tags is None:
            return [TextDelta(text=_cleaned(text))]
        shown = _tagged(self._tags.feed(text))
        if self._tags.over:
            self._tags = None
        return shown

    def _end_tags(self) -> list[Delta]:
        tags, self._tags = self._tags, None
        return _tagged(tags.finish()) if tags is not None else []

    def _read_call(self, fragment: dict[str, Any]) -> ToolCallDelta:
        index, named = fragment.get("index") or 0, None if fragment.get("id") is None else call_id(fragment)
        function: dict[str, Any] = fragment.get("function") or {}
        name, arguments = function.get("name") or "", function.get("arguments") or ""
        if not isinstance(arguments, str):
            arguments = arguments_text(arguments)
        position = self._positions.get(index)
        if position is None or self._calls[position].is_followed_by(named, name, arguments):
            position = self._positions[index] = len(self._calls)
            self._calls.append(_Call())
        call = self._calls[position]
        call.id = call.id or named
        call.name = call.name or name
        call.arguments.append(arguments)
        for field in ("provider_specific_fields", "extra_content"):
            if own := fragment.get(field):
                call.more[field] = {**call.more.get(field, {}), **own}
        return ToolCallDelta(index=position, id=named, name=_cleaned(name) or None, arguments=_cleaned(arguments))

    def message(self) -> dict[str, Any]:
        """Return the message as the provider would have sent it at once."""
        words = "".join(self._text)
        return {
            **self._lists,
            "content": [{"type": "text", "text": words}, *self._others] if self._others else words,
            "audio": _join_audio(self._audio),
            "extra_content": self._extra,
            "reasoning_content": "".join(self._reasoning),
            "refusal": "".join(self._refusal),
            "thinking_blocks": self._thinking,
            "tool_calls": [call.whole() for call in self._calls],
            "reasoning_details": self._details,
            "provider_specific_fields": self._fields,
        }


class _Call:
    """A call that comes in fragments."""

    def __init__(self) -> None:
        self.id: str | None = None
        self.name = ""
        self.arguments: list[str] = []
        self.more: dict[str, Any] = {}

    def is_followed_by(self, named: str | None, name: str, arguments: str) -> bool:
        """Return whether a fragment with the same index begins another call.

        Some servers say index 0 for every call. Then a new id begins one, or a name where this one is whole.
        """
        if named and self.id:
            return named != self.id
        if not (name and arguments):
            return False
        written = "".join(self.arguments)
        return bool(written.strip()) and isinstance(read_arguments(written), dict)

    def whole(self) -> dict[str, Any]:
        function = {"name": self.name, "arguments": "".join(self.arguments)}
        return {"id": self.id, "type": "function", "function": function, **self.more}


def _cleaned(text: str) -> str:
    # Nearly all pieces are ASCII, which holds no half of a character.
    return text if text.isascii() else clean(text)


def _add_thinking(blocks: list[dict[str, Any]], fragment: dict[str, Any]) -> None:
    """A block comes as words, words, ..., signature; the signature ends it."""
    last = blocks[-1] if blocks else None
    if fragment.get("type") == "redacted_thinking" or last is None or last.get("signature") or "thinking" not in last:
        blocks.append(dict(fragment))
        return
    last["thinking"] = (last.get("thinking") or "") + (fragment.get("thinking") or "")
    last["signature"] = fragment.get("signature")


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


def _tagged(pieces: Iterable[tuple[bool, str]]) -> list[Delta]:
    return [
        ReasoningDelta(text=_cleaned(words)) if is_thought else TextDelta(text=_cleaned(words))
        for is_thought, words in pieces
    ]
