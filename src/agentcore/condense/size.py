"""How large the next request is: what the provider counted last, and an estimate of what has come since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from agentcore.context import View, ViewItem
from agentcore.events import SystemPromptEvent
from agentcore.llm.estimate import estimate_tokens
from agentcore.messages import Message, StoredResultBlock, ToolResultBlock, UnknownBlock
from agentcore.record import ConversationState

_PLAUSIBLE: Final = (0.25, 4.0)
"""Between these a count of the provider is believed: some servers report nothing, or only what was not in their cache."""


class Sizes(NamedTuple):
    """A measurement. It does not change when the view grows."""

    used: int
    """The size of the next request."""
    scale: float
    """Tokens as the provider counts them for each one that is estimated."""
    items: Sequence[ViewItem]
    """The items of the view; the first `length` were there."""
    estimates: Sequence[int]
    """The estimate of each of them."""
    length: int


class Measure:
    """Measures the requests of one conversation. Each item is estimated once."""

    def __init__(self) -> None:
        self._epoch = -1
        self._estimates: list[int] = []
        self._total = 0
        self._scale = 1.0
        self._prompt: SystemPromptEvent | None = None
        self._prompt_estimate = 0

    def request(self, state: ConversationState, view: View) -> Sizes:
        """Return the size of the next request; the view is up to date."""
        items = view.items
        if self._epoch != view.epoch:
            self._epoch, self._estimates, self._total = view.epoch, [], 0
        for index in range(len(self._estimates), len(items)):
            self._estimates.append(estimate_tokens(items[index].messages))
            self._total += self._estimates[-1]
        if state.prompt is not self._prompt and state.prompt is not None:
            self._prompt = state.prompt
            self._prompt_estimate = estimate_tokens((Message.system(state.prompt.prompt),), state.prompt.tools)
        used = self._since_last_count(state, items)
        if used is None:
            used = round((self._prompt_estimate + self._total) * self._scale)
        return Sizes(used, self._scale, items, self._estimates, len(items))

    def _since_last_count(self, state: ConversationState, items: Sequence[ViewItem]) -> int | None:
        """Return the provider's last count and an estimate of what came since; None where the count is of another history."""
        step, cut = state.last_step, state.last_cut
        if step is None or step.view_seq is None or (cut is not None and cut.seq > step.view_seq):
            return None
        if self._prompt is not None and self._prompt.seq > step.view_seq:
            return None
        new, index = 0, len(items) - 1
        while index >= 0 and items[index].events[0].seq > step.view_seq:
            new += self._estimates[index]
            index -= 1
        before, counted = self._prompt_estimate + self._total - new, step.usage.input_tokens
        if before <= 0 or not _PLAUSIBLE[0] <= counted / before <= _PLAUSIBLE[1]:
            return None
        self._scale = counted / before
        return counted + round(new * self._scale)


def estimate_text(text: str) -> int:
    """Estimate the size of a text, in tokens."""
    return estimate_tokens((Message.user(text),))


def estimate_content(content: Sequence[StoredResultBlock]) -> int:
    """Estimate the size of an answer's content, in tokens."""
    shown = tuple(block for block in content if not isinstance(block, UnknownBlock))
    block = ToolResultBlock(call_id="", name="", content=shown)
    return estimate_tokens((Message(role="tool", content=(block,)),))
