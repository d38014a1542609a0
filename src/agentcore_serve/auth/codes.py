"""Codes that are good once and for seconds: tickets of WebSockets, and the codes that bring a page its cookie."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from typing import Final, Literal, NamedTuple, final

TICKET_SECONDS: Final = 30.0
PAGE_CODE_SECONDS: Final = 60.0

_MOST: Final = 10_000
"""How many codes wait at most; the oldest is forgotten first."""


class _Waiting(NamedTuple):
    key_id: str
    until: float


@final
class OneUseCodes:
    """Codes in memory, each for one key. A restart voids them."""

    def __init__(
        self, prefix: Literal["act", "acp"], seconds: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._prefix = prefix
        self.seconds = seconds
        """How long a code is good."""
        self._clock = clock
        self._waiting: dict[bytes, _Waiting] = {}

    def __repr__(self) -> str:
        return f"OneUseCodes({self._prefix!r}, waiting={len(self._waiting)})"

    def issue(self, key_id: str) -> str:
        """Return a new code, which stands for this key."""
        now = self._clock()
        # All live equally long, so those that are over are the first.
        while self._waiting:
            oldest = next(iter(self._waiting))
            if self._waiting[oldest].until > now and len(self._waiting) < _MOST:
                break
            del self._waiting[oldest]
        code = f"{self._prefix}_{secrets.token_hex(32)}"
        self._waiting[_digest(code)] = _Waiting(key_id, now + self.seconds)
        return code

    def redeem(self, code: str) -> str | None:
        """Return the id of the key that a code stands for, and void it; None where it is wrong, used or too old."""
        found = self._waiting.pop(_digest(code), None)
        return None if found is None or found.until <= self._clock() else found.key_id


def _digest(code: str) -> bytes:
    # Looked up by digest, so that the time of a comparison tells nothing about a code.
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).digest()
