"""Confirmation policies: checks that decide which actions a person is asked about.

A policy looks at one action and its risk. That it is asked once per action, that some actions are never asked about,
and what happens while a person thinks, is for the conversation above.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Protocol, TypeAlias, cast, final, runtime_checkable

from pydantic import Field, JsonValue, TypeAdapter, ValidationError, field_validator

from agentcore._value import Value
from agentcore.assessment import Assessment, SecurityRisk
from agentcore.events import ActionEvent
from agentcore.security.check import CHECK_SECONDS, Check, CheckContext, Opinion, RatedAction, rated


@final
@dataclass(frozen=True, slots=True)
class Approve:
    """Yes: the action starts."""

    arguments: dict[str, Any] | None = None
    """Other arguments to start it with, or None for those that it has. The log keeps both."""
    by: str | None = None
    """The name of the person."""


@final
@dataclass(frozen=True, slots=True)
class Reject:
    """No: the action never starts, and the model reads why."""

    reason: str = "The user said no and gave no reason."
    """The reason that the model reads."""
    by: str | None = None
    """The name of the person."""


Confirm: TypeAlias = Callable[[RatedAction], Awaitable[bool | Approve | Reject] | bool | Approve | Reject]
"""A function of the program that is asked about each action that needs confirmation; one that is not async is called in a
worker thread. True is `Approve()`, False is `Reject()`."""


def read_answer(answer: object, action: ActionEvent | None = None) -> Approve | Reject:
    """Return the answer of the program's function as `Approve` or `Reject`.

    Args:
        answer: What it returned.
        action: What it was asked about, for the error to name.

    Raises:
        TypeError: It is neither, nor True or False. Nothing is approved by accident.
    """
    if isinstance(answer, (Approve, Reject)):
        return answer
    if answer is True:
        return Approve()
    if answer is False:
        return Reject()
    about = f" about a call of {action.tool_name!r}" if action is not None else ""
    forgotten = " Does it end without a return?" if answer is None else ""
    raise TypeError(
        f"The confirmation callback was asked{about} and answered {answer!r}. "
        f"Return True, False, Approve(...) or Reject(...).{forgotten}"
    )


@runtime_checkable
class ConfirmationPolicy(Protocol):
    """Decides which actions wait for a person: the simplest check. A class of your own meets it by having the one method."""

    def needs_confirmation(self, action: RatedAction) -> bool:
        """Return whether the action waits until a person approves or rejects it. Anything but False makes it wait."""
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
    """The base of the policies: a policy is a check by the method that makes it a policy."""

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
    """True if an action waits of unknown risk."""

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


Checks: TypeAlias = Check | ConfirmationPolicy | Sequence[Check | ConfirmationPolicy]
"""A check, a policy, or several of them."""


@cache
def _adapter() -> TypeAdapter[NeverConfirm | AlwaysConfirm | ConfirmRisky]:
    # Built when the first policy is read, so that importing agentcore stays cheap.
    return TypeAdapter(RecordedPolicy)


def record_checks(checks: Checks) -> dict[str, JsonValue]:
    """Return a policy's name and parameters; of anything else, "custom" and the name of its class."""
    check = checks[0] if isinstance(checks, list | tuple) and len(checks) == 1 else checks
    # The class itself, not a subclass: that may ask about more, and must not come back as one that asks about less.
    if type(check) is NeverConfirm or type(check) is AlwaysConfirm or type(check) is ConfirmRisky:
        return check.model_dump(mode="json")
    parts = checks if isinstance(checks, list | tuple) else (checks,)
    return {"name": "custom", "class": ", ".join(type(part).__qualname__ for part in parts)}


def read_checks(recorded: Mapping[str, Any]) -> NeverConfirm | AlwaysConfirm | ConfirmRisky | None:
    """Return the policy that was recorded, or None where it can't be had from the log.

    That is so for checks of the program's own, and for what only a newer version can read. None says that the program
    has to pass its checks again, and not that nothing needs to be confirmed.
    """
    try:
        return _adapter().validate_python(dict(recorded))
    except ValidationError:
        return None


def is_checks(given: object) -> bool:
    """Return whether it is a check, a policy, or a list of such: what `as_checks` takes."""
    items = cast("Sequence[object]", given) if isinstance(given, list | tuple) else (given,)
    return all(_is_check(item) for item in items)


def as_checks(given: Checks) -> tuple[Check, ...]:
    """Make checks of what a program gave: one, or several that are asked in this order.

    Raises:
        TypeError: One of them lacks a part of `Check`.
    """
    items = cast("Sequence[Any]", given if isinstance(given, list | tuple) else (given,))
    for item in items:
        missing = [part for part in ("name", "timeout") if hasattr(item, "assess") and not hasattr(item, part)]
        if missing:
            raise TypeError(
                f"The check {type(item).__name__} has no {' and no '.join(missing)}: a check has `name` (text), `timeout` "
                "(seconds, for one that is async) and `assess(action, context)`."
            )
    return tuple(item if hasattr(item, "assess") else _PolicyCheck(item) for item in items)


def _is_check(given: object) -> bool:
    # Statically: a mock, which may stand for the function that is asked, has any attribute that is looked for.
    return not isinstance(given, type) and any(
        inspect.getattr_static(given, name, None) is not None for name in ("assess", "needs_confirmation")
    )


@final
class _PolicyCheck:
    """A class with `needs_confirmation` alone."""

    timeout = CHECK_SECONDS

    def __init__(self, policy: ConfirmationPolicy) -> None:
        self._policy = policy
        self.name = type(policy).__name__

    def assess(self, action: ActionEvent, context: CheckContext) -> Opinion | Awaitable[Opinion]:
        return ask_policy(self._policy, action, context)
