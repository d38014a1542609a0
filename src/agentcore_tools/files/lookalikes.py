"""Characters that look alike: a model writes the one that it knows, where the file has another."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final

_MOST_NAMED: Final = 3
_LIKE: Final = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "),
    }
)
_FOLDED: Final = frozenset(map(chr, _LIKE))


def fold(text: str) -> str:
    """Return text in which characters that look alike are the same: quotes, dashes, blanks, and letters however composed."""
    return text if text.isascii() else unicodedata.normalize("NFC", text).translate(_LIKE)


def difference(there: str, sought: str) -> str:
    """Name the characters in which two texts differ that fold to the same one."""
    parts = [
        f"{whose} {', '.join(list(_named(one, other))[:_MOST_NAMED])}"
        for whose, one, other in (("the file has", there, sought), ("the text given has", sought, there))
        if set(_odd(one)) - set(_odd(other))
    ]
    return " and ".join(parts)


def _odd(text: str) -> Iterator[str]:
    """Return the characters that folding may change: others that look alike, and letters with their marks."""
    return (
        each
        for each in text
        if not each.isascii() and (each in _FOLDED or unicodedata.combining(each) or unicodedata.decomposition(each))
    )


def _named(one: str, other: str) -> Iterator[str]:
    strange = set(_odd(other))
    for each in dict.fromkeys(_odd(one)):
        if each not in strange:
            yield f"U+{ord(each):04X} {unicodedata.name(each, 'without a name')}"
