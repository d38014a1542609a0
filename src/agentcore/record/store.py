"""The protocol of every store of logs.

Above: `EventLog`, which knows events. Below: bytes. A store knows neither kinds nor fields; it keeps numbered records in
order, whole groups at a time, and blobs by their hash.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple, Protocol

from agentcore._threads import Threads
from agentcore._value import Value
from agentcore.errors import SeqConflict

LOG_THREADS: Final = Threads("logs", 8)
"""They read, write and fold logs."""


NO_EVENTS = (
    "no event at all: the log was made, and then its writer ended before it kept one, or the file was emptied since"
)
"""The notice for a log that holds no events: whether it ever held some is not known."""


class Record(NamedTuple):
    """One event as a store keeps it."""

    seq: int
    """Its place in the log, from 1, without gaps."""
    group: int
    """The seq of the last record of its group; a group is kept whole or not at all."""
    body: bytes
    """A JSON object on one line that begins with its seq (`{"seq":12,`), in UTF-8."""


class LogInfo(Value):
    """The description of a log, available without reading it."""

    conversation_id: str
    created: datetime
    modified: datetime
    format_version: int
    problem: str | None = None
    """Why it can't be opened, where that shows without reading it; the other fields are a guess then."""

    @property
    def cursor(self) -> str:
        """Its place among all logs, for `Store.list(after=...)`: when it was made, and its id.

        It remains that place when the log is deleted.
        """
        return f"{self.created.astimezone(UTC).isoformat()} {self.conversation_id}"


def page_logs(logs: Iterable[LogInfo], after: str | None, limit: int | None) -> list[LogInfo]:
    """Return the page that `Store.list` is asked for, in a store that has all its logs at hand.

    Raises:
        ValueError: `after` is not a `LogInfo.cursor`, or `limit` is negative.
    """
    if limit is not None and limit < 0:
        raise ValueError(f"limit is how many logs a page has, 0 or more, not {limit!r}.")
    if after is not None:
        when, _, conversation_id = after.partition(" ")
        try:
            place = (datetime.fromisoformat(when), conversation_id)
            logs = [info for info in logs if (info.created, info.conversation_id) < place]
        except (ValueError, TypeError):
            raise ValueError(f"after is the cursor of a log that was listed before, not {after!r}.") from None
    return sorted(logs, key=lambda info: (info.created, info.conversation_id), reverse=True)[:limit]


def check_append(conversation_id: str, records: Sequence[Record], last: int) -> None:
    """Check, for a store, what it is given to append to a log that ends at `last`.

    Raises:
        SeqConflict: it does not go on there.
        ValueError: these are not whole groups of records.
    """
    if records and records[0].seq != last + 1:
        raise SeqConflict(conversation_id, records[0].seq, last + 1)
    group = last
    for seq, record in enumerate(records, last + 1):
        if seq > group:
            group = record.group
        if record.seq != seq or record.group != group or group < seq:
            raise ValueError(f"{record!r} is not the next one: event {seq}, in a group that ends at {group}.")
        if not record.body.startswith(b'{"seq":%d' % seq) or not record.body.endswith(b"}") or b"\n" in record.body:
            raise ValueError(f"{record!r} is not one line that begins with its seq.")
    if group != last + len(records):
        raise ValueError(
            f"The last group goes on to event {group}, and event {last + len(records)} is the last one given."
        )


class StoredLog(Protocol):
    """One log, held open."""

    @property
    def conversation_id(self) -> str:
        """The conversation of the log."""
        ...

    @property
    def format_version(self) -> int:
        """The version of agentcore's event format that the log was begun with."""
        ...

    @property
    def repaired(self) -> str | None:
        """The unfinished end that was cut off when the log was opened, or None."""
        ...

    @property
    def epoch(self) -> int:
        """How often the log was opened for writing by now: 1 at its creation, and more each time it is opened.

        Counted under the writer's lock, and as durable as the store promises before `open` or `create` returns: no two
        writers ever have the same, and a later one has the higher one. A number may be passed over. A reader counts
        nothing, and has the number as it was when it opened the log.
        """
        ...

    async def read(self, after: int = 0) -> Sequence[Record]:
        """Return the records behind the one with this seq, in order: complete groups only.

        Raises:
            LogDamaged: a record in the middle is not what was written.
        """
        ...

    async def append(self, records: Sequence[Record]) -> None:
        """Keep more records, one or more whole groups. When this returns, they are as durable as the store promises.

        All of it is kept or nothing is: a group never in part. A store checks what it is given with `check_append`.
        Whoever cancels it does not learn which of the two it was; a further append that does not follow is refused.

        Raises:
            SeqConflict: the first record does not follow the last one kept.
            ValueError: these are not whole groups.
            StoreError: they could not be kept, or it is not known whether they were; the log takes no more.
        """
        ...

    async def write_blob(self, data: bytes) -> str:
        """Keep a large piece and give its SHA-256 in hexadecimal. Durable before a record that names it."""
        ...

    async def read_blob(self, digest: str) -> bytes:
        """Return a large piece.

        Raises:
            BlobLost: it is not there, or not what was written.
        """
        ...

    async def close(self) -> None:
        """Let go of the log. Closing twice is fine."""
        ...


class LogTail(Protocol):
    """One log that is read beside its writer, and read on as it grows. It holds nothing, so it needs no closing."""

    @property
    def conversation_id(self) -> str:
        """The conversation of the log."""
        ...

    @property
    def format_version(self) -> int:
        """The version of agentcore's event format that the log was begun with."""
        ...

    async def read(self) -> Sequence[Record] | None:
        """Return the records of all complete groups since the last time.

        None says that the log was cut back behind what was read. The next time begins at the first record then.

        Raises:
            LogDamaged: a record in the middle is not what was written.
            StoreError: it can't be read, or is not there anymore.
        """
        ...

    async def read_blob(self, digest: str) -> bytes:
        """Return a large piece, as `StoredLog.read_blob` does.

        Raises:
            BlobLost: it is not there, or not what was written.
        """
        ...


class Store(Protocol):
    """Many logs.

    A caller may be cancelled at any moment. What was opened for one that is gone is closed, and a log that was made for
    one is removed or left closed.
    """

    @property
    def location(self) -> str:
        """Where that is, for messages to people."""
        ...

    async def create(self, conversation_id: str, *, format_version: int) -> StoredLog:
        """Begin a log and hold it for writing.

        Raises:
            ConversationExists: there is one of that id.
            ValueError: it can't be an id (see `agentcore.ids.check_conversation_id`).
        """
        ...

    async def open(self, conversation_id: str, *, write: bool = True) -> StoredLog:
        """Hold a log, for writing (an unfinished end is cut off, and told) or for reading beside a writer.

        Raises:
            ConversationNotFound: there is none of that id.
            ConversationLocked: another writer holds it.
        """
        ...

    async def tail(self, conversation_id: str) -> LogTail:
        """Find a log, to follow it. Nothing of it is read yet.

        Raises:
            ConversationNotFound: there is none of that id.
        """
        ...

    async def list(self, *, after: str | None = None, limit: int | None = None) -> Sequence[LogInfo]:
        """List the logs, newest first: by when they were made, and by id where that is the same.

        Logs that are made or deleted meanwhile move no other from one page to the next.

        Args:
            after: The `cursor` of the last log of the page before; None begins with the newest.
            limit: How many at most; None is all.
        """
        ...

    async def holder(self, conversation_id: str) -> str | None:
        """Return who writes a log now, as `ConversationLocked` names him, or None.

        Looking keeps no one from opening it.

        Raises:
            ConversationNotFound: there is none of that id.
        """
        ...

    async def delete(self, conversation_id: str) -> None:
        """Remove a log and its blobs.

        A store cannot reach a workspace: outputs that the conversation kept there stay. `Conversation.delete` and
        `Host.delete` remove these too.

        Raises:
            ConversationNotFound: there is none of that id.
            ConversationLocked: another writer holds it.
        """
        ...
