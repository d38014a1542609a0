"""Salvage: what can be kept of a log that was damaged in the middle."""

from __future__ import annotations

import os
import shutil

from agentcore._value import Value
from agentcore.record.files.disk import Disk
from agentcore.record.files.line import scan

__all__ = ["RepairReport", "repair_log"]


class RepairReport(Value):
    """What a repair kept and what it cut."""

    kept: int
    """Events that are still in the log."""
    cut_lines: int
    """Lines that are not, sound ones behind the damage included: they can't stand without those before them."""
    reason: str | None
    """What was wrong, or None where nothing was."""
    backup: str | None
    """Where the log as it was is kept, or None where nothing was changed."""


def repair_log(disk: Disk, folder: str) -> RepairReport:
    """Cut the log in a folder, whose lock the caller holds, back to its sound beginning. Blocks."""
    path = os.path.join(folder, "events.jsonl")
    data = disk.read(path)
    found = scan(data)
    if found.damage is None and found.torn is None:
        return RepairReport(kept=len(found.records), cut_lines=0, reason=None, backup=None)
    backup = _unused(f"{path}.damaged")
    shutil.copyfile(path, backup)
    descriptor = disk.open_append(backup)
    try:
        disk.sync(descriptor)
    finally:
        os.close(descriptor)
    descriptor = disk.open_append(path)
    try:
        disk.truncate(descriptor, found.length)
        disk.sync(descriptor)
    finally:
        os.close(descriptor)
    disk.sync_folder(folder)
    reason = f"line {found.damage[0]}: {found.damage[1]}" if found.damage else found.torn
    cut = data[found.length :].rstrip(b"\n").count(b"\n") + 1
    return RepairReport(kept=len(found.records), cut_lines=cut, reason=reason, backup=backup)


def _unused(path: str) -> str:
    number = 1
    while os.path.exists(f"{path}-{number}"):
        number += 1
    return f"{path}-{number}"
