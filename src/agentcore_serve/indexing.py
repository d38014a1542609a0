"""Keeps the index up to date: with what happens in open conversations, and with logs that changed while no server ran."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from typing import Final

import anyio

from agentcore.errors import ConversationNotFound, StoreError
from agentcore.events import ConversationStatus
from agentcore.logs import get_logger
from agentcore.record import LogInfo, Store, read_log
from agentcore.wire.requests import ConversationInfo
from agentcore_serve.describe import SearchText, describe
from agentcore_serve.index import ConversationIndex, Listed
from agentcore_serve.records import ConversationRecords, ConversationRow
from agentcore_serve.served import Served

_log = get_logger(__name__)

_FLUSH_SECONDS: Final = 0.25
_BATCH: Final = 100


class Indexing:
    """Notes which conversations changed, and writes them to the index together."""

    def __init__(self, index: ConversationIndex, *, wall: Callable[[], float] = time.time) -> None:
        self._index = index
        self._wall = wall
        self._changed: dict[str, Served] = {}
        self._news = anyio.Event()

    def note(self, served: Served) -> None:
        """Note that something happened in a conversation."""
        self._changed[served.id] = served
        self._news.set()

    def forget(self, conversation_id: str) -> None:
        """Note that a conversation was deleted."""
        self._changed.pop(conversation_id, None)

    async def keep(self) -> None:
        """Write what changed, a little later, so that a busy conversation is written once for many events."""
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            await anyio.sleep(_FLUSH_SECONDS)
            try:
                await self.flush()
            except sqlite3.Error as error:  # a full disk, say: the list is old until it can be written again
                _log.error("index not written", error=str(error))

    async def flush(self) -> None:
        """Write what changed now."""
        changed, self._changed = self._changed, {}
        seen = self._wall()
        # The words of one that works are of interest when it rests.
        listed = [
            Listed(served.info(), seen, served.text.collect(served.state) if served.is_at_rest else None)
            for served in changed.values()
            if served.state.head
        ]
        try:
            await self._index.put(listed)
        except BaseException:
            self._changed = {**changed, **self._changed}
            raise


async def catch_up(
    index: ConversationIndex, store: Store, records: ConversationRecords, is_open: Callable[[str], bool]
) -> int:
    """Read the logs that the index does not know, or that changed since it looked at them; return how many.

    Those that are gone are removed from it.
    """
    seen = await index.seen()
    rows = {row.id: row for row in await records.all()}
    logs = await store.list()
    batch: list[Listed] = []
    done = 0
    for info in logs:
        if is_open(info.conversation_id) or seen.get(info.conversation_id, -1.0) >= info.modified.timestamp():
            continue
        listed = await read_listed(store, info, rows)
        if listed is None:
            continue
        batch.append(listed)
        done += 1
        if len(batch) >= _BATCH:
            await index.put([each for each in batch if not is_open(each.info.id)])
            batch = []
    await index.put([each for each in batch if not is_open(each.info.id)])
    for gone in seen.keys() - {info.conversation_id for info in logs}:
        if not is_open(gone):
            await index.remove(gone)
    return done


async def read_listed(store: Store, info: LogInfo, rows: Mapping[str, ConversationRow]) -> Listed | None:
    """Read a log for the index; None where it was deleted meanwhile."""
    row = rows.get(info.conversation_id)
    seen = time.time()
    try:
        state = await read_log(store, info.conversation_id)
    except ConversationNotFound:
        return None
    except StoreError as error:
        _log.warning("log not read", conversation=info.conversation_id, error=str(error))
        damaged = ConversationInfo(
            id=info.conversation_id,
            status=ConversationStatus.ERROR,
            owner=None if row is None else row.owner,
            created=info.created,
            modified=info.modified,
            problem=str(error),
        )
        return Listed(damaged, seen, "")
    described = describe(state, row)
    if described.created is None:
        described = described.model_copy(update={"created": info.created, "modified": info.modified})
    return Listed(described, seen, SearchText().collect(state))
