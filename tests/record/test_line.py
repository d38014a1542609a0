"""The line format: what is read, what is cut, and what is damage, byte by byte."""

from __future__ import annotations

import json
import zlib

import pytest

from agentcore.record import Record
from agentcore.record.files.line import Scan, decode_line, encode_line, scan


def record(seq: int, group: int, said: str = "words") -> Record:
    return Record(seq, group, f'{{"seq":{seq},"said":"{said}"}}'.encode())


# One group of one line, one of three, one of one, one of two.
RECORDS = [
    record(1, 1),
    *(record(seq, 4) for seq in (2, 3, 4)),
    record(5, 5, "żółw \u2028"),
    record(6, 7),
    record(7, 7),
]
LINES = [encode_line(each) for each in RECORDS]
LOG = b"".join(LINES)
GROUP_ENDS = [0, 1, 4, 5, 7]
LAST_GROUP_BEGINS = sum(map(len, LINES[:5]))


def line_of(offset: int) -> int:
    """The number of the line in which a byte of the log stands."""
    return LOG.count(b"\n", 0, offset) + 1


def complete_at(length: int) -> int:
    """How many records of whole groups are in the first so many bytes."""
    lines = LOG.count(b"\n", 0, length)
    return max(end for end in GROUP_ENDS if end <= lines)


def test_a_line_is_what_the_documentation_says() -> None:
    line = encode_line(Record(2, 3, b'{"seq":2,"kind":"pause"}'))
    covered = b'{"seq":2,"kind":"pause","group":3'
    assert line == covered + b',"crc":"%08x"}\n' % zlib.crc32(covered)
    assert json.loads(line) == {"seq": 2, "kind": "pause", "group": 3, "crc": f"{zlib.crc32(covered):08x}"}


@pytest.mark.parametrize(
    "body",
    [
        b'{"seq":1,"x":{"group":9,"crc":"00000000"},"group":4,"crc":"11111111"}',
        b'{"seq":1,"x":",\\"group\\":3,\\"crc\\":\\"00000000\\"}"}',
        b'{"seq":1,"x":"\xe2\x80\xa8"}',
    ],
)
def test_what_looks_like_the_end_of_a_line_does_not_end_it(body: bytes) -> None:
    line = encode_line(Record(1, 1, body))
    assert decode_line(line[:-1], 1).body == body
    assert scan(line).records == [Record(1, 1, body)]


def test_a_whole_log_is_read_whole() -> None:
    assert scan(LOG) == Scan(RECORDS, len(LOG), torn=None, doubtful=False, damage=None)
    assert scan(b"") == Scan([], 0, torn=None, doubtful=False, damage=None)


def test_cut_anywhere_the_longest_run_of_whole_groups_is_left() -> None:
    for length in range(len(LOG)):
        found = scan(LOG[:length])
        kept = complete_at(length)
        assert found.damage is None, length
        assert found.records == RECORDS[:kept], length
        assert found.length == sum(map(len, LINES[:kept])), length
        assert (found.torn is None) == (found.length == length), length


def test_any_changed_byte_is_damage_that_is_named_or_a_cut_of_the_last_group() -> None:
    for offset, byte in enumerate(LOG):
        for changed in {0, 1, 10, 32, 34, 48, 125, 255, byte ^ 1, byte ^ 128} - {byte}:
            found = scan(LOG[:offset] + bytes([changed]) + LOG[offset + 1 :])
            if offset < LAST_GROUP_BEGINS:
                assert found.damage is not None, (offset, changed)
            if found.damage is not None:
                assert found.damage[0] == line_of(offset), (offset, changed)
                assert found.records == RECORDS[: max(end for end in GROUP_ENDS if end < line_of(offset))]
            else:
                # It may have been acknowledged, so that what is cut off has to be kept.
                assert found.torn is not None, (offset, changed)
                assert found.doubtful, (offset, changed)
                assert found.records == RECORDS[:5], (offset, changed)


def test_a_lost_or_an_added_byte_is_damage_that_is_named() -> None:
    for offset in range(LAST_GROUP_BEGINS):
        for data in (LOG[:offset] + LOG[offset + 1 :], LOG[:offset] + b"x" + LOG[offset:]):
            found = scan(data)
            assert found.damage is not None, offset
            assert found.damage[0] == line_of(offset), offset


@pytest.mark.parametrize(
    ("data", "line"),
    [
        *((b"".join(LINES[: number - 1] + LINES[number:]), number) for number in range(1, 7)),
        *((b"".join(LINES[:number] + LINES[number - 1 :]), number + 1) for number in range(1, 8)),
        (b"".join([LINES[0], *LINES[3:5], *LINES[1:3], *LINES[5:]]), 2),
        (LOG.replace(b"\n", b"\r\n"), 1),
        (b"".join(b" " + line for line in LINES), 1),
        (b"".join([encode_line(record(1, 3)), encode_line(record(2, 2)), encode_line(record(3, 3))]), 2),
        (encode_line(record(1, 1)) + encode_line(Record(2, 1, b'{"seq":2}')), 2),
    ],
    ids=[
        *(f"line {number} is lost" for number in range(1, 7)),
        *(f"line {number} stands twice" for number in range(1, 8)),
        *("another order", "other line ends", "no line is sound", "a group inside a group", "a group that had ended"),
    ],
)
def test_lines_that_do_not_follow_each_other_are_damage_that_is_named(data: bytes, line: int) -> None:
    found = scan(data)
    assert found.damage is not None
    assert found.damage[0] == line


def test_a_lost_last_line_is_an_unfinished_group() -> None:
    found = scan(b"".join(LINES[:6]))
    assert (found.damage, found.records) == (None, RECORDS[:5])
    assert found.torn is not None


@pytest.mark.parametrize(
    "end", [b"\0" * 4096, b"\0" * 10 + b"\n", b"{", b"\n", b'{"seq":8,"said":"half\n', b"\xff\xfe"]
)
def test_an_end_that_no_line_has_is_cut_and_told(end: bytes) -> None:
    found = scan(LOG + end)
    assert found.damage is None
    assert (found.records, found.length) == (RECORDS, len(LOG))
    assert found.torn is not None
