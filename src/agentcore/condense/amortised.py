"""Forgetting half of the replies whenever there are too many: the cost of a cut is spread over many steps."""

from __future__ import annotations

from dataclasses import dataclass

from agentcore.condense.condenser import CondenserSpec
from agentcore.condense.outline import Outline
from agentcore.condense.window import first_of_user, forget_with_facts, oldest
from agentcore.events import Condensation


@dataclass(frozen=True)
class Amortised:
    """Forgets the older half when more than so many replies of the agent are shown, whatever their size. Asks no model.

    What the log knows of it (tasks, the user's words, files) takes its place.

    Raises:
        ValueError: `replies` is below 2.
    """

    replies: int = 100

    def __post_init__(self) -> None:
        if self.replies < 2:
            raise ValueError(f"replies={self.replies}: at least 2, of which one half is forgotten.")

    async def condense(self, outline: Outline) -> Condensation | None:
        """Forget the older half; where the history is too large, as much as it takes."""
        places = [index for index, item in enumerate(outline.items) if item.kind in ("reply", "agent")]
        if outline.reason == "soft" and len(places) <= self.replies:
            return None
        if outline.reason == "hard" and len(places) <= self.replies:
            items = oldest(outline)
        else:
            end = places[len(places) // 2] if places else 0
            first = first_of_user(outline)
            items = [item for item in outline.items[:end] if item is not first and item.protected is None]
        return forget_with_facts(outline, items) if items else None

    def record(self) -> CondenserSpec:
        """Return its parameters."""
        return CondenserSpec(name="amortised", params={"replies": self.replies})
