from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.assessment import Assessment, SecurityRisk
from agentcore.security import combine

UNKNOWN, LOW, MEDIUM, HIGH = SecurityRisk
parts = st.lists(
    st.builds(
        Assessment, verdict=st.sampled_from([None, "allow", "ask", "deny"]), risk=st.sampled_from([None, *SecurityRisk])
    )
)


ALLOW, ASK, DENY = Assessment(verdict="allow"), Assessment(verdict="ask"), Assessment(verdict="deny")


@pytest.mark.parametrize(
    ("opinions", "verdict", "risk"),
    [
        ([], "allow", None),
        ([Assessment(risk=UNKNOWN)], "allow", None),
        ([ALLOW, DENY, ASK], "deny", None),
        ([ALLOW, ASK, ALLOW], "ask", None),
        ([ALLOW, Assessment(risk=HIGH)], "allow", HIGH),
        ([Assessment(risk=risk) for risk in (LOW, MEDIUM, UNKNOWN, None)], "allow", MEDIUM),
    ],
)
def test_the_strictest_verdict_and_the_highest_known_risk_count(
    opinions: list[Assessment], verdict: str, risk: SecurityRisk | None
) -> None:
    assert combine(opinions) == (verdict, risk)


@given(parts, parts)
def test_another_opinion_never_makes_it_looser(some: list[Assessment], more: list[Assessment]) -> None:
    strictness = ["allow", "ask", "deny"]
    levels = [None, LOW, MEDIUM, HIGH]
    verdict, risk = combine(some)
    verdict_of_all, risk_of_all = combine([*some, *more])
    assert strictness.index(verdict_of_all) >= strictness.index(verdict)
    assert levels.index(risk_of_all) >= levels.index(risk)
