from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.assessment import SecurityRisk
from agentcore.events import ActionEvent, ConversationStateUpdateEvent, PolicySet, parse_event
from agentcore.security import (
    AlwaysConfirm,
    ConfirmRisky,
    NeverConfirm,
    read_checks,
    record_checks,
)

levels = st.sampled_from([SecurityRisk.LOW, SecurityRisk.MEDIUM, SecurityRisk.HIGH])
policies = st.one_of(
    st.just(NeverConfirm()),
    st.just(AlwaysConfirm()),
    st.builds(ConfirmRisky, threshold=levels, confirm_unknown=st.booleans()),
)


@given(policy=policies)
def test_a_policy_comes_back_from_a_log_as_it_was(policy: NeverConfirm | AlwaysConfirm | ConfirmRisky) -> None:
    event = ConversationStateUpdateEvent(update=PolicySet(policy=record_checks(policy)))
    kept = parse_event(event.model_dump_json())
    assert isinstance(kept, ConversationStateUpdateEvent)
    assert isinstance(kept.update, PolicySet)
    assert read_checks(kept.update.policy) == policy


def test_the_record_is_a_name_and_parameters() -> None:
    assert record_checks(NeverConfirm()) == {"name": "never_confirm"}
    assert record_checks(AlwaysConfirm()) == {"name": "always_confirm"}
    assert json.dumps(record_checks(ConfirmRisky(threshold=SecurityRisk.LOW))) == (
        '{"name": "confirm_risky", "threshold": "low", "confirm_unknown": true}'
    )


def test_a_policy_of_the_program_s_own_does_not_come_back() -> None:
    class AskAboutShells:
        def needs_confirmation(self, action: ActionEvent) -> bool:
            return action.tool_name == "terminal"

    recorded = record_checks(AskAboutShells())
    assert recorded["name"] == "custom"
    assert "AskAboutShells" in str(recorded["class"])
    assert read_checks(recorded) is None


def test_a_stricter_subclass_does_not_come_back_as_what_it_was_made_from() -> None:
    class NeverButForShells(NeverConfirm):
        def needs_confirmation(self, action: ActionEvent) -> bool:
            return action.tool_name == "terminal"

    assert read_checks(record_checks(NeverButForShells())) is None


def test_one_policy_in_a_list_is_recorded_as_itself_and_several_are_the_program_s_own() -> None:
    assert record_checks([AlwaysConfirm()]) == record_checks(AlwaysConfirm())
    assert read_checks(record_checks([NeverConfirm(), AlwaysConfirm()])) is None


@pytest.mark.parametrize(
    "recorded",
    [
        {},
        {"name": "ask_on_sundays"},
        {"name": "confirm_risky", "threshold": "apocalyptic"},
        {"name": "confirm_risky", "threshold": "unknown"},
        {"name": "never_confirm", "except_for": ["terminal"]},
    ],
)
def test_what_this_version_can_t_read_exactly_is_no_policy(recorded: dict[str, Any]) -> None:
    assert read_checks(recorded) is None
