"""What is quick of a matrix, and how long the long runs are: whole by hand and in `nox -s faults`, a tenth of it where `AGENTCORE_BOUNDED` is set, as in CI."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, cast

import pytest

__all__ = ["rounds", "some_quick"]


def rounds(full: int) -> int:
    """Return how many rounds to do of a long run that does so many."""
    return max(1, full // 10) if os.environ.get("AGENTCORE_BOUNDED") else full


def some_quick(cells: Iterable[Any], every: int) -> list[Any]:
    """Return the parameters of a test that shows the same thing of each: the first of so many is quick, the others are slow.

    A tuple is several parameters, as in `pytest.mark.parametrize`.
    """
    params: list[Any] = []
    for at, cell in enumerate(cells):
        values = cast("tuple[Any, ...]", cell) if isinstance(cell, tuple) else (cell,)
        params.append(pytest.param(*values, marks=[pytest.mark.slow] if at % every else []))
    return params
