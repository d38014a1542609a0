"""Ranking texts by the words of a query: BM25, with words found anywhere in a text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

MOST_TERMS: Final = 20
"""The most words of a query that are looked for."""
_SATURATION: Final = 1.2
_LENGTH: Final = 0.75
"""The two constants of BM25, at their usual values."""


def rank(terms: Sequence[str], texts: Iterable[str]) -> list[tuple[float, int]]:
    """Return score and index of each text that holds a term, in the order of the texts; terms and texts are in lower case."""
    counts: list[list[int]] = []
    lengths: list[int] = []
    for text in texts:
        counts.append([text.count(term) for term in terms])
        lengths.append(len(text))
    usual = (sum(lengths) / len(lengths) if lengths else 0) or 1
    rarity: list[float] = []
    for index in range(len(terms)):
        having = sum(1 for found in counts if found[index])
        rarity.append(math.log(1 + (len(counts) - having + 0.5) / (having + 0.5)))
    ranked: list[tuple[float, int]] = []
    for index, (found, length) in enumerate(zip(counts, lengths, strict=True)):
        if any(found):
            scale = _SATURATION * (1 - _LENGTH + _LENGTH * length / usual)
            each = zip(rarity, found, strict=True)
            ranked.append((sum(rare * often * (_SATURATION + 1) / (often + scale) for rare, often in each), index))
    return ranked
