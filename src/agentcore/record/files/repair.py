"""Salvage: what can be kept of a log that was damaged in the middle."""

from __future__ import annotations

import os
from typing import NamedTuple

from pydantic import ValidationError

from agentcore._value import Value
from agentcore.errors import BlobLost
from agentcore.record.codec import decode, find_blobs, upgrade
from agentcore.record.files.disk import Disk
from agentcore.record.files.layout import read_blob
from agentcore.record.files.line import scan
from agentcore.record.store import Record


class RepairReport(Value):
    """The outcome of a repair: the events kept and the bytes cut."""

    kept: int
    """Events that are still in the log."""
    cut_lines: int
    """Lines that are not, sound ones behind the damage included: they can't stand without those before them."""
    reason: str | None
    """The damage, or None where nothing was."""
    backup: str | None
    """Where the log as it was is kept, or None where nothing was changed."""


class Examination(NamedTuple):
    """How far a log is sound, its blobs included."""

    data: bytes
    kept: int
    """How many events, in complete groups, are sound."""
    length: int
    """How many bytes those are."""
    torn: str | None
    damage: tuple[int, str] | None


def examine(disk: Disk, folder: str, format_version: int) -> Examination:
    """Read a log as its next writer will: lines, blobs and events. Blocks."""
    data = disk.read(os.path.join(folder, "events.jsonl"))
    found = scan(data)
    group_begins = 1
    for record in found.records:
        try:
            _read_event(disk, folder, record, format_version)
        except (BlobLost, ValidationError) as error:
            kept = group_begins - 1
            length = sum(len(line) + 1 for line in data.split(b"\n")[:kept])
            return Examination(data, kept, length, found.torn, (record.seq, str(error)))
        if record.group == record.seq:
            group_begins = record.seq + 1
    return Examination(data, len(found.records), found.length, found.torn, found.damage)


def _read_event(disk: Disk, folder: str, record: Record, format_version: int) -> None:
    body = upgrade(record.body, format_version)
    decode(body, {digest: read_blob(disk, folder, digest).decode() for digest in find_blobs(body)})


def repair_log(disk: Disk, folder: str, format_version: int) -> RepairReport:
    """Cut the log in a folder, whose lock the caller holds, back to its sound beginning. Blocks."""
    path = os.path.join(folder, "events.jsonl")
    found = examine(disk, folder, format_version)
    if found.damage is None and found.torn is None:
        return RepairReport(kept=found.kept, cut_lines=0, reason=None, backup=None)
    backup = keep_copy(disk, f"{path}.damaged", found.data)
    descriptor = disk.open_append(path)
    try:
        disk.truncate(descriptor, found.length)
        disk.sync(descriptor)
    finally:
        os.close(descriptor)
    reason = f"line {found.damage[0]}: {found.damage[1]}" if found.damage else found.torn
    cut = found.data[found.length :].rstrip(b"\n").count(b"\n") + 1
    return RepairReport(kept=found.kept, cut_lines=cut, reason=reason, backup=backup)


def keep_copy(disk: Disk, path: str, data: bytes) -> str:
    """Keep data under the path with a number behind it that is not taken yet, durably; give that name. Blocks."""
    number = 1
    while os.path.exists(f"{path}-{number}"):
        number += 1
    copy = f"{path}-{number}"
    descriptor = disk.open_append(copy)
    try:
        disk.write(descriptor, data)
        disk.sync(descriptor)
    finally:
        os.close(descriptor)
    disk.sync_folder(os.path.dirname(path))
    return copy
