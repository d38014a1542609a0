"""A conversation in short, from its state: for its own page, for the list, and for the search."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast

from agentcore.events import Event, MessageEvent
from agentcore.record import ConversationState
from agentcore.wire.requests import ConversationInfo
from agentcore_serve.records import ConversationRow

_LAST_WORDS: Final = 300
_TEXT: Final = 100_000
"""Characters of a conversation's messages that can be searched: its beginning."""


def describe(
    state: ConversationState, row: ConversationRow | None, *, holder: str | None = None, problem: str | None = None
) -> ConversationInfo:
    """Return the description of a conversation.

    Args:
        state: What its log says.
        row: What the server knows of it; None for one that another program made.
        holder: The other process that writes it.
        problem: The reason why it can't be continued.
    """
    first = state.events[0] if state.head else None
    created = datetime.fromtimestamp(row.created, UTC) if row is not None else first and first.timestamp
    return ConversationInfo(
        id=state.conversation_id,
        status=state.status,
        status_code=state.status_code,
        status_detail=state.status_detail,
        title=state.title,
        tags=dict(state.tags),
        owner=None if row is None else row.owner,
        agent=None if row is None else row.profile,
        model=_model_of(state),
        workspace=None if row is None else row.workspace,
        birth=first and first.id,
        head=state.head,
        created=created,
        modified=state.events[-1].timestamp if state.head else created,
        cost=state.usage.cost,
        pending=len(state.pending),
        questions=len(state.questions),
        last_words=(state.answer or "")[:_LAST_WORDS] or None,
        holder=holder,
        problem=problem or state.read_only,
    )


def _model_of(state: ConversationState) -> str | None:
    recorded = None if state.agent is None else state.agent.agent.get("llm")
    model = cast("Mapping[str, Any]", recorded).get("model") if isinstance(recorded, Mapping) else None
    return model if isinstance(model, str) else None


class SearchText:
    """The words of a conversation that can be searched, collected as it goes on."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._size = 0
        self._seq = 0

    def collect(self, state: ConversationState) -> str:
        """Return the text with what came since the last time: title, tags, and what was said."""
        for event in state.events[self._seq :]:
            self._add(event)
        self._seq = state.head
        tags = (f"{name} {value}" for name, value in state.tags.items())
        return "\n".join((state.title or "", *tags, *self._parts, (state.answer or "")[:_TEXT]))

    def _add(self, event: Event) -> None:
        if isinstance(event, MessageEvent) and self._size < _TEXT and (text := event.text):
            self._parts.append(text[: _TEXT - self._size])
            self._size += len(text)
