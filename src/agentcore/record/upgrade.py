"""Old shapes of events, brought up to date when they are read.

One pure function per version of the format: it takes an event's JSON object as that version wrote it and gives it as the
next one writes it. Files are never rewritten; unknown kinds and fields of a newer version need no upgrade and are kept.

A log is in one format. A version that is to continue logs of an older format must mark the place where it does, by an
event of a kind that is new and critical: older versions then know that they must not go on with it. Until there is such
a version, a log in another format than the current one is only read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

__all__ = ["FORMAT_VERSION", "UPGRADES", "other_format", "upgrade"]

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
    """Give an event's JSON as the current version writes it; one of a newer version as it is."""
    if version >= current:
        return body
    event: dict[str, Any] = json.loads(body)
    for step in range(version, current):
        event = upgrades[step](event)
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()


def other_format(version: int) -> str:
    """Say why a log in this format is not continued."""
    return f"it is in format {version}, and this version of agentcore writes format {FORMAT_VERSION}"
