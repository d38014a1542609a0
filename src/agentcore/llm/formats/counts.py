"""What a provider says a reply used, made of nothing but counts."""

from __future__ import annotations

import math
from typing import Any, cast

from pydantic import JsonValue

from agentcore._value import is_too_deep
from agentcore.llm.formats.text import clean

__all__ = ["as_reported", "counted"]

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
