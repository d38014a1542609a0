"""Entries of folders as the helper describes them, checked."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, cast

from agentcore.workspace.values import Entry, EntryKind
from agentcore_sandbox.frames import ProtocolError, number_in, parse_json, text_in

MAX_LISTING: Final = 64 * 1024 * 1024
"""How many bytes the listing of a folder may have: half a million names."""
_KINDS: Final = {"file", "dir", "link", "other"}
_LARGEST: Final = 2**63 - 1


def read_entries(text: bytes) -> tuple[Entry, ...]:
    """Return the entries of a listing."""
    values = parse_json(text)
    if not isinstance(values, list):
        raise ProtocolError("it sent a listing that is not a list")
    entries = tuple(_entry(each) for each in cast("list[object]", values))
    for entry in entries:
        if "/" in entry.name or entry.name in ("", ".", ".."):
            raise ProtocolError("it sent a listing with a name that no file can have")
    return entries


def read_entry(values: dict[str, Any]) -> Entry | None:
    """Return the entry of an answer, if there is one."""
    entry = values.get("entry")
    return None if entry is None else _entry(entry)


def _entry(value: object) -> Entry:
    if not isinstance(value, dict):
        raise ProtocolError("it sent an entry that is not an object")
    values = cast("dict[str, Any]", value)
    name, kind, modified = text_in(values, "name"), text_in(values, "kind"), values.get("modified")
    if kind not in _KINDS or not isinstance(modified, int | float):
        raise ProtocolError("it sent an entry that is not one")
    try:
        name.encode()
        when = datetime.fromtimestamp(modified, UTC)
    except UnicodeEncodeError:
        raise ProtocolError("it sent a name that is not text") from None
    except (ValueError, OverflowError, OSError):
        # A file may have any time, and a folder is to be listed all the same.
        when = datetime.fromtimestamp(0, UTC)
    size = number_in(values, "size", most=_LARGEST)
    return Entry(name=name, kind=cast("EntryKind", kind), size=size, modified=when)
