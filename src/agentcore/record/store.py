"""Where logs are kept: the protocol every store meets.

Above: `EventLog`, which knows events. Below: bytes. A store knows neither kinds nor fields; it keeps numbered records in
order, whole groups at a time, and blobs by their hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from agentcore._value import Value

__all__ = ["LogInfo", "Record", "Store", "StoredLog"]


class Record(NamedTuple):
    """One event as a store keeps it."""

    seq: int
    """Its place in the log, from 1, without gaps."""
    group: int
    """The seq of the last record of its group; a group is kept whole or not at all."""
    body: bytes
    """A JSON object on one line that begins with its seq (`{"seq":12,`), in UTF-8."""


class LogInfo(Value):
    """What a store tells of a log without reading it."""

    conversation_id: str
    created: datetime
    modified: datetime
    format_version: int


class StoredLog(Protocol):
    """One log, held open."""

    @property
    def conversation_id(self) -> str:
        """Whose log it is."""
        ...

    @property
    def format_version(self) -> int:
        """The version of agentcore's event format that the log was begun with."""
        ...

    @property
    def repaired(self) -> str | None:
        """What was cut off an unfinished end when the log was opened, or None."""
        ...

    async def read(self) -> Sequence[Record]:
        """Give all records in order: complete groups only.

        Raises:
            LogDamaged: a record in the middle is not what was written.
        """
        ...

    async def append(self, records: Sequence[Record]) -> None:
        """Keep more records, one or more whole groups. When this returns, they are as durable as the store promises.

        Raises:
            SeqConflict: the first record does not follow the last one kept.
            StoreError: they could not be kept, or it is not known whether they were; the log takes no more.
        """
        ...

    async def write_blob(self, data: bytes) -> str:
        """Keep a large piece and give its SHA-256 in hexadecimal. Durable before a record that names it."""
        ...

    async def read_blob(self, digest: str) -> bytes:
        """Give a large piece back.

        Raises:
            StoreError: it is not there, or not what was written.
        """
        ...

    async def close(self) -> None:
        """Let go of the log. Closing twice is fine."""
        ...


class Store(Protocol):
    """Many logs."""

    @property
    def location(self) -> str:
        """Where that is, for messages to people."""
        ...

    async def create(self, conversation_id: str, *, format_version: int) -> StoredLog:
        """Begin a log and hold it for writing.

        Raises:
            ConversationExists: there is one of that id.
        """
        ...

    async def open(self, conversation_id: str, *, write: bool = True) -> StoredLog:
        """Hold a log, for writing (an unfinished end is cut off, and told) or for reading beside a writer.

        Raises:
            ConversationNotFound: there is none of that id.
            ConversationLocked: somebody else holds it for writing.
        """
        ...

    async def list(self) -> Sequence[LogInfo]:
        """Tell of all logs, the newest first."""
        ...

    async def delete(self, conversation_id: str) -> None:
        """Remove a log and its blobs.

        Raises:
            ConversationNotFound: there is none of that id.
            ConversationLocked: somebody holds it for writing.
        """
        ...
