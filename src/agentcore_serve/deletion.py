"""How conversations of the server go: the log, then what the server knows of them."""

from __future__ import annotations

import sqlite3

from agentcore.errors import ConversationNotFound
from agentcore.logs import get_logger
from agentcore_serve.index import ConversationIndex
from agentcore_serve.indexing import Indexing
from agentcore_serve.open_conversations import OpenConversations
from agentcore_serve.records import ConversationRecords, ConversationRow

_log = get_logger(__name__)


class Deletion:
    """Deletes conversations.

    Args:
        open_ones: Those that are open; one that is deleted ends.
        records: The rows.
        index: The list of conversations.
        indexing: Writes the list.
    """

    def __init__(
        self,
        open_ones: OpenConversations,
        records: ConversationRecords,
        index: ConversationIndex,
        indexing: Indexing,
    ) -> None:
        self._open = open_ones
        self._records = records
        self._index = index
        self._indexing = indexing

    async def delete(self, row: ConversationRow) -> None:
        """Delete a conversation: its log, its outputs, and what the server knows of it.

        Raises:
            ConversationNotFound: It had no log any more.
            ConversationLocked: Another process holds it.
        """
        opening = self._open.opening
        async with self._open.locks.hold(row.id):
            served = self._open.ended_or_open(row.id)
            found = True
            if served is not None and served.streams is not None:
                served.streams.end_code = "deleted"
            try:
                await opening.host.delete(row.id, opening.store)
            except ConversationNotFound:
                found = False  # a deletion that was cut off: what is left of it goes now
            if served is not None:
                await served.ended.wait()
            await self._forget(row.id)
        if row.workspace is not None and all(row.workspace != each.workspace for each in await self._records.all()):
            await opening.places.forget(row.workspace)
        if not found:
            raise ConversationNotFound(row.id, "this server")

    async def forget_if_gone(self, conversation_id: str) -> None:
        """Forget a conversation that has no log."""
        async with self._open.locks.hold(conversation_id):
            if not self._open.is_open(conversation_id) and not await self._open.has_log(conversation_id):
                await self._forget(conversation_id)

    async def _forget(self, conversation_id: str) -> None:
        self._open.opening.forget(conversation_id)
        self._indexing.forget(conversation_id)
        await self._records.delete(conversation_id)
        try:
            await self._index.remove(conversation_id)
        except sqlite3.Error as error:  # a cache: what is deleted is deleted, and the next start sees to the list
            _log.error("index not written", conversation=conversation_id, error=str(error))
