"""Which open conversations are closed: those that rest for long, and, where room is needed, those that rest the longest."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agentcore_serve.served import Served
from agentcore_serve.settings import ServeLimits

_JUST_USED = 5.0
"""Seconds in which somebody may still be about to do something in it."""


def choose_to_close(
    served: Iterable[Served], holds_sessions: Callable[[str], bool], now: float, limits: ServeLimits
) -> list[Served]:
    """Return the conversations that rested for so long that nobody misses them."""
    return [
        each
        for each in served
        if each.may_close
        and not each.watchers
        and now - each.used >= (limits.held_seconds if holds_sessions(each.id) else limits.idle_seconds)
    ]


def choose_to_make_room(served: Iterable[Served], holds_sessions: Callable[[str], bool], now: float) -> Served | None:
    """Return the conversation that is missed the least: not followed, with nothing open, and used the longest ago."""
    able = [each for each in served if each.may_close and now - each.used >= _JUST_USED]
    return min(able, key=lambda each: (each.watchers > 0, holds_sessions(each.id), each.used), default=None)
