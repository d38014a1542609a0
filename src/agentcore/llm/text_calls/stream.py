"""A reply of a model that calls tools in words, read as it comes: text, thinking and calls, separated.

The same reader reads a reply that is whole: fed in one piece or in many, it gives the same.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from agentcore.llm.text_calls.parser import BEGIN, find_call, find_name
from agentcore.messages import ToolSchema


@dataclass(frozen=True, slots=True)
class Words:
    """More words."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """More thinking."""

    text: str


@dataclass(frozen=True, slots=True)
class WasThinking:
    """All the words so far were thinking: the tag that says so stood only at their end."""


@dataclass(frozen=True, slots=True)
class CallBegan:
    """A call has begun, and this is its name."""

    name: str


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call is whole."""

    name: str
    arguments: dict[str, JsonValue] | str
    """The call's whole text, where it can't be read."""


Piece = Words | Thinking | WasThinking | CallBegan | CallEnded

_Step = Generator[Piece, None, bool]
"""Yields what is certain now, and returns whether the held text may hold more."""

_THINK: Final = "<think>"
_THOUGHT: Final = "</think>"
_WRAP: Final = "<tool_call>"
_CLOSING: Final = ("</tool_call>", "</function>", "</parameter>")
_TAGS: Final = (BEGIN, _WRAP, _THINK, _THOUGHT, *_CLOSING)
_TAG: Final = re.compile("|".join(map(re.escape, _TAGS)))
_THINKING_ENDS: Final = re.compile(r"[ \t]*(?:\n|\r|<|\Z)")
_ENDS_A_CALL: Final = re.compile(r"</function|</tool_call|<function=")
_LONGEST_END: Final = len("</tool_call>")
_HALF_A_TAG: Final = 4
"""So many characters of a tag at the end of a reply are one that was cut off; fewer may be anything."""


class TextDecoder:
    """Reads one reply. It shows what is certain, and keeps back what may be half a tag or a call."""

    def __init__(self, tools: Mapping[str, ToolSchema]) -> None:
        self._tools = tools
        self._held = ""
        self._whole = False
        self._cut_off = False
        self._spaces = ""
        """Shown when words follow, and at the end; not before a call."""
        self._said = False
        self._after_call = False
        self._calls = 0
        self._thinking = False
        self._in_call = False
        self._named = False
        self._later: list[str] = []
        """More of the present call, in which nothing can end it."""
        self._tail = ""

    def feed(self, text: str) -> Iterator[Piece]:
        """Take more of the reply in, and give what is certain now."""
        self._later.append(text)
        if not (self._named and self._only_goes_on(text)):
            yield from self._advance()

    def _only_goes_on(self, text: str) -> bool:
        """Return whether the call cannot end yet. Parsing it for each piece would take quadratic time."""
        seen = self._tail + text
        self._tail = seen[-_LONGEST_END:]
        return _ENDS_A_CALL.search(seen) is None

    def finish(self, *, cut_off: bool = False) -> Iterator[Piece]:
        """Return the rest. `cut_off` means that the model was stopped at its output limit."""
        self._whole, self._cut_off = True, cut_off
        yield from self._advance()
        if self._spaces and not (self._after_call or self._thinking):
            yield Words(self._spaces)

    def _advance(self) -> Iterator[Piece]:
        self._held += "".join(self._later)
        self._later.clear()
        more = True
        while more and self._held:
            more = yield from (self._call() if self._in_call else self._thought() if self._thinking else self._words())

    def _words(self) -> _Step:
        tag = _TAG.search(self._held)
        if tag is None:
            return (yield from self._rest(_TAGS))
        yield from self._say(self._take(tag.start()))
        match tag.group():
            case "<function=":
                return (yield from self._begin_call())
            case "<tool_call>":
                return (yield from self._wrapper())
            case "<think>" if not (self._said or self._calls):
                self._take(len(_THINK))
                self._spaces = ""
                self._thinking = True
            case "</think>":
                return (yield from self._late_thought())
            case closing if self._after_call and closing in _CLOSING:
                self._take(len(closing))
            case other:
                yield from self._say(self._take(len(other)))
        return True

    def _take(self, length: int) -> str:
        taken, self._held = self._held[:length], self._held[length:]
        return taken

    def _say(self, text: str) -> Iterator[Piece]:
        text = self._spaces + text
        if self._after_call or self._thinking:
            text = text if self._said else text.lstrip()
        shown = text.rstrip()
        self._spaces = text[len(shown) :]
        if shown:
            self._said = True
            self._after_call = False
            yield Thinking(shown) if self._thinking else Words(shown)

    def _rest(self, tags: tuple[str, ...]) -> _Step:
        """Yield the held text, except for what may be the beginning of a tag."""
        begin = self._held.rfind("<")
        half = self._held[begin:] if begin >= 0 else ""
        if half and any(tag.startswith(half) for tag in tags):
            yield from self._say(self._take(begin))
            if not self._whole:
                return False
            if len(half) >= _HALF_A_TAG:
                self._held = ""
                return False
        yield from self._say(self._take(len(self._held)))
        return False

    def _begin_call(self) -> _Step:
        following = self._held[len(BEGIN) : len(BEGIN) + 1]
        if not following and not self._whole:
            return False
        if re.match(r"[\w\"']", following):
            self._in_call, self._spaces = True, ""
        elif following:
            yield from self._say(self._take(len(BEGIN)))  # somebody speaks about calls
        else:
            self._held = ""
        return True

    def _wrapper(self) -> _Step:
        following = self._held[len(_WRAP) :].lstrip()
        if following.startswith(BEGIN):
            self._held = following
        elif BEGIN.startswith(following) and not self._whole:
            return False
        else:
            yield from self._say(self._take(len(_WRAP)))
        return True

    def _late_thought(self) -> _Step:
        following = self._held[len(_THOUGHT) :]
        if not self._whole and not following.strip(" \t"):
            return False
        ends = _THINKING_ENDS.match(following)
        if not ends or (self._calls and not self._after_call):
            yield from self._say(self._take(len(_THOUGHT)))
            return True
        self._take(len(_THOUGHT))
        if self._said and not self._calls:
            yield WasThinking()
        self._said, self._after_call, self._spaces = False, True, ""
        return True

    def _thought(self) -> _Step:
        end = self._held.find(_THOUGHT)
        if end < 0:
            return (yield from self._rest((_THOUGHT,)))
        yield from self._say(self._take(end))
        self._take(len(_THOUGHT))
        self._thinking, self._said, self._after_call, self._spaces = False, False, True, ""
        return True

    def _call(self) -> _Step:
        if not self._named and (name := find_name(self._held)) is not None:
            self._named = True
            yield CallBegan(name)
        self._tail = self._held[-_LONGEST_END:]
        found = find_call(self._held, self._tools, whole=self._whole, cut_off=self._cut_off)
        if found is None:
            return False
        if not self._named:
            yield CallBegan(found.name)
        yield CallEnded(found.name, found.arguments)
        self._take(found.end)
        self._calls += 1
        self._in_call, self._named, self._said, self._after_call = False, False, False, True
        return True
