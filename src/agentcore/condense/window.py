"""Forgetting the oldest part of a history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agentcore.condense.condenser import CondenserSpec
from agentcore.condense.outline import Outline, OutlineItem
from agentcore.events import Condensation

SOFT: Final = 0.7
"""The part of the room at which a history is made shorter."""
HARD: Final = 0.9
"""The part of the room at which it has to be."""
DOWN_TO: Final = 0.4
"""The part of the room that is left of it then."""
_LAST: Final = 0.2

_REPAIRED: Final = (
    "(The steps up to here can't be shown any more: the provider refused them. Look at what is there before you go on.)"
)


def is_due(outline: Outline) -> bool:
    """Return whether a history is large enough to be made shorter, or has to be."""
    return outline.reason != "soft" or outline.used >= SOFT * outline.room


def oldest(outline: Outline) -> list[OutlineItem]:
    """Return the oldest items without which the history is down to 40 % of the room.

    What cannot be forgotten, the first message of the user, and the end of the history stay: a fifth of what is left.
    Where somebody asks for it, it is 40 % of what there is.
    """
    items = outline.items
    target = DOWN_TO * (min(outline.room, outline.used) if outline.reason == "asked" else outline.room)
    end, kept = len(items), 0
    while end > 0 and kept + items[end - 1].tokens <= _LAST * target:
        end -= 1
        kept += items[end].tokens
    first = next((item for item in items if item.kind == "user"), None)
    chosen: list[OutlineItem] = []
    left = outline.used
    for item in items[:end]:
        if left <= target:
            break
        if item is not first and item.protected is None:
            chosen.append(item)
            left -= item.tokens
    return chosen


def repair(outline: Outline) -> Condensation | None:
    """Forget all that can be forgotten, with a sentence in its place: what a provider refuses may be anywhere in it."""
    first = next((item for item in outline.items if item.kind == "user"), None)
    items = [item for item in outline.items if item is not first and item.protected is None]
    return outline.forget(items, summary=_REPAIRED) if items else None


@dataclass(frozen=True, slots=True)
class Window:
    """Forgets the oldest part of the history when it is large, and puts nothing in its place. Asks no model."""

    async def condense(self, outline: Outline) -> Condensation | None:
        """Forget what is oldest."""
        if not is_due(outline) or not (items := oldest(outline)):
            return None
        return outline.forget(items)

    def record(self) -> CondenserSpec:
        """Return its name."""
        return CondenserSpec(name="window")
