"""How much harm an action could do."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["SecurityRisk"]


class SecurityRisk(StrEnum):
    """A risk level. `UNKNOWN` is not a level: it compares with nothing, and a policy says what it means."""

    UNKNOWN = "unknown"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    def is_at_least(self, threshold: SecurityRisk) -> bool:
        """Return whether this risk reaches the threshold.

        Raises:
            ValueError: one of the two is `UNKNOWN`.
        """
        if SecurityRisk.UNKNOWN in (self, threshold):
            raise ValueError("An unknown risk is neither above nor below another: decide what unknown means first.")
        return _ORDER[self] >= _ORDER[threshold]


_ORDER = {SecurityRisk.LOW: 0, SecurityRisk.MEDIUM: 1, SecurityRisk.HIGH: 2}
