"""Confirmation policies: which actions a person is asked about before they start.

A policy looks at one action and its risk. That it is asked once per action, that some actions are never asked about,
and what happens while a person thinks, is for the conversation above.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from typing import Annotated, Literal, Protocol, runtime_checkable

from pydantic import Field, field_validator

from agentcore._value import Value
from agentcore.events import ActionEvent
from agentcore.risk import SecurityRisk

__all__ = ["AlwaysConfirm", "ConfirmRisky", "ConfirmationPolicy", "NeverConfirm", "RecordedPolicy"]


@runtime_checkable
class ConfirmationPolicy(Protocol):
    """Decides which actions wait for a person. A class of your own meets it by having the one method."""

    def needs_confirmation(self, action: ActionEvent) -> bool:
        """Say whether the action waits until somebody approves or rejects it."""
        ...


class NeverConfirm(Value):
    """Every action starts at once."""

    name: Literal["never_confirm"] = "never_confirm"

    def needs_confirmation(self, action: ActionEvent) -> bool:
        """Say no."""
        del action
        return False


class AlwaysConfirm(Value):
    """Every action waits."""

    name: Literal["always_confirm"] = "always_confirm"

    def needs_confirmation(self, action: ActionEvent) -> bool:
        """Say yes."""
        del action
        return True


class ConfirmRisky(Value):
    """An action waits if its risk reaches a threshold."""

    name: Literal["confirm_risky"] = "confirm_risky"
    threshold: SecurityRisk = SecurityRisk.HIGH
    """The lowest risk that waits: low, medium or high."""
    confirm_unknown: bool = True
    """Whether an action waits whose risk nobody has told."""

    @field_validator("threshold")
    @classmethod
    def _is_a_level(cls, threshold: SecurityRisk) -> SecurityRisk:
        if threshold is SecurityRisk.UNKNOWN:
            raise ValueError(
                "an unknown risk is no threshold: use low, medium or high, and confirm_unknown for the rest"
            )
        return threshold

    def needs_confirmation(self, action: ActionEvent) -> bool:
        """Compare the action's risk with the threshold."""
        if action.risk is SecurityRisk.UNKNOWN:
            return self.confirm_unknown
        return action.risk.is_at_least(self.threshold)


RecordedPolicy = Annotated[NeverConfirm | AlwaysConfirm | ConfirmRisky, Field(discriminator="name")]
"""The policies that a log can name, so that a conversation that is opened again has them."""
