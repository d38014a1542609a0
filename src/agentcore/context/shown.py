"""Which parts of context a model is shown: in its prompt, appended, or as the answer of a tool that reads one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agentcore.events import Condensation, ContextAdded, ObservationEvent, SystemPromptEvent
from agentcore.record import ShownEvent

PART_KEY: Final = "context_part"
"""In the data of an observation: the name of the part that it shows, as the tool `skill` says it."""


def shown_parts(shown: Sequence[ShownEvent]) -> frozenset[str]:
    """Return the names of the parts that the model is shown now.

    Args:
        shown: The events that make the model's view (`ConversationState.shown`).
    """
    prompt: SystemPromptEvent | None = None
    names: set[str] = set()
    answers: dict[str, str] = {}
    for event in shown:
        match event:
            case SystemPromptEvent():
                prompt = event
            case ContextAdded():
                names.add(event.name)
            case ObservationEvent() if isinstance(part := event.data.get(PART_KEY), str):
                answers[event.id] = part
            case Condensation():
                for each in (*event.masked, *event.forgotten):
                    answers.pop(each, None)
            case _:
                pass
    return frozenset({*names, *answers.values(), *(prompt.parts if prompt is not None else ())})
