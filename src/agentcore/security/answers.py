"""What a program may answer when it is asked about an action."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from agentcore.events import ActionEvent
from agentcore.security.check import RatedAction

__all__ = ["Approve", "Confirm", "Reject", "read_answer"]


@final
@dataclass(frozen=True, slots=True)
class Approve:
    """Yes: the action starts."""

    arguments: dict[str, Any] | None = None
    """Other arguments to start it with, or None for those that it has. The log keeps both."""
    by: str | None = None
    """Who says so."""


@final
@dataclass(frozen=True, slots=True)
class Reject:
    """No: the action never starts, and the model reads why."""

    reason: str = "The user said no and gave no reason."
    """What the model is told."""
    by: str | None = None
    """Who says so."""


Confirm: TypeAlias = Callable[[RatedAction], Awaitable[bool | Approve | Reject]]
"""An async function of the program that is asked about each action that needs confirmation. True is `Approve()`, False is
`Reject()`."""


def read_answer(answer: object, action: ActionEvent | None = None) -> Approve | Reject:
    """Give what the program's function answered, as `Approve` or `Reject`.

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
