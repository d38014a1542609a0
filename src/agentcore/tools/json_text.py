"""JSON as models write it: read where its meaning is beyond doubt, refused where it is not."""

from __future__ import annotations

import ast
import json
import re
from typing import Any, Final, cast

from pydantic import JsonValue

from agentcore._text import replace_lone_surrogates
from agentcore._value import DEEPEST, is_too_deep

# Control characters may stand in strings as they are (strict=False), and what JSON has no word for becomes a string.
_DECODER: Final = json.JSONDecoder(strict=False, parse_constant=str)
_FENCE: Final = re.compile(r"```[a-zA-Z]*\s*\n(.*?)\n?\s*```", re.DOTALL)
# A string, to be kept, or an escape outside of one: written by models that escape twice.
_STRING_OR_ESCAPE: Final = re.compile(r'("(?:[^"\\]|\\.)*")|\\[nrt]', re.DOTALL)
_LITERAL_LIMIT: Final = 100_000
_DEPTH: Final = 3


class TooDeepError(ValueError):
    """Lists and objects in it are nested too deeply to be handled."""

    def __init__(self) -> None:
        super().__init__(f"it is nested too deeply, and {DEEPEST} levels are the most")


def read_object(text: str) -> dict[str, JsonValue]:
    """Read the object in a text; an empty text is an empty object.

    Control characters in strings, a fence around it, what follows it, an object in a string, a string in pieces and
    Python's way of writing it are understood. A text that breaks off is not: half of a call must not be done.

    Raises:
        ValueError: there is no JSON object at its beginning.
    """
    return _object_in(text, _DEPTH)


def _object_in(text: str, depth: int) -> dict[str, JsonValue]:
    text = text.strip().lstrip("\ufeff")
    if fenced := _FENCE.fullmatch(text):
        text = fenced.group(1).strip()
    if text in {"", "null", "None"}:
        return {}
    value, rest = decode_prefix(text)
    match value:
        case {} if not value and rest.startswith("{"):
            return _object_in(rest, depth)  # a stream that began with an empty object
        case dict():
            return value
        case [dict() as only]:
            return only
        case str() if depth:
            return _object_in(value, depth - 1)
        case [*pieces] if depth and pieces and all(isinstance(piece, str) for piece in pieces):
            return _object_in("".join(cast("list[str]", pieces)), depth - 1)
        case _:
            raise ValueError("it is JSON, but not an object")


def decode_prefix(text: str) -> tuple[JsonValue, str]:
    """Read the JSON value at the beginning of a text, and give what follows it.

    Raises:
        ValueError: there is none, or it breaks off.
    """
    try:
        value, end = _decode(text)
    except json.JSONDecodeError as error:
        repaired = _STRING_OR_ESCAPE.sub(lambda match: match.group(1) or " ", text)
        try:
            value, end = _decode(repaired)
        except json.JSONDecodeError:
            return _python_literal(text, error), ""
        text = repaired
    refuse_too_deep(value)
    return replace_lone_surrogates(value), text[end:].strip()


def _decode(text: str) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text)
    except RecursionError as error:
        raise TooDeepError from error


def _python_literal(text: str, error: json.JSONDecodeError) -> JsonValue:
    """Read a dict or list as Python writes it, with its quotes, True and None."""
    if len(text) <= _LITERAL_LIMIT and text[:1] in {"{", "["}:
        try:
            # Through JSON, which makes lists of tuples and refuses what JSON does not have.
            value = json.loads(json.dumps(ast.literal_eval(text), allow_nan=False))
            refuse_too_deep(value)
            return replace_lone_surrogates(value)
        except TooDeepError:
            raise
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            pass
    raise ValueError(f"{error.msg} at character {error.pos + 1}") from error


def is_same_json(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two values are written alike: `==` makes no difference of 1 and true, nor of the order of keys."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(map(is_same_json, one.values(), other.values()))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same_json, one, other))
    return type(one) is type(other) and one == other


def refuse_too_deep(value: object) -> None:
    """Raise where it is nested too deeply.

    Raises:
        TooDeepError: It is.
    """
    if is_too_deep(value):
        raise TooDeepError
