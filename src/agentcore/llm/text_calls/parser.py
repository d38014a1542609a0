"""A call that a model wrote as text, read.

Models leave tags out, put others around, and write values that hold the tags themselves. What was meant is found where it
can be; where it can't, the call is given as the text it is, and never as half of what it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from pydantic import JsonValue

from agentcore.llm.text_calls.prompt import Properties, properties_of
from agentcore.llm.text_calls.values import read_value
from agentcore.messages import ToolSchema

BEGIN: Final = "<function="

_NAME: Final = re.compile(r"<function=([^<>\n]*)(?:>|\n|(?=<))")
_PARAMETER: Final = "<parameter="
_KEY: Final = re.compile(r"([^<>=\n]+)([>=])")
_END: Final = re.compile(r"</function>|</tool_call>|(?=<function=)")
# What counts in a value. None of it is left of a value that was written with its tags escaped.
_IN_VALUE: Final = re.compile(
    r"(?P<end></parameter>)|(?P<call><function=[^<>&\n]*>)|(?P<call_end></function>)|(?P<key><parameter=[^<>&\n]*>)"
)
_AFTER_VALUE: Final = ("<parameter=", "</function", "</tool_call>", "<function=")
_NEXT_CALL: Final = re.compile(r"^[ \t]*<function=", re.MULTILINE)
_JSON: Final = json.JSONDecoder(strict=False, parse_constant=str)


@dataclass(frozen=True, slots=True)
class FoundCall:
    """A call, and where the text goes on after it."""

    name: str
    arguments: dict[str, JsonValue] | str
    """The call's whole text, where it can't be read."""
    end: int


class _MoreNeededError(Exception):
    """Raised where the meaning of the text depends on text that has not come yet."""


class _UnreadableError(Exception):
    """It is no call that can be understood. The argument is from where on not."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


def find_name(text: str) -> str | None:
    """Return the name of the call that a text begins with, if it is whole."""
    found = _NAME.match(text)
    return None if found is None else _name(found[1])


def _name(written: str) -> str:
    return written.strip().strip("\"'`")


def find_call(text: str, tools: Mapping[str, ToolSchema], *, whole: bool, cut_off: bool = False) -> FoundCall | None:
    """Read the call that a text begins with.

    Args:
        text: From its `<function=` on.
        tools: The tools there are, by name.
        whole: Whether no more text comes. Else None says that more is needed to tell.
        cut_off: Whether the model was stopped at the longest output that is allowed.
    """
    found = _NAME.match(text)
    if found is None:
        return FoundCall(_name(text[len(BEGIN) :]), text, len(text)) if whole else None
    name = _name(found[1])
    body = _Body(text, found.end(), properties_of(tools.get(name)), whole=whole, cut_off=cut_off)
    try:
        return FoundCall(name, body.read(), body.position)
    except _MoreNeededError:
        return None
    except _UnreadableError as error:
        end = _end_of_unreadable(text, error.position, whole=whole)
        return None if end is None else FoundCall(name, text[:end].rstrip(), end)


def _end_of_unreadable(text: str, position: int, *, whole: bool) -> int | None:
    end = text.find("</function>", position)
    if end >= 0:
        return end + len("</function>")
    return len(text) if whole else None


class _Body:
    """The text between the beginning of a call and its end."""

    def __init__(self, text: str, position: int, properties: Properties, *, whole: bool, cut_off: bool) -> None:
        self.position = position
        self._text = text
        self._properties = properties
        self._whole = whole
        self._cut_off = cut_off
        self._arguments: dict[str, JsonValue] = {}

    def read(self) -> dict[str, JsonValue]:
        """Read the arguments and go to the end."""
        self._skip_space()
        if self._text.startswith("{", self.position):
            self._read_json()
        while not self._at_end():
            key, begin = self._key()
            if key in self._arguments:
                raise _UnreadableError(self.position)
            end, after = self._end_of_value(begin)
            self._arguments[key] = read_value(self._text[begin:end], self._properties.get(key, {}))
            self.position = after
        return self._arguments

    def _skip_space(self) -> None:
        while self.position < len(self._text) and self._text[self.position].isspace():
            self.position += 1

    def _at_end(self) -> bool:
        self._skip_space()
        if found := _END.match(self._text, self.position):
            self.position = found.end()
            return True
        rest = self._text[self.position :]
        if rest.startswith(_PARAMETER):
            return False
        if any(tag.startswith(rest) for tag in (*_AFTER_VALUE, "</function>")):
            # Nothing, or the beginning of a tag, is left.
            if not self._whole:
                raise _MoreNeededError
            if self._cut_off or _PARAMETER.startswith(rest or "?"):
                raise _UnreadableError(self.position)
            self.position = len(self._text)
            return True
        raise _UnreadableError(self.position)

    def _read_json(self) -> None:
        """Read arguments that are one JSON object: not the format, but beyond doubt."""
        try:
            value, end = _JSON.raw_decode(self._text, self.position)
        except (ValueError, RecursionError):
            if not self._whole:
                raise _MoreNeededError from None
            raise _UnreadableError(self.position) from None
        self._arguments = cast("dict[str, JsonValue]", value)
        self.position = end

    def _key(self) -> tuple[str, int]:
        """Return the key of the parameter here, and where its value begins."""
        begin = self.position + len(_PARAMETER)
        rest = self._text[begin : begin + 1_000]
        for key in sorted(self._properties, key=len, reverse=True):
            if rest.startswith(f"{key}>"):
                return key, begin + len(key) + 1
            if f"{key}>".startswith(rest) and not self._whole:
                raise _MoreNeededError
        found = _KEY.match(rest)
        if found is not None:
            # With "=" after the key, the value stands inside of the tag.
            return found[1].strip().strip("\"'"), begin + found.end()
        if not self._whole and re.fullmatch(r"[^<>=\n]*", rest):
            raise _MoreNeededError
        raise _UnreadableError(self.position)

    def _end_of_value(self, begin: int) -> tuple[int, int]:
        """Return where the value ends, and where the text goes on."""
        found = self._closed(begin, len(self._text), nested=True)
        if found is None and not self._whole:
            raise _MoreNeededError
        if found is None:
            following = _NEXT_CALL.search(self._text, begin)
            limit = len(self._text) if following is None else following.start()
            found = self._closed(begin, limit) or self._not_closed(begin, limit) or self._closed(begin, len(self._text))
        if found is None:
            raise _UnreadableError(begin)
        return found

    def _closed(self, begin: int, limit: int, *, nested: bool = False) -> tuple[int, int] | None:
        """Find the `</parameter>` that something of the call follows. With `nested`, calls in the value are skipped."""
        calls = parameters = 0
        for tag in _IN_VALUE.finditer(self._text, begin, limit):
            if tag["call"]:
                calls += nested
            elif tag["call_end"]:
                calls -= calls > 0
            elif calls:
                continue
            elif tag["key"]:
                if self._is_next_key(tag):
                    return tag.start(), tag.start()
                parameters += nested
            elif parameters:
                parameters -= 1
            elif self._goes_on(tag.end()):
                return tag.start(), tag.end()
        return None

    def _is_next_key(self, tag: re.Match[str]) -> bool:
        """Return whether the value was not closed and the next parameter begins here."""
        key = tag["key"][len(_PARAMETER) : -1]
        line = self._text.rfind("\n", 0, tag.start()) + 1
        begins_a_line = not self._text[line : tag.start()].strip()
        return begins_a_line and key in self._properties and key not in self._arguments

    def _goes_on(self, position: int) -> bool:
        """Return whether the text continues as it does after a value."""
        rest = self._text[position : position + 1_000].lstrip()
        if rest.startswith(_AFTER_VALUE):
            return True
        if any(tag.startswith(rest) for tag in _AFTER_VALUE):
            if not self._whole:
                raise _MoreNeededError
            return True
        return False

    def _not_closed(self, begin: int, limit: int) -> tuple[int, int] | None:
        """Find where a value ends that is closed by nothing but the end of its call."""
        end = self._text.rfind("</function>", begin, limit)
        if end < 0:
            return None
        inner = self._text.rfind("</parameter>", begin, end)
        return (end, end) if inner < 0 else (inner, inner + len("</parameter>"))
