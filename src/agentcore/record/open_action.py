"""An action between its proposal and its answer."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from agentcore.events import ActionApproved, ActionAssessed, ActionEvent
from agentcore.risk import SecurityRisk

__all__ = ["OpenAction"]


@dataclass(slots=True)
class OpenAction:
    """An action without an answer."""

    event: ActionEvent
    assessment: ActionAssessed | None = None
    approval: ActionApproved | None = None
    started: bool = False

    @property
    def waits(self) -> bool:
        """Whether it waits for a person's yes or no."""
        asked = self.assessment is not None and self.assessment.verdict == "ask"
        return asked and self.approval is None and not self.started

    @property
    def runs_next(self) -> bool:
        """Whether it was approved, and the next turn starts it."""
        return self.approval is not None and not self.started

    @property
    def risk(self) -> SecurityRisk:
        """How much harm it could do, as far as it was assessed."""
        return (self.assessment.risk if self.assessment is not None else None) or SecurityRisk.UNKNOWN

    @property
    def arguments(self) -> dict[str, JsonValue]:
        """The arguments it starts with: a person's or else a check's, where one of them changed them."""
        for changed in (self.approval, self.assessment):
            if changed is not None and changed.arguments is not None:
                return changed.arguments
        return self.event.arguments
