"""Old shapes of events, brought up to date when they are read.

One pure function per version of the format: it takes an event's JSON object as that version wrote it and gives it as the
next one writes it. Files are never rewritten; unknown kinds and fields of a newer version need no upgrade and are kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

__all__ = ["FORMAT_VERSION", "UPGRADES", "upgrade"]

FORMAT_VERSION: Final = 1
"""The version that this release writes."""

UPGRADES: Final[Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]] = {}
"""By the version upgraded from. Version 1 is the first."""


def upgrade(
    body: bytes,
    version: int,
    *,
    current: int = FORMAT_VERSION,
    upgrades: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = UPGRADES,
) -> bytes:
    """Give an event's JSON as the current version writes it."""
    if version >= current:
        return body
    event: dict[str, Any] = json.loads(body)
    for step in range(version, current):
        event = upgrades[step](event)
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
