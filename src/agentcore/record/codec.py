"""Events to records and back; what is large goes into blobs.

A string of more than 64 KB is kept as a blob, and its place in the record says `blob:sha256:<digest>`. A string that
happens to begin like that is kept as a blob as well, so that reading is never in doubt.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError

from agentcore._text import replace_lone_surrogates
from agentcore.events import Event, parse_event

FORMAT_VERSION: Final = 1
"""The version that this release writes."""

UPGRADES: Final[Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]] = {}
"""By the version upgraded from. Version 1 is the first."""


def upgrade(
    body: bytes,
    version: int,
    *,
    current: int = FORMAT_VERSION,
    upgrades: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = UPGRADES,
) -> bytes:
    """Return an event's JSON as the current version writes it; one of a newer version as it is."""
    if version >= current:
        return body
    event: dict[str, Any] = json.loads(body)
    for step in range(version, current):
        event = upgrades[step](event)
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()


def other_format(version: int) -> str:
    """Return the reason why a log in this format is not continued."""
    return f"it is in format {version}, and this version of agentcore writes format {FORMAT_VERSION}"


BLOB_THRESHOLD: Final = 64 * 1024
BLOB_PREFIX: Final = "blob:sha256:"
_MARK: Final = f'"{BLOB_PREFIX}'.encode()
_ODD: Final = (b"NaN", b"Infinity", "\N{REPLACEMENT CHARACTER}".encode())
"""Values that JSON cannot express look like this once it is written; so may a text that is in order."""


async def encode(event: Event, write_blob: Callable[[bytes], Awaitable[str]]) -> tuple[Event, bytes]:
    """Return the event as it can be kept, and its JSON on one line, large strings replaced by blobs that are kept already.

    It is the event that was given, unless that holds what JSON can't say: NaN and the infinities become null, and half
    of a surrogate pair becomes a replacement character. What is true now is then what the log says later.
    """
    event, body = _say(event)
    if len(body) <= BLOB_THRESHOLD and _MARK not in body:
        return event, body
    blobs: dict[str, str] = {}
    data: JsonValue = json.loads(body)
    for text in _strings(data):
        if text not in blobs and (len(text.encode()) > BLOB_THRESHOLD or text.startswith(BLOB_PREFIX)):
            blobs[text] = BLOB_PREFIX + await write_blob(text.encode())
    return event, json.dumps(_replace(data, blobs), ensure_ascii=False, separators=(",", ":")).encode()


def find_blobs(body: bytes) -> list[str]:
    """List the digests that a record names; cheap where there are none."""
    if _MARK not in body:
        return []
    return [text[len(BLOB_PREFIX) :] for text in _strings(json.loads(body)) if text.startswith(BLOB_PREFIX)]


def decode(body: bytes, blobs: Mapping[str, str]) -> Event:
    """Read an event, given the text of each blob it names by digest.

    Raises:
        pydantic.ValidationError: it is not an event.
    """
    if _MARK not in body:
        return parse_event(body)
    data = _replace(json.loads(body), {BLOB_PREFIX + digest: text for digest, text in blobs.items()})
    return parse_event(json.dumps(data))


def _say(event: Event) -> tuple[Event, bytes]:
    try:
        body = event.__pydantic_serializer__.to_json(event)
    except PydanticSerializationError:
        pass  # half of a surrogate pair
    else:
        if not any(map(body.__contains__, _ODD)):
            return event, body
    parsed = parse_event(json.dumps(_sayable(event.model_dump(mode="json"))))
    return parsed, parsed.model_dump_json().encode()


def _sayable(value: Any) -> Any:
    if isinstance(value, str):
        return replace_lone_surrogates(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_sayable(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {_sayable(key): _sayable(item) for key, item in cast("dict[str, Any]", value).items()}
    return value


def _strings(value: Any) -> list[str]:
    found: list[str] = []
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, list):
            stack.extend(cast("list[Any]", item))
        elif isinstance(item, dict):
            stack.extend(cast("dict[str, Any]", item).values())
    return found


def _replace(value: Any, replacements: dict[str, str]) -> Any:
    if isinstance(value, str):
        return replacements.get(value, value)
    if isinstance(value, list):
        return [_replace(item, replacements) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _replace(item, replacements) for key, item in cast("dict[str, Any]", value).items()}
    return value
