"""One outcome of several opinions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from agentcore.assessment import Assessment, Verdict
from agentcore.risk import SecurityRisk

__all__ = ["combine", "highest_risk"]

_HIGHEST: Final = (SecurityRisk.HIGH, SecurityRisk.MEDIUM, SecurityRisk.LOW)


def combine(parts: Iterable[Assessment]) -> tuple[Verdict, SecurityRisk | None]:
    """Combine opinions about an action: deny before ask before allow, and the highest risk.

    Where no part has a verdict the action is allowed; where none knows the risk it is None.
    """
    parts = tuple(parts)
    verdicts = {part.verdict for part in parts}
    verdict: Verdict = "deny" if "deny" in verdicts else "ask" if "ask" in verdicts else "allow"
    return verdict, highest_risk(parts)


def highest_risk(parts: Iterable[Assessment]) -> SecurityRisk | None:
    """Give the highest risk that one of the parts names."""
    risks = {part.risk for part in parts}
    return next((risk for risk in _HIGHEST if risk in risks), None)
