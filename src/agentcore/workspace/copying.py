"""Copying files and folders on this machine: each file replaced whole, links kept, stopped when nobody wants it any more."""

from __future__ import annotations

import io
import os
import stat as modes
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentcore.errors import PathError
from agentcore.workspace.files import open_at_once, path_errors, replacement, write_all
from agentcore.workspace.threads import FILES

__all__ = ["copy"]

_PIECE: Final = 1 << 20


async def copy(source: str, target: str) -> None:
    """Copy a file or a folder. When cancelled, no more than a piece of a file is copied after that.

    Raises:
        PathError: one of the two can't be used so.
    """
    stop = threading.Event()
    try:
        await FILES.run(_copy, source, target, stop, abandon_on_cancel=True)
    except BaseException:
        stop.set()
        raise


def _copy(source: str, target: str, stop: threading.Event) -> None:
    source, target = str(Path(source).absolute()), str(Path(target).absolute())
    with path_errors(source):
        mode = Path(source).stat().st_mode
    if modes.S_ISDIR(mode):
        inside = os.path.realpath(source)
        if os.path.commonpath([inside, os.path.realpath(target)]) == inside:
            raise PathError(target, "invalid", f"{source!r} can't be copied into itself, to {target!r}.")
        _copy_folder(source, target, stop)
    else:
        _copy_file(source, target, stop)


def _copy_folder(source: str, target: str, stop: threading.Event) -> None:
    with path_errors(target):
        Path(target).mkdir(parents=True, exist_ok=True)
    with path_errors(source), os.scandir(source) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if stop.is_set():
            return
        below = f"{target}/{entry.name}"
        if entry.is_symlink():
            _copy_link(entry.path, below)
        elif entry.is_dir():
            _copy_folder(entry.path, below, stop)
        elif entry.is_file():
            _copy_file(entry.path, below, stop)
        # Else a pipe or a socket: that belongs to the process that made it, and means nothing elsewhere.


def _copy_link(source: str, target: str) -> None:
    with path_errors(source):
        goal = Path(source).readlink()
    with path_errors(target):
        with suppress(FileNotFoundError):
            Path(target).unlink()
        Path(target).symlink_to(goal)


def _copy_file(source: str, target: str, stop: threading.Event) -> None:
    with path_errors(source), open(source, "rb", buffering=0, opener=open_at_once) as file:
        mode = os.fstat(file.fileno()).st_mode
        if not modes.S_ISREG(mode):
            raise PathError(source, "not_a_file", f"{source!r} is not a file but a device, a pipe or a socket.")
        with replacement(target, new_mode=modes.S_IMODE(mode)) as descriptor:
            # What goes wrong while reading is not the target's fault.
            while piece := _read_piece(source, file):
                if stop.is_set():
                    raise _Stopped
                write_all(descriptor, piece)


def _read_piece(source: str, file: io.FileIO) -> bytes | None:
    with path_errors(source):
        return file.read(_PIECE)


class _Stopped(Exception):
    """Ends a thread that nobody waits for any more."""
