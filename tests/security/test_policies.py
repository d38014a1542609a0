from __future__ import annotations

import pytest
from pydantic import ValidationError

from agentcore.assessment import SecurityRisk
from agentcore.security import AlwaysConfirm, ConfirmationPolicy, ConfirmRisky, NeverConfirm, RatedAction

UNKNOWN, LOW, MEDIUM, HIGH = SecurityRisk


def action(risk: SecurityRisk, tool: str = "terminal") -> RatedAction:
    return RatedAction(reply_id="r", tool_name=tool, arguments={}, call_id="c", risk=risk)


def asked_about(policy: ConfirmationPolicy) -> set[SecurityRisk]:
    return {risk for risk in SecurityRisk if policy.needs_confirmation(action(risk))}


def test_never_and_always_look_at_no_risk() -> None:
    assert asked_about(NeverConfirm()) == set()
    assert asked_about(AlwaysConfirm()) == set(SecurityRisk)


@pytest.mark.parametrize(
    ("policy", "risks"),
    [
        (ConfirmRisky(), {HIGH, UNKNOWN}),
        (ConfirmRisky(threshold=MEDIUM), {MEDIUM, HIGH, UNKNOWN}),
        (ConfirmRisky(threshold=LOW), {LOW, MEDIUM, HIGH, UNKNOWN}),
        (ConfirmRisky(confirm_unknown=False), {HIGH}),
    ],
)
def test_risky_actions_wait_from_the_threshold_on(policy: ConfirmRisky, risks: set[SecurityRisk]) -> None:
    assert asked_about(policy) == risks


def test_an_unknown_risk_is_no_threshold() -> None:
    with pytest.raises(ValidationError, match="use low, medium or high"):
        ConfirmRisky(threshold=UNKNOWN)


def test_a_class_of_the_program_s_own_is_a_policy() -> None:
    class AskAboutShells:
        def needs_confirmation(self, action: RatedAction) -> bool:
            return action.tool_name == "terminal"

    policy: ConfirmationPolicy = AskAboutShells()
    assert isinstance(policy, ConfirmationPolicy)
    assert not isinstance(object(), ConfirmationPolicy)
    assert policy.needs_confirmation(action(LOW))
    assert not policy.needs_confirmation(action(HIGH, tool="file_editor"))


def test_policies_never_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        ConfirmRisky().threshold = LOW  # type: ignore[misc]
