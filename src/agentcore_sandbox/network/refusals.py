"""The connections that the proxy of a box has refused: for the log, and for the model that ran the command.

Many programs print the status of a refusal and not its text (curl prints "response 403"), so that a workspace adds
`since` to what the command printed.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Literal, NamedTuple, final

from agentcore.logs import get_logger

_log = get_logger(__name__)

_KEPT: Final = 100
_LOGGED: Final = 1000

Reason = Literal["host", "address", "host_header", "server_name"]
"""The rule that refused: the host or port is not allowed, its address is private, or a request names two different hosts."""


class NetworkRefusal(NamedTuple):
    """One connection or request that was refused."""

    host: str
    port: int
    reason: Reason
    message: str
    """One sentence, for the model and for people."""


@final
class Refusals:
    """The refusals of one box. Each kind is logged once, however often a program tries."""

    def __init__(self) -> None:
        self._count = 0
        self._latest: deque[NetworkRefusal] = deque(maxlen=_KEPT)
        self._logged: set[tuple[str, int, Reason]] = set()

    @property
    def count(self) -> int:
        """How many there were so far; a mark for `since`."""
        return self._count

    def add(self, refusal: NetworkRefusal) -> None:
        """Note a refusal, and log it."""
        self._count += 1
        self._latest.append(refusal)
        key = (refusal.host, refusal.port, refusal.reason)
        if key in self._logged or len(self._logged) > _LOGGED:
            return
        self._logged.add(key)
        if len(self._logged) > _LOGGED:
            _log.warning("network_refusals_not_logged", after=_LOGGED)
        else:
            _log.warning("network_refused", host=refusal.host, port=refusal.port, reason=refusal.reason)

    def since(self, mark: int) -> tuple[NetworkRefusal, ...]:
        """Return the refusals after a mark, each once; of very many the latest."""
        count = min(self._count - mark, len(self._latest))
        return tuple(dict.fromkeys(list(self._latest)[len(self._latest) - count :]))
