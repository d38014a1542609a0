"""What a program gives as its checks: checks, and policies of its own, which are made into checks."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, TypeAlias, cast, final

from agentcore.events import ActionEvent
from agentcore.security.check import CHECK_SECONDS, Check, CheckContext, Opinion
from agentcore.security.policies import ConfirmationPolicy, ask_policy

__all__ = ["Checks", "as_checks", "is_checks"]

Checks: TypeAlias = Check | ConfirmationPolicy | Sequence[Check | ConfirmationPolicy]
"""A check, a policy, or several of them."""


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
    return not isinstance(given, type) and (hasattr(given, "assess") or hasattr(given, "needs_confirmation"))


@final
class _PolicyCheck:
    """A class with `needs_confirmation` alone."""

    timeout = CHECK_SECONDS

    def __init__(self, policy: ConfirmationPolicy) -> None:
        self._policy = policy
        self.name = type(policy).__name__

    def assess(self, action: ActionEvent, context: CheckContext) -> Opinion | Awaitable[Opinion]:
        return ask_policy(self._policy, action, context)
