"""JSON as people write it in settings: with comments and commas at the end, and with its mistakes named by line and column."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Final, final

# What is not closed reaches to the end, so that each character is looked at once.
_STRING: Final = r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)'
_COMMENT: Final = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA: Final = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)
_NOT_BLANK: Final = re.compile(r"[^\s]")


@final
class Malformed(Exception):
    """A text that is not JSON, and where that shows."""


@final
class Members(dict[str, Any]):
    """An object of a JSON text."""

    repeated: tuple[str, ...] = ()
    """The keys that stand in it more than once. The value is that of the first."""


def parse(text: str) -> Any:
    """Parse JSON with comments; each object is a `Members`.

    Raises:
        Malformed: It is not JSON: the sentence has line and column.
    """
    try:
        return json.loads(_blank(_LAST_COMMA, _blank(_COMMENT, text)), object_pairs_hook=_collect)
    except json.JSONDecodeError as error:
        raise Malformed(f"line {error.lineno}, column {error.colno}: this is not JSON: {error.msg}.") from None
    except RecursionError:
        raise Malformed("its lists and objects are nested too deeply.") from None
    except ValueError as error:  # a number of thousands of digits
        raise Malformed(f"this is not JSON: {error}.") from None


def has_comments(text: str) -> bool:
    """Return whether a JSON text has comments, which writing it again would lose."""
    return _blank(_COMMENT, text) != text


def _blank(pattern: re.Pattern[str], text: str) -> str:
    # Spaces in their place, so that lines and columns stay what they are.
    return pattern.sub(lambda found: found[1] or _NOT_BLANK.sub(" ", found[0]), text)


def _collect(pairs: list[tuple[str, Any]]) -> Members:
    members = Members()
    for key, value in pairs:
        members.setdefault(key, value)
    if len(members) != len(pairs):
        members.repeated = tuple(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
    return members
