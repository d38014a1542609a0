"""Forgetting the oldest part of a history, by its size or by the number of replies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from agentcore._arguments import FLAG, WHOLE_NUMBER, checked
from agentcore.condense.condenser import CondenserSpec
from agentcore.condense.facts import FACTS, gather_facts
from agentcore.condense.outline import Outline, OutlineItem
from agentcore.events import Condensation

SOFT: Final = 0.7
"""The part of the room at which a history is made shorter."""
HARD: Final = 0.9
"""The part of the room at which it has to be."""
DOWN_TO: Final = 0.4
"""The part of the room that is left of it then."""
_LAST: Final = 0.2
_WORDS: Final = 0.2
"""The part of what is left that the user's words may take."""

_FORGOTTEN: Final = "(A part of the conversation that stood here is not shown any more{recall}.)"
_REPAIRED: Final = (
    "(The steps up to here can't be shown any more: the provider refused them. Look at what is there before you go on.)"
)


def is_due(outline: Outline, soft: float = SOFT) -> bool:
    """Return whether a history is large enough to be made shorter, or has to be."""
    return outline.reason != "soft" or outline.used >= soft * outline.room


def target_of(outline: Outline, down_to: float = DOWN_TO) -> int:
    """Return the size that a history is brought down to: a part of the room, or where somebody asks for it, of what there is."""
    return round(down_to * (min(outline.room, outline.used) if outline.reason == "asked" else outline.room))


def oldest(outline: Outline, down_to: float = DOWN_TO) -> list[OutlineItem]:
    """Return the oldest items without which the history is down to 40 % of the room.

    What cannot be forgotten, the first message of the user, and the end of the history stay: a fifth of what is left.
    Where somebody asks for it, it is 40 % of what there is.
    """
    target = target_of(outline, down_to)
    chosen: list[OutlineItem] = []
    left = outline.used
    for item in all_but_last(outline, target):
        if left <= target:
            break
        chosen.append(item)
        left -= item.tokens
    return chosen


def all_but_last(outline: Outline, target: int) -> list[OutlineItem]:
    """Return all items that may be forgotten, the end of the history excepted: a fifth of the target."""
    first = first_of_user(outline)
    items = outline.items[: start_of_last(outline, target)]
    return [item for item in items if item is not first and item.protected is None]


def start_of_last(outline: Outline, target: int, part: float = _LAST) -> int:
    """Return the index at which the last items begin that stay: a part of the target."""
    items = outline.items
    end, kept = len(items), 0
    while end > 0 and kept + items[end - 1].tokens <= part * target:
        end -= 1
        kept += items[end].tokens
    return end


def first_of_user(outline: Outline) -> OutlineItem | None:
    """Return the first message of the user that is shown: it says what all of this is for."""
    return next((item for item in outline.items if item.kind == "user"), None)


def forgotten_sentence(outline: Outline) -> str:
    """Return the sentence that stands in place of what is forgotten; it names `recall` where the agent has it."""
    return _FORGOTTEN.format(recall="; `recall` searches and reads it" if outline.can_recall else "")


def facts_for(outline: Outline, items: Sequence[OutlineItem]) -> tuple[str, dict[str, JsonValue]]:
    """Return what the log knows of these items, as text and as fields."""
    facts = gather_facts(outline, items, most=round(_WORDS * target_of(outline)))
    return facts.to_text(recall=outline.can_recall), {FACTS: facts.to_fields()}


def forget_with_facts(outline: Outline, items: Sequence[OutlineItem]) -> Condensation:
    """Forget items, and every earlier summary, with what the log knows of them in their place."""
    chosen = set(map(id, items))
    gone = [item for item in outline.items if id(item) in chosen or (item.kind == "summary" and not item.protected)]
    text, fields = facts_for(outline, gone)
    return outline.forget(gone, summary=f"{forgotten_sentence(outline)}\n\n{text}".strip(), fields=fields)


def repair(outline: Outline) -> Condensation | None:
    """Forget all that can be forgotten, with a sentence in its place: what a provider refuses may be anywhere in it."""
    first = first_of_user(outline)
    items = [item for item in outline.items if item is not first and item.protected is None]
    if not items:
        return None
    text, fields = facts_for(outline, items)
    return outline.forget(items, summary=f"{_REPAIRED}\n\n{text}".strip(), fields=fields)


@checked(facts=FLAG)
@dataclass(frozen=True, slots=True)
class Window:
    """Forgets the oldest part of the history when it is large. Asks no model."""

    facts: bool = True
    """Put what the log knows (tasks, the user's words, files) in the place of what is forgotten; else nothing is there."""

    async def condense(self, outline: Outline) -> Condensation | None:
        """Forget what is oldest."""
        if not is_due(outline) or not (items := oldest(outline)):
            return None
        return forget_with_facts(outline, items) if self.facts else outline.forget(items)

    def record(self) -> CondenserSpec:
        """Return its name."""
        return CondenserSpec(name="window", params={} if self.facts else {"facts": False})


@checked(replies=WHOLE_NUMBER)
@dataclass(frozen=True)
class Amortised:
    """Forgets the older half when more than so many replies of the agent are shown, whatever their size. Asks no model.

    So the cost of a cut is spread over many steps. What the log knows of it (tasks, the user's words, files) takes its place.

    Raises:
        TypeError: `replies` is not a whole number.
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
