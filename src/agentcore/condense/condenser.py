"""The seam for making a history shorter: what a condenser is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isawaitable
from typing import Any, Protocol

from pydantic import JsonValue

from agentcore._value import Value
from agentcore.condense.outline import Outline
from agentcore.events import Condensation


class CondenserSpec(Value):
    """The record of a condenser, from which `resolve_condenser` makes it again. Never holds the value of a secret."""

    name: str
    """The name of a factory (see `register_condenser`)."""
    params: dict[str, JsonValue] = {}
    """The keyword arguments of the factory."""


class Condenser(Protocol):
    """Decides what the model is not shown any more: a frozen value that serves any number of conversations at once.

    A condenser of a program's own need not have `record`.
    """

    async def condense(self, outline: Outline) -> Condensation | None:
        """Return a condensation, made by `outline.forget` or `outline.mask`, or None to leave the history as it is.

        Asked before each step, so that it should first compare `outline.used` with `outline.room`; what follows from its
        failing depends on `outline.reason`. It runs within `Limits.step_seconds`, and an interrupt cancels it.

        Args:
            outline: The history as the model is shown it now, and the means to shorten it.
        """
        ...

    def record(self) -> CondenserSpec | None:
        """Return the condenser as a log holds it; None where it cannot be written down."""
        ...


def record_condenser(condenser: Condenser) -> CondenserSpec | None:
    """Return a condenser as a log holds it; None where it cannot be written down, as where it has no `record`.

    Raises:
        TypeError: Its `record` returned something else.
    """
    record: Callable[[], Any] | None = getattr(condenser, "record", None)
    spec: object = None if record is None else record()
    if spec is None or isinstance(spec, CondenserSpec):
        return spec
    raise _wrong_type(condenser, "record", spec, "a CondenserSpec")


async def ask_condenser(condenser: Condenser, outline: Outline) -> Condensation | None:
    """Ask a condenser, which may be a program's own, and check the type of its answer.

    Raises:
        TypeError: Its `condense` is not async, or returned something else.
    """
    answering: Any = condenser.condense(outline)
    if not isawaitable(answering):
        raise TypeError(
            f"{type(condenser).__name__}: its condense() is not async: write `async def condense(self, outline)`."
        )
    answer: object = await answering
    if answer is None or isinstance(answer, Condensation):
        return answer
    raise _wrong_type(condenser, "condense", answer, "a Condensation")


def _wrong_type(condenser: Condenser, method: str, answer: object, expected: str) -> TypeError:
    kind = type(answer).__name__
    article = "an" if kind[0] in "aeiouAEIOU" else "a"
    return TypeError(f"{type(condenser).__name__}: its {method}() returned {article} {kind}, not {expected} or None.")
