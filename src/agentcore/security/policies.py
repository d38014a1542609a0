"""Confirmation policies: checks that decide which actions a person is asked about.

A policy looks at one action and its risk. That it is asked once per action, that some actions are never asked about,
and what happens while a person thinks, is for the conversation above.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import inspect
from collections.abc import Awaitable
from typing import Annotated, Literal, Protocol, runtime_checkable

from pydantic import Field, field_validator

from agentcore._value import Value
from agentcore.assessment import Assessment
from agentcore.events import ActionEvent
from agentcore.risk import SecurityRisk
from agentcore.security.check import CHECK_SECONDS, CheckContext, Opinion, RatedAction, rated

__all__ = ["AlwaysConfirm", "ConfirmRisky", "ConfirmationPolicy", "NeverConfirm", "RecordedPolicy", "ask_policy"]


@runtime_checkable
class ConfirmationPolicy(Protocol):
    """Decides which actions wait for a person: the simplest check. A class of your own meets it by having the one method."""

    def needs_confirmation(self, action: RatedAction) -> bool:
        """Return whether the action waits until somebody approves or rejects it. Anything but False makes it wait."""
        ...


def ask_policy(
    policy: ConfirmationPolicy, action: ActionEvent, context: CheckContext, reason: str = "The policy asks about it."
) -> Opinion | Awaitable[Opinion]:
    """Return a policy's answer as the opinion of a check. Whatever it answers, nothing is allowed by accident."""
    answer: object = policy.needs_confirmation(rated(action, context.risk))
    return _read_later(answer, reason) if inspect.isawaitable(answer) else _read(answer, reason)


async def _read_later(answer: Awaitable[object], reason: str) -> Opinion:
    return _read(await answer, reason)


def _read(answer: object, reason: str) -> Opinion:
    if answer is False:
        return None
    if answer is not True:
        forgotten = " Does it end without a return?" if answer is None else ""
        reason = f"The policy answered with {type(answer).__name__}, which is neither True nor False.{forgotten}"
    return Assessment(verdict="ask", reason=reason)


class _Policy(Value):
    """What the policies have in common: they are checks by the method that makes them policies."""

    @property
    def timeout(self) -> float:
        """How long an answer that comes later may take."""
        return CHECK_SECONDS

    def needs_confirmation(self, action: RatedAction) -> bool:
        """Return whether the action waits."""
        raise NotImplementedError

    def assess(self, action: ActionEvent, context: CheckContext) -> Opinion | Awaitable[Opinion]:
        """Ask where the action needs confirmation, else have no opinion."""
        return ask_policy(self, action, context, self._reason(context.risk))  # a subclass may have replaced its method

    def _reason(self, risk: SecurityRisk) -> str:
        del risk
        return "The policy asks about it."


class NeverConfirm(_Policy):
    """Every action starts at once."""

    name: Literal["never_confirm"] = "never_confirm"

    def assess(self, action: ActionEvent, context: CheckContext) -> Opinion | Awaitable[Opinion]:
        """Have no opinion."""
        # At once, as this is asked about most calls there are; a subclass may need confirmation all the same.
        return None if type(self) is NeverConfirm else super().assess(action, context)

    def needs_confirmation(self, action: RatedAction) -> bool:
        """Return False."""
        del action
        return False


class AlwaysConfirm(_Policy):
    """Every action waits."""

    name: Literal["always_confirm"] = "always_confirm"

    def needs_confirmation(self, action: RatedAction) -> bool:
        """Return True."""
        del action
        return True

    def _reason(self, risk: SecurityRisk) -> str:
        del risk
        return "Every action is asked about."


class ConfirmRisky(_Policy):
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

    def needs_confirmation(self, action: RatedAction) -> bool:
        """Compare the action's risk with the threshold."""
        if action.risk is SecurityRisk.UNKNOWN:
            return self.confirm_unknown
        return action.risk.is_at_least(self.threshold)

    def _reason(self, risk: SecurityRisk) -> str:
        return f"Its risk is {risk}."


RecordedPolicy = Annotated[NeverConfirm | AlwaysConfirm | ConfirmRisky, Field(discriminator="name")]
"""The policies that a log can name, so that a conversation that is opened again has them."""
