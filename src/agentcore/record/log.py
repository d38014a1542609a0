"""The log of one conversation: events in, events and state out.

Above: the recorder, its only writer. Below: a store, which knows bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Self

import anyio
from anyio.lowlevel import checkpoint
from anyio.to_thread import run_sync
from pydantic import ValidationError

from agentcore.errors import BlobLost, LogDamaged, LogReadOnly, StoreError
from agentcore.events import Event, parse_event
from agentcore.record.codec import BLOB_PREFIX, FORMAT_VERSION, decode, encode, find_blobs, other_format, upgrade
from agentcore.record.state import ConversationState
from agentcore.record.store import LOG_THREADS, NO_EVENTS, LogTail, Record, Store, StoredLog

_BLOB = BLOB_PREFIX.encode()
_FEW = 64
"""Up to so many records are read on the event loop: a thread would cost more than they do."""

_CLOSING_SECONDS = 30
"""How long a store may take to let go of a log that could not be opened."""


class EventLog:
    """An open log and the state that its events fold to."""

    def __init__(self, stored: StoredLog, state: ConversationState, *, repaired: str | None = None) -> None:
        self._stored = stored
        self.state = state
        self._repaired = repaired

    @classmethod
    async def create(cls, store: Store, conversation_id: str) -> Self:
        """Begin a log.

        Raises:
            ConversationExists: the store has one of that id.
        """
        stored = await store.create(conversation_id, format_version=FORMAT_VERSION)
        return cls(stored, ConversationState(conversation_id))

    @classmethod
    async def open(cls, store: Store, conversation_id: str) -> Self:
        """Open a log to go on with it.

        Raises:
            ConversationNotFound: the store has none of that id.
            ConversationLocked: another process writes it.
            LogDamaged: it can't be read to its end.
            LogReadOnly: a newer version wrote what this one must not continue.
        """
        stored = await store.open(conversation_id)
        try:
            state = await _load(store, stored)
            _refuse_read_only(state)
        except BaseException:
            with anyio.move_on_after(_CLOSING_SECONDS, shield=True):
                await stored.close()
            raise
        return cls(stored, state, repaired=stored.repaired or (None if state.head else NO_EVENTS))

    @property
    def repaired(self) -> str | None:
        """The damage found on opening: the bytes cut off its end, or that it held no events. None otherwise."""
        return self._repaired

    @property
    def epoch(self) -> int:
        """How often the log was opened for writing, this time included. See `StoredLog.epoch`."""
        return self._stored.epoch

    async def append(self, groups: Sequence[Sequence[Event]]) -> list[list[Event]]:
        """Keep groups of events, each whole or not at all, in one write; give them back with their seqs.

        Raises:
            StoreError: they were not kept, or that is unknown; the state is as before and the log takes no more.
        """
        seq = self.state.head
        records: list[Record] = []
        kept: list[list[Event]] = []
        for group in groups:
            last = seq + len(group)
            stamped: list[Event] = []
            for event in group:
                seq += 1
                numbered, body = await encode(event.model_copy(update={"seq": seq}), self._stored.write_blob)
                records.append(Record(seq, last, body))
                stamped.append(numbered)
            kept.append(stamped)
        await self._stored.append(records)
        for group in kept:
            for event in group:
                self.state.apply(event, group_ends=event is group[-1])
        return kept

    async def close(self) -> None:
        """Let go of the log."""
        await self._stored.close()


async def write_log(store: Store, conversation_id: str, events: Sequence[Event]) -> None:
    """Make a log that holds these events as one group: there is all of it, or no log. However many they are, others go on.

    Raises:
        ConversationExists: the store has one of that id.
        StoreError: it could not be kept.
    """
    stored = await store.create(conversation_id, format_version=FORMAT_VERSION)
    try:
        records: list[Record] = []
        for seq, event in enumerate(events, 1):
            if seq % _FEW == 0:
                await checkpoint()
            _, body = await encode(event.model_copy(update={"seq": seq}), stored.write_blob)
            records.append(Record(seq, len(events), body))
        await stored.append(records)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await stored.close()
            await store.delete(conversation_id)
        raise
    with anyio.CancelScope(shield=True):
        await stored.close()


async def read_log(store: Store, conversation_id: str) -> ConversationState:
    """Read a log beside its writer, if it has one: its state and, in `state.events`, its events.

    Raises:
        ConversationNotFound: the store has none of that id.
        LogDamaged: it can't be read to its end.
    """
    stored = await store.open(conversation_id, write=False)
    try:
        return await _load(store, stored)
    finally:
        with anyio.move_on_after(_CLOSING_SECONDS, shield=True):
            await stored.close()


class LogReader:
    """A log that is read beside its writer, and read on: what was read once is not read again."""

    def __init__(self, tail: LogTail, where: str) -> None:
        self._tail = tail
        self._where = where
        self.state = ConversationState(tail.conversation_id)
        """The state that the events read so far fold to."""

    @classmethod
    async def open(cls, store: Store, conversation_id: str) -> Self:
        """Find a log. Nothing of it is read yet.

        Raises:
            ConversationNotFound: the store has none of that id.
        """
        return cls(await store.tail(conversation_id), f"{store.location}/{conversation_id}")

    async def read(self) -> Sequence[Event]:
        """Return the events that came since the last time, whole groups only.

        Where the log was cut back meanwhile, what was given stays given: it begins anew with what comes behind that.

        Raises:
            LogDamaged: it can't be read on.
        """
        head = self.state.head
        records = await self._tail.read()
        if records is None:
            self.state = ConversationState(self._tail.conversation_id)
            records = await self._tail.read() or ()
            head = len(records)
        self.state = await _fold_all(self._tail, self._where, records, self.state)
        return self.state.events[head:]


def _refuse_read_only(state: ConversationState) -> None:
    if state.read_only is not None:
        raise LogReadOnly(state.conversation_id, state.read_only)


async def _load(store: Store, stored: StoredLog) -> ConversationState:
    where = f"{store.location}/{stored.conversation_id}"
    return await _fold_all(stored, where, await stored.read(), ConversationState(stored.conversation_id))


async def _fold_all(
    stored: StoredLog | LogTail, where: str, records: Sequence[Record], state: ConversationState
) -> ConversationState:
    version = stored.format_version
    fold = partial(_fold, state, where, version, records)
    begin = partial(_fold_unless_blobs, fold, records)
    named = await run_sync(begin, limiter=LOG_THREADS.limiter) if len(records) > _FEW else begin()
    if isinstance(named, ConversationState):
        state = named
    else:
        blobs: dict[str, str] = {}
        for digest, seq in named.items():
            try:
                blobs[digest] = (await stored.read_blob(digest)).decode()
            except BlobLost as error:
                raise LogDamaged(where, seq, str(error), _how_to_repair(stored.conversation_id)) from error
        state = await run_sync(fold, blobs, limiter=LOG_THREADS.limiter)
    if version != FORMAT_VERSION:
        state.read_only = other_format(version)
    return state


def _fold_unless_blobs(
    fold: Callable[[Mapping[str, str]], ConversationState], records: Sequence[Record]
) -> ConversationState | dict[str, int]:
    """Fold records that name no blobs; else name them, as they have to be read first."""
    return _find_blobs(records) or fold({})


def _find_blobs(records: Sequence[Record]) -> dict[str, int]:
    named: dict[str, int] = {}
    for record in [record for record in records if _BLOB in record.body]:
        for digest in find_blobs(record.body):
            named.setdefault(digest, record.seq)
    return named


def _fold(
    state: ConversationState, where: str, version: int, records: Sequence[Record], blobs: Mapping[str, str]
) -> ConversationState:
    conversation_id = state.conversation_id
    for record in records:
        try:
            body = record.body if version == FORMAT_VERSION else upgrade(record.body, version)
            event = decode(body, blobs) if blobs else parse_event(body)
        except ValidationError as error:
            reason = other_format(version) if version > FORMAT_VERSION else state.read_only
            if reason is not None:
                raise StoreError(
                    f"Conversation {conversation_id!r} can't be read beyond event {record.seq - 1}: {reason}. "
                    "Read it with the version of agentcore that wrote it, or a newer one."
                ) from error
            raise LogDamaged(where, record.seq, str(error), _how_to_repair(conversation_id)) from error
        state.apply(event, group_ends=record.group == record.seq)
    return state


def _how_to_repair(conversation_id: str) -> str:
    return f"agentcore log repair {conversation_id}"
