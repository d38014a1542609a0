"""`epoch`: how often a log was opened for writing, as a tally: one mark for each time.

A tally, because an append of one byte is never there in part, and a crash leaves the old number or the next one. Numbers
that a crash or an error kept from being told are passed over.
"""

from __future__ import annotations

import os

from agentcore.record.files.disk import Disk

__all__ = ["count_epoch", "read_epoch"]

_MARK = b"|"


def read_epoch(disk: Disk, folder: str) -> int:
    """Return how often the log in a folder was opened for writing. Blocks."""
    try:
        return len(disk.read(_path(folder)))
    except FileNotFoundError:
        return 0


def count_epoch(disk: Disk, folder: str, *, sync: bool, anew: bool = False) -> int:
    """Count one opening more, for the holder of the lock, and return the number. Blocks.

    Args:
        disk: The file operations.
        folder: Of the log.
        sync: Whether the number is to survive a loss of power.
        anew: Begin with 1: the folder is just made, or was left by a creation that was cut off.
    """
    before = 0 if anew else read_epoch(disk, folder)
    descriptor = disk.open_append(_path(folder))
    try:
        if anew:
            disk.truncate(descriptor, 0)
        disk.write(descriptor, _MARK)
        if sync:
            disk.sync(descriptor)
    finally:
        os.close(descriptor)
    if sync and not before and not anew:
        disk.sync_folder(folder)  # the file was not there: its name has to survive as well
    return before + 1


def _path(folder: str) -> str:
    return os.path.join(folder, "epoch")
