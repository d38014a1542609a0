"""The conversations that are open on the server: opened and ended here, and bounded in number."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

import anyio
from anyio.abc import TaskGroup

from agentcore.errors import ConversationNotFound
from agentcore.events import UsageEvent
from agentcore.logs import get_logger
from agentcore.record import Store
from agentcore.usage import Usage
from agentcore_serve.crashes import was_cut_off
from agentcore_serve.indexing import Indexing
from agentcore_serve.locks import NamedLocks
from agentcore_serve.opening import Opening
from agentcore_serve.records import ConversationRecords, ConversationRow
from agentcore_serve.refused import TooBusy, draining
from agentcore_serve.resting import choose_to_make_room
from agentcore_serve.served import Served
from agentcore_serve.settings import ServeLimits

_log = get_logger(__name__)

_ADMITTED_SECONDS: Final = 5.0
"""How long a run that was admitted counts as one that works before its log says so."""


class OpenConversations:
    """Opens conversations, attends them until they end, and makes room.

    Args:
        opening: Opens one.
        records: The rows of all.
        indexing: Told what changed.
        limits: How many at once.
        tasks: Where each is attended; it ends after their host.
        clock: Seconds.
        count_usage: Told what each model call used.
    """

    def __init__(
        self,
        opening: Opening,
        records: ConversationRecords,
        indexing: Indexing,
        *,
        limits: ServeLimits,
        tasks: TaskGroup,
        clock: Callable[[], float],
        count_usage: Callable[[Usage], None] | None = None,
    ) -> None:
        self.opening = opening
        self._count_usage = count_usage
        self.locks = NamedLocks()
        """Held while a conversation is created, opened or deleted, by its id."""
        self.is_draining = False
        """True once the server is about to end: nothing new is opened or run."""
        self.cut_off: list[str] = []
        """The ids of those that ended with the server, and did not come to the end of their work."""
        self._store: Store = opening.store
        self._records = records
        self._indexing = indexing
        self._limits = limits
        self._tasks = tasks
        self._clock = clock
        self._served: dict[str, Served] = {}
        self._being_opened = 0
        self._admitted: dict[str, float] = {}
        """When a run was admitted that the log does not have yet, by the conversation's id."""

    @property
    def served(self) -> Collection[Served]:
        """The conversations that are open."""
        return tuple(self._served.values())

    def ended_or_open(self, conversation_id: str) -> Served | None:
        """Return a conversation that is open, or about to end."""
        return self._served.get(conversation_id)

    async def open(self, row: ConversationRow) -> Served:
        """Open a conversation whose lock is held.

        Raises:
            ConversationNotFound: Its log was deleted.
            TooBusy: There is no room (503).
        """
        self.refuse_draining()
        if (served := self._served.get(row.id)) is not None:
            if self.find(row.id) is not None:
                served.touch()
                return served
            await served.ended.wait()
        if row.is_made and not await self.has_log(row.id):
            raise ConversationNotFound(row.id, "this server")  # its agent is there, and would begin another log
        await self.make_room()
        self._being_opened += 1
        try:
            return await self._open_now(row)
        finally:
            self._being_opened -= 1

    async def _open_now(self, row: ConversationRow) -> Served:
        assert row.workspace is not None
        place = await self.opening.places.get(row.owner, row.workspace)
        try:
            # Whatever the row says: it may have been read before the conversation was last closed.
            await self._records.update(row.id, is_open=True)
            conversation, parts = await self.opening.open(row, place)
            if not row.is_made:
                await self._records.update(row.id, is_made=True)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.opening.places.release(place.id)
            raise
        served = Served(row._replace(is_made=True, is_open=True), conversation, self._clock)
        served.parts = parts
        self._served[row.id] = served
        self._indexing.note(served)
        self._tasks.start_soon(self._attend, served, place.id, name="attend a conversation")
        return served

    async def _attend(self, served: Served, place_id: str) -> None:
        """Note what happens in a conversation, and its end."""
        try:
            async for event in served.conversation.events(after=served.state.head):
                served.touch()
                if self._count_usage is not None and isinstance(event, UsageEvent):
                    self._count_usage(event.usage)
                self._admitted.pop(served.id, None)
                self._indexing.note(served)
        finally:
            self._indexing.note(served)
            with anyio.CancelScope(shield=True):  # noqa: ASYNC912 the release and the database are checkpoints
                try:
                    await self.opening.places.release(place_id)
                    goes_on = was_cut_off(served.state)
                    if goes_on and self.is_draining:
                        self.cut_off.append(served.id)
                    if not self.is_draining:  # then all are marked together, once the logs say that they rest
                        await self._records.update(served.id, is_open=goes_on)
                except Exception as error:  # one that ends badly does not end the server
                    _log.error("closing not recorded", conversation=served.id, error=str(error))
                # Not earlier: it is opened again behind this, and then the row says so.
                if self._served.get(served.id) is served:
                    del self._served[served.id]
                served.ended.set()

    def find(self, conversation_id: str) -> Served | None:
        """Return a conversation that is open and not about to end."""
        served = self._served.get(conversation_id)
        if served is None or self.opening.host.get(conversation_id, self._store) is not served.conversation:
            return None
        return served

    async def open_row(self, row: ConversationRow) -> Served:
        """Open a conversation by its row."""
        async with self.locks.hold(row.id):
            return await self.open(row)

    async def has_log(self, conversation_id: str) -> bool:
        """Return whether the store has the log of a conversation, whoever made it."""
        try:
            await self._store.holder(conversation_id)
        except ConversationNotFound:
            return False
        return True

    def refuse_draining(self) -> None:
        """Refuse what would begin something new.

        Raises:
            Refused: The server is about to end (503).
        """
        if self.is_draining:
            raise draining()

    @property
    def running_count(self) -> int:
        """How many work, or are about to."""
        now = self._clock()
        about_to = {name for name, when in self._admitted.items() if now - when < _ADMITTED_SECONDS}
        return len(about_to | {served.id for served in self._served.values() if not served.is_at_rest})

    def is_open(self, conversation_id: str) -> bool:
        """Return whether a conversation is open here."""
        return conversation_id in self._served

    def holds_sessions(self, conversation_id: str) -> bool:
        """Return whether a tool or a toolset is open in a conversation."""
        return self.opening.host.holds_sessions(conversation_id, self._store)

    def admit_run(self, served: Served) -> None:
        """Let a conversation work, to be called right before what begins it: a run, an approval, an answer.

        Raises:
            TooBusy: As many work as may (429).
            Refused: The server is about to end (503).
        """
        self.refuse_draining()
        if not served.is_at_rest:
            return
        if served.id not in self._admitted and self.running_count >= self._limits.running_conversations:
            raise TooBusy(429, "As many conversations work as may at once. Try again in a moment.", retry_after=5)
        self._admitted[served.id] = self._clock()

    async def wait_for_room_to_run(self) -> None:
        """Wait until one more conversation may work."""
        while self.running_count >= self._limits.running_conversations:  # noqa: ASYNC110 many things end a run
            await anyio.sleep(1)

    async def make_room(self) -> None:
        """Close what is missed the least, where as many are open as may be.

        Raises:
            TooBusy: None of them can be closed (503).
        """
        while len(self._served) + self._being_opened >= self._limits.open_conversations:
            chosen = choose_to_make_room(self._served.values(), self.holds_sessions, self._clock())
            if chosen is None:
                raise TooBusy(503, "As many conversations are open as may be. Try again in a moment.", retry_after=5)
            await chosen.conversation.close()
            await chosen.ended.wait()
