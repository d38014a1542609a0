"""`meta.json`: what is said of a log once, when it is made. A folder without it is no log."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime

from agentcore.errors import StoreError
from agentcore.record.files.disk import Disk
from agentcore.record.store import LogInfo

__all__ = ["has_meta", "read_info", "write_meta"]


def has_meta(folder: str) -> bool:
    """Say whether there is a log in this folder."""
    return os.path.exists(_path(folder))


def write_meta(disk: Disk, folder: str, conversation_id: str, format_version: int, *, sync: bool) -> None:
    """Say it: from here on the folder is a log. Blocks."""
    meta = {"id": conversation_id, "created": datetime.now(UTC).isoformat(), "format_version": format_version}
    unfinished = f"{_path(folder)}.part"
    descriptor = disk.open_append(unfinished)
    try:
        disk.truncate(descriptor, 0)
        disk.write(descriptor, json.dumps(meta).encode() + b"\n")
        if sync:
            disk.sync(descriptor)
    finally:
        os.close(descriptor)
    disk.replace(unfinished, _path(folder))
    if sync:
        disk.sync_folder(folder)


def read_info(disk: Disk, folder: str, conversation_id: str) -> LogInfo:
    """Tell of the log in a folder. Blocks.

    Raises:
        FileNotFoundError: there is none.
    """
    path = _path(folder)
    try:
        meta = json.loads(disk.read(path))
        created = datetime.fromisoformat(meta["created"])
        version = int(meta["format_version"])
        if created.tzinfo is None or version < 1:
            raise ValueError(f"created {created}, format_version {version}")  # noqa: TRY301
        problem = None
    except StoreError as error:
        problem = str(error)
        created, version = _changed(path), 0
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        problem = f"{path!r} is damaged ({error!r}): it should hold id, created (with its offset) and format_version."
        created, version = _changed(path), 0
    try:
        modified = _changed(os.path.join(folder, "events.jsonl"))
    except FileNotFoundError:
        modified = created
    return LogInfo(
        conversation_id=conversation_id, created=created, modified=modified, format_version=version, problem=problem
    )


def _changed(path: str) -> datetime:
    return datetime.fromtimestamp(os.stat(path).st_mtime, UTC)


def _path(folder: str) -> str:
    return os.path.join(folder, "meta.json")
