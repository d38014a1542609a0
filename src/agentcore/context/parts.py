"""The parts of context that a model is shown now, in its prompt and after it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from agentcore.events import ContextAdded, ObservationEvent, SystemPromptEvent
from agentcore.record import ConversationState

PART_KEY: Final = "context_part"
"""In the data of an observation: the name of the part that it shows, as the tool `skill` has it."""


def digest_of_part(text: str) -> str:
    """Return the digest of a part's text, secrets masked: equal texts are shown once."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class ShownParts:
    """Follows one conversation's state, as the view does."""

    def __init__(self) -> None:
        self._epoch = 0
        self._read = 0
        self._prompt: SystemPromptEvent | None = None
        self._parts: dict[str, str] = {}

    def update(self, state: ConversationState) -> Mapping[str, str]:
        """Return the digest of the newest text of each part, by name. Costs what is new, not what is there."""
        shown = state.shown
        if self._epoch != state.view_epoch or self._prompt is not state.prompt:
            self._epoch, self._prompt, self._read = state.view_epoch, state.prompt, 0
            self._parts = {}
        for event in shown[self._read :]:
            if isinstance(event, SystemPromptEvent):
                self._parts.update(event.parts if event is self._prompt else {})
            elif isinstance(event, ContextAdded):
                self._parts[event.name] = event.digest
            elif (
                isinstance(event, ObservationEvent)
                and isinstance(event.data.get(PART_KEY), str)
                and event.id not in state.masked
            ):
                # One whose content was left out shows it no more; that takes a cut, after which all is read again.
                self._parts.setdefault(str(event.data[PART_KEY]), "")
        self._read = len(shown)
        return self._parts
