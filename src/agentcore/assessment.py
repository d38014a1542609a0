"""One opinion about an action before it starts: may it, and how much harm could it do."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from enum import StrEnum
from typing import Literal

from pydantic import JsonValue

from agentcore._value import Recorded


class SecurityRisk(StrEnum):
    """A risk level. `UNKNOWN` is not a level: it compares with nothing, and a policy says what it means."""

    UNKNOWN = "unknown"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    def is_at_least(self, threshold: "SecurityRisk") -> bool:
        """Return whether this risk reaches the threshold.

        Raises:
            ValueError: one of the two is `UNKNOWN`.
        """
        if SecurityRisk.UNKNOWN in (self, threshold):
            raise ValueError("An unknown risk is neither above nor below another: decide what unknown means first.")
        return _ORDER[self] >= _ORDER[threshold]


_ORDER = {SecurityRisk.LOW: 0, SecurityRisk.MEDIUM: 1, SecurityRisk.HIGH: 2}

Verdict = Literal["allow", "ask", "deny"]
"""The verdict on an action: it may start, waits for a person, or never starts."""


class Assessment(Recorded):
    """The opinion of one check about one action. It says at least one of: a verdict, a risk, other arguments."""

    verdict: Verdict | None = None
    """None where the check leaves that to the others."""
    risk: SecurityRisk | None = None
    """None where the check does not know, as is `SecurityRisk.UNKNOWN`."""
    reason: str = ""
    """Why: for the person who is asked, and for the model where the action is denied."""
    by: str = ""
    """The name of the check; filled in where the check leaves it empty."""
    arguments: dict[str, JsonValue] | None = None
    """Other arguments to start the action with. They are assessed once more by the checks that are not analyzers."""
