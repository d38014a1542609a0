"""A limit as a flag says it: so much, or none. Below everything else here; `--help` needs it, so it imports nothing of agentcore."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

import typer

__all__ = ["Dollars", "Steps", "dollars", "steps"]

_NONE: Final = "none"


@dataclass(frozen=True, slots=True)
class Dollars:
    """What may be spent."""

    amount: Decimal | None
    """None lifts a limit that there is."""


@dataclass(frozen=True, slots=True)
class Steps:
    """How many model calls there may be."""

    number: int | None
    """None lifts a limit that there is."""


def dollars(text: str) -> Dollars:
    """Read an amount.

    Raises:
        typer.BadParameter: It is none.
    """
    if text.lower() == _NONE:
        return Dollars(None)
    try:
        amount = Decimal(text.removeprefix("$"))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise typer.BadParameter(f"{text!r} is no amount of dollars, and not 'none'.")
    return Dollars(amount)


def steps(text: str) -> Steps:
    """Read a number of steps.

    Raises:
        typer.BadParameter: It is none.
    """
    if text.lower() == _NONE:
        return Steps(None)
    if not (text.isdecimal() and int(text)):
        raise typer.BadParameter(f"{text!r} is no number of steps from 1 on, and not 'none'.")
    return Steps(int(text))
