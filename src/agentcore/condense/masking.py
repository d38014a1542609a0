"""Leaving out the content of old answers: that there was one is still shown, and no model is asked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, cast

from pydantic import JsonValue

from agentcore._arguments import NUMBER, Argument, checked, optional
from agentcore.condense.condenser import CondenserSpec
from agentcore.condense.outline import Outline
from agentcore.condense.window import DOWN_TO, SOFT, is_due, start_of_last, target_of
from agentcore.events import Condensation, ObservationEvent

_KEEP: Final = 0.2
_LEAST_FREED: Final = 0.2
"""The part of what is shown that it has to free: each cut costs the provider's cache."""


def _is_names(value: object) -> bool:
    return (
        not isinstance(value, str)
        and isinstance(value, Collection)
        and all(isinstance(name, str) for name in cast("Collection[object]", value))
    )


def _put_in_a_list(value: object) -> str | None:
    return f"Pass tools=[{value!r}]." if isinstance(value, str) else None


_NAMES: Final = Argument("a list of names", _is_names, _put_in_a_list)


@checked(tools=optional(_NAMES), keep=NUMBER, soft=NUMBER)
@dataclass(frozen=True, kw_only=True)
class Masking:
    """Leaves out the content of old answers of tools when the history is large, the newest ones excepted.

    Raises:
        TypeError: `tools` is not a list of names, or another argument not a number.
        ValueError: `soft` or `keep` is not a part of 1.
    """

    tools: Sequence[str] | None = None
    """The names of the tools whose answers it leaves out; None is all tools."""
    keep: float = _KEEP
    """The part of the target (40 % of the room) that stays as it is at the end of the history."""
    soft: float = SOFT
    """The part of the room at which it begins to."""

    def __post_init__(self) -> None:
        if not (0 < self.soft <= 1 and 0 <= self.keep <= 1):
            raise ValueError(f"soft={self.soft:g} and keep={self.keep:g} must be parts of the room: at most 1.")

    async def condense(self, outline: Outline) -> Condensation | None:
        """Leave out what is old: once that frees a fifth of what is shown, or where the history has to be shorter."""
        if not is_due(outline, self.soft):
            return None
        old = outline.items[: start_of_last(outline, target_of(outline, DOWN_TO), self.keep)]
        hidden = outline.state.masked
        masked: list[ObservationEvent] = []
        freed = 0
        # Asked before every step while the history is large: what is left out already is passed over first.
        for item in old:
            for event in item.view.events:
                if not isinstance(event, ObservationEvent) or event.id in hidden:
                    continue
                if (self.tools is None or event.tool_name in self.tools) and (frees := outline.mask_frees(event)):
                    masked.append(event)
                    freed += frees
        if not masked or freed < (_LEAST_FREED * outline.used if outline.reason == "soft" else 0):
            return None
        return outline.mask(masked)

    def record(self) -> CondenserSpec:
        """Return its parameters."""
        tools: list[JsonValue] | None = None if self.tools is None else [*self.tools]
        return CondenserSpec(name="masking", params={"tools": tools, "keep": self.keep, "soft": self.soft})
