"""One opinion about an action before it starts: may it, and how much harm could it do."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from typing import Literal

from pydantic import JsonValue

from agentcore._value import Recorded
from agentcore.risk import SecurityRisk

__all__ = ["Assessment", "Verdict"]

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
