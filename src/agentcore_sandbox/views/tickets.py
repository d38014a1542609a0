"""`Tickets`: who may look at one view. A ticket stands in an address, is good for one use, and opens a session.

Above: the views of a workspace here, and those on a server. It knows nothing of HTTP.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Final, final

TICKET_SECONDS: Final = 60.0
"""How long a ticket is good for."""
_MOST: Final = 64
"""How many tickets and sessions there are at once; the oldest gives way."""


@final
class Tickets:
    """The tickets and sessions of one view.

    Args:
        now: A clock that never goes back, in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._tickets: dict[str, float] = {}
        self._sessions: dict[str, None] = {}

    def issue(self) -> str:
        """Return a new ticket: 43 characters that can stand in a path."""
        self._drop_late()
        _make_room(self._tickets)
        ticket = secrets.token_urlsafe(32)
        self._tickets[ticket] = self._now() + TICKET_SECONDS
        return ticket

    def exchange(self, ticket: str) -> str | None:
        """Take a ticket, which is spent now, and return the key of a new session; None if it is not good (any more)."""
        self._drop_late()
        # Looked up by a digest, as all dictionaries do: how long that takes tells nothing of the tickets there are.
        if self._tickets.pop(ticket, None) is None:
            return None
        _make_room(self._sessions)
        session = secrets.token_urlsafe(32)
        self._sessions[session] = None
        return session

    def has_session(self, key: str) -> bool:
        """Return True if this is the key of a session."""
        return key in self._sessions

    def _drop_late(self) -> None:
        now = self._now()
        self._tickets = {ticket: until for ticket, until in self._tickets.items() if now < until}


def _make_room(kept: dict[str, float] | dict[str, None]) -> None:
    while len(kept) >= _MOST:
        del kept[next(iter(kept))]
