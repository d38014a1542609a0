"""The parts of context that a model is shown now, in its prompt and after it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from agentcore.events import Condensation, ContextAdded, ObservationEvent, SystemPromptEvent
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
        self._answers: dict[str, str] = {}
        """The parts that answers of tools show, by the ids of the answers."""

    def update(self, state: ConversationState) -> Mapping[str, str]:
        """Return the digest of the newest text of each part, by name. Costs what is new, not what is there."""
        shown = state.shown
        if self._epoch != state.view_epoch or self._prompt is not state.prompt:
            self._epoch, self._prompt, self._read = state.view_epoch, state.prompt, 0
            self._parts, self._answers = {}, {}
        for event in shown[self._read :]:
            if isinstance(event, SystemPromptEvent):
                self._parts.update(event.parts if event is self._prompt else {})
            elif isinstance(event, ContextAdded):
                self._parts[event.name] = event.digest
            elif isinstance(event, ObservationEvent) and isinstance(name := event.data.get(PART_KEY), str):
                self._parts.setdefault(name, "")
                self._answers[event.id] = name
            elif isinstance(event, Condensation):
                for answer in self._answers.keys() & set(event.masked):
                    if self._parts.get(name := self._answers.pop(answer)) == "":
                        del self._parts[name]
        self._read = len(shown)
        return self._parts
