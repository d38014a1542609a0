from __future__ import annotations

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


def test_no_opinions_allow_and_know_no_risk() -> None:
    assert combine([]) == ("allow", None)
    assert combine([Assessment(risk=UNKNOWN)]) == ("allow", None)


def test_deny_goes_before_ask_and_ask_before_allow() -> None:
    allow, ask, deny = (Assessment(verdict="allow"), Assessment(verdict="ask"), Assessment(verdict="deny"))
    assert combine([allow, deny, ask])[0] == "deny"
    assert combine([allow, ask, allow])[0] == "ask"
    assert combine([allow, Assessment(risk=HIGH)]) == ("allow", HIGH)


def test_the_highest_known_risk_counts() -> None:
    risks = [LOW, MEDIUM, UNKNOWN, None]
    assert combine([Assessment(risk=risk) for risk in risks])[1] is MEDIUM


@given(parts, parts)
def test_another_opinion_never_makes_it_looser(some: list[Assessment], more: list[Assessment]) -> None:
    strictness = ["allow", "ask", "deny"]
    levels = [None, LOW, MEDIUM, HIGH]
    verdict, risk = combine(some)
    verdict_of_all, risk_of_all = combine([*some, *more])
    assert strictness.index(verdict_of_all) >= strictness.index(verdict)
    assert levels.index(risk_of_all) >= levels.index(risk)
