"""The seam for making a history shorter: what a condenser is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agentcore.events import Condensation
from agentcore.record import ShownEvent


class Condenser(Protocol):
    """Looks at the history before each step and may say what the model is not shown any more."""

    async def condense(self, shown: Sequence[ShownEvent], *, requested: bool) -> Condensation | None:
        """Return a condensation, or None to leave the history as it is.

        Args:
            shown: The events of the active branch that make the model's view, in order; all actions are answered.
            requested: The last request was too large for the model: leaving the history as it is ends the run.
        """
        ...
