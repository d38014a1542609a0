"""How often somebody may ask: a bucket for each, which fills again as time passes."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, final

from starlette.types import Scope as AsgiScope

_MOST: Final = 10_000
"""How many buckets are kept. The one that was not used for longest goes first: by then it is full again, or an attack
from that many addresses is under way, which no count per address stops."""


@final
class Buckets:
    """Allows `per_minute` at once and in every minute after, for each name."""

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity = float(per_minute)
        self._per_second = per_minute / 60
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_for(self, name: str) -> float:
        """Return the seconds until the next is allowed: 0 where it is allowed now. It takes nothing."""
        left = self._now_left(name)
        return 0.0 if left >= 1 else (1 - left) / self._per_second

    def take(self, name: str) -> float:
        """Take one where it is allowed now, and return 0; else return the seconds until it will be."""
        wait = self.wait_for(name)
        if not wait:
            self._left[name] = (self._now_left(name) - 1, self._clock())
            self._left.move_to_end(name)
            if len(self._left) > _MOST:
                self._left.popitem(last=False)
        return wait

    def _now_left(self, name: str) -> float:
        left, at = self._left.get(name, (self._capacity, 0.0))
        return min(self._capacity, left + max(0.0, self._clock() - at) * self._per_second)


def client_address(scope: AsgiScope) -> str:
    """Return whose requests count together: the client's address, of IPv6 its /64 network, or "local" on a Unix socket."""
    client = scope.get("client")
    if not client:
        return "local"
    try:
        address = ipaddress.ip_address(client[0].partition("%")[0])
    except ValueError:
        return "local"
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.IPv6Network((address, 64), strict=False))
    return str(address)
