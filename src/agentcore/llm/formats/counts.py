"""What a provider says a reply used, made of nothing but counts."""

from __future__ import annotations

import math
from typing import Any, cast

__all__ = ["counted"]

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
