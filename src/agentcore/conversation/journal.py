"""The only way into the log: a draft is handed over, and the writer waits until the recorder says that it is kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from agentcore.conversation.home import Home
from agentcore.errors import ConversationClosed
from agentcore.events import Event
from agentcore.record import ConversationState
from agentcore.secrets import SecretRegistry

__all__ = ["Condition", "Draft", "Drafts", "Journal"]

Condition = Callable[[ConversationState], bool]
"""Asked by the recorder just before a draft is kept; agentcore's own functions only."""


class Draft:
    """A group of events on its way to the log."""

    __slots__ = ("condition", "done", "error", "events", "kept")

    def __init__(self, events: Sequence[Event], condition: Condition | None) -> None:
        self.events = events
        self.condition = condition
        self.done = anyio.Event()
        self.kept: Sequence[Event] | None = None
        self.error: Exception | None = None


class Drafts:
    """The drafts that wait for the recorder, in order. Nobody waits for room: who puts one here waits until it is kept."""

    def __init__(self) -> None:
        self._waiting: deque[Draft] = deque()
        self._news = anyio.Event()
        self._closed = False

    def put(self, draft: Draft) -> bool:
        """Add one; say whether somebody will take it."""
        if not self._closed:
            self._waiting.append(draft)
            self._news.set()
        return not self._closed

    async def take(self, most: int) -> list[Draft]:
        """Wait for drafts and take all that are there, up to a number; none once it is closed and empty."""
        while not self._waiting and not self._closed:
            self._news = anyio.Event()
            await self._news.wait()
        return self.take_nowait(most)

    def take_nowait(self, most: int) -> list[Draft]:
        """Take what is there."""
        return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    def close(self) -> None:
        """Take no more in."""
        self._closed = True
        self._news.set()


class Journal:
    """Writes groups of events, masked. Any task of the conversation may use it at any time."""

    def __init__(self, conversation_id: str, drafts: Drafts, secrets: SecretRegistry, home: Home) -> None:
        self._home = home
        self._id = conversation_id
        self._drafts = drafts
        self._secrets = secrets

    async def write(self, *events: Event, condition: Condition | None = None) -> Sequence[Event] | None:
        """Keep a group of events, all or nothing, and give them back as they are kept: masked, with their seqs.

        Once begun, a write can't be cancelled: it takes no longer than the store allows, and so it is never in doubt
        whether it happened.

        Args:
            events: The group.
            condition: Keep nothing, and give None, unless it holds when the recorder gets there.

        Raises:
            StoreError: They are not kept, or nobody knows; the conversation is over.
            ConversationClosed: The conversation has ended.
        """
        await checkpoint_if_cancelled()
        return await self.keep(*events, condition=condition)

    async def keep(self, *events: Event, condition: Condition | None = None) -> Sequence[Event] | None:
        """Write, even where the caller is cancelled already: for what has happened and must not be lost."""
        if not events:
            return ()
        self._home.refuse_elsewhere()
        masker = self._secrets.masker
        draft = Draft([masker.mask_event(event) for event in events], condition)
        if not self._drafts.put(draft):
            raise ConversationClosed(self._id)
        with anyio.CancelScope(shield=True):
            await draft.done.wait()
        if draft.error is not None:
            raise draft.error
        return draft.kept
