"""The line format of `events.jsonl`, settled with the first log ever written.

A line is the event's JSON object with two members behind it: `group`, the seq of the last line of its group, and `crc`,
the CRC-32 (zlib's, eight hexadecimal digits) of all bytes of the line before `,"crc"`. The object begins with `seq`, the
number of the line. A group whose last line is missing was never acknowledged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

from agentcore.record.store import Record

_CRC = b',"crc":"'
_CRC_LENGTH = len(_CRC) + 8 + 2
_GROUP = b',"group":'


def encode_line(record: Record) -> bytes:
    """Make the line of a record, its newline included."""
    covered = b'%b,"group":%d' % (record.body[:-1], record.group)
    return b'%b,"crc":"%08x"}\n' % (covered, crc32(covered))


def decode_line(line: bytes, seq: int) -> Record:
    """Read the line (without its newline) that should hold this seq.

    Raises:
        ValueError: it does not; the text says why.
    """
    covered = line[:-_CRC_LENGTH]
    if not line.endswith(b',"crc":"%08x"}' % crc32(covered)):
        has_one = line[-_CRC_LENGTH:-10] == _CRC and line.endswith(b'"}')
        raise ValueError(f"the {'checksum does not fit the line' if has_one else 'line does not end in a checksum'}")
    if not covered.startswith(b'{"seq":%d,' % seq):
        raise ValueError(f"this is not event {seq}: lines are missing, or in another order")
    end = covered.rindex(_GROUP)
    group = int(covered[end + len(_GROUP) :])
    if group < seq:
        raise ValueError(f"event {seq} claims to belong to the group that ended at {group}")
    return Record(seq, group, covered[:end] + b"}")


class Scan(NamedTuple):
    """The content of a file of lines."""

    records: Sequence[Record]
    """The records of all complete groups before the first unsound line."""
    length: int
    """How many bytes of the file those are."""
    torn: str | None
    """The bytes after them, where those are an end that a write left when it was cut off."""
    doubtful: bool
    """True if a whole line of that end is unsound: it may have been acknowledged and have been damaged since."""
    damage: tuple[int, str] | None
    """The line and what is wrong with it, where no write that was cut off can have left it."""


def scan(data: bytes, after: int = 0) -> Scan:
    """Read all lines, the first of which follows event `after`; tell an unfinished end from damage."""
    lines = data.split(b"\n")
    tail = lines.pop()
    records: list[Record] = []
    open_group = 0
    damage: tuple[int, str] | None = None
    doubtful = _begins_whole(tail)
    torn: str | None = f"an unfinished line of {len(tail)} bytes" if tail else None
    for number, line in enumerate(lines, after + 1):
        try:
            record = decode_line(line, number)
            if open_group >= number and record.group != open_group:
                raise ValueError(f"the group of event {number - 1} should go on to {open_group}")  # noqa: TRY301
        except ValueError as error:
            # A write that was cut off leaves one unsound line, the last one, and nothing in it that is sound.
            if number < after + len(lines) or _begins_whole(line):
                damage = (number, str(error))
            else:
                doubtful = True
                torn = f"an unsound line at the end ({error})"
            break
        records.append(record)
        open_group = record.group
    kept = _complete(records)
    if len(kept) < len(records) and damage is None:
        left = len(records) - len(kept)
        torn = f"{left} event{'' if left == 1 else 's'} of an unfinished group" + (f", and {torn}" if torn else "")
    length = sum(map(len, lines[: len(kept)])) + len(kept)
    return Scan(kept, length, torn, doubtful, damage)


def _complete(records: list[Record]) -> list[Record]:
    if not records or records[-1].group == records[-1].seq:
        return records
    unfinished = records[-1].group
    end = len(records)
    while end and records[end - 1].group == unfinished:
        end -= 1
    return records[:end]


def _begins_whole(line: bytes) -> bool:
    """Return whether the line, or a beginning of it, is as it was written: in the wrong place, or without its newline."""
    end = line.find(_CRC)
    while end >= 0:
        if line[end + len(_CRC) : end + _CRC_LENGTH] == b'%08x"}' % crc32(line[:end]):
            return True
        end = line.find(_CRC, end + 1)
    return False
