"""The hub's work beside requests: what a crash left, what the index does not know, what rests, what is too old."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import anyio

from agentcore.errors import AgentcoreError
from agentcore.logs import get_logger
from agentcore.record import Store
from agentcore_serve.crashes import CutOff
from agentcore_serve.deletion import Deletion
from agentcore_serve.index import ConversationIndex
from agentcore_serve.indexing import catch_up
from agentcore_serve.open_conversations import OpenConversations
from agentcore_serve.records import ConversationRecords, ConversationRow
from agentcore_serve.refused import Refused
from agentcore_serve.resting import choose_to_close
from agentcore_serve.settings import ServeSettings

_log = get_logger(__name__)

_TIDY_SECONDS: Final = 5.0
_RETAIN_SECONDS: Final = 3_600.0
_DAY: Final = 86_400.0


class Keeps(Protocol):
    """The parts of the hub that are looked after."""

    settings: ServeSettings
    store: Store
    records: ConversationRecords
    index: ConversationIndex
    now: Callable[[], float]
    wall: Callable[[], float]
    crashes_handled: anyio.Event
    is_caught_up: anyio.Event

    @property
    def cut_off(self) -> CutOff:
        """The conversations that were open when the server ended."""
        ...

    @property
    def open_ones(self) -> OpenConversations:
        """The conversations that are open."""
        ...

    @property
    def deletion(self) -> Deletion:
        """Deletes conversations."""
        ...


async def after_start(hub: Keeps, rows: Sequence[ConversationRow]) -> None:
    """Go on with what a crash cut off, and bring the index up to date.

    Args:
        hub: The hub.
        rows: The conversations as they were when the server started.
    """
    await hub.cut_off.continue_all()
    hub.crashes_handled.set()
    try:
        logs = {info.conversation_id for info in await hub.store.list()}
        for row in rows:
            if row.id not in logs:  # its creation, or its deletion, was cut off
                await hub.deletion.forget_if_gone(row.id)
        await catch_up(hub.index, hub.store, hub.records, hub.open_ones.is_open)
    except (sqlite3.Error, AgentcoreError) as error:
        _log.error("index not caught up", error=str(error))
    hub.is_caught_up.set()


async def tidy_again_and_again(hub: Keeps) -> None:
    """Close what rests for long, and delete what is too old, for as long as the server runs."""
    retained = -_RETAIN_SECONDS
    while True:
        try:
            await tidy(hub)
            if anyio.current_time() - retained >= _RETAIN_SECONDS:
                retained = anyio.current_time()
                await delete_old(hub)
        except (sqlite3.Error, AgentcoreError) as error:
            _log.error("not tidied", error=str(error))
        await anyio.sleep(_TIDY_SECONDS)


async def tidy(hub: Keeps) -> int:
    """Close the conversations that rested for long; return how many."""
    open_ones, limits = hub.open_ones, hub.settings.limits
    closed = 0
    for served in choose_to_close(open_ones.served, open_ones.holds_sessions, hub.now(), limits):
        # Asked again: somebody may have come back to it while those before it were closed.
        if open_ones.find(served.id) is served and choose_to_close(
            [served], open_ones.holds_sessions, hub.now(), limits
        ):
            await served.conversation.close()
            closed += 1
    return closed


async def delete_old(hub: Keeps) -> int:
    """Delete the server's conversations in which nothing happened for `retain_days`; return how many."""
    days = hub.settings.retain_days
    if days is None:
        return 0
    deleted = 0
    await hub.is_caught_up.wait()  # an index that is being made does not know the newest
    for conversation_id in await hub.index.older_than(hub.wall() - days * _DAY):
        row = await hub.records.find(conversation_id)
        if row is None or hub.open_ones.is_open(conversation_id):
            continue
        try:
            await hub.deletion.delete(row)
        except (AgentcoreError, Refused) as error:
            _log.warning("not deleted", conversation=conversation_id, error=str(error))
        else:
            deleted += 1
    return deleted
