"""Events to records and back; what is large goes into blobs.

A string of more than 64 KB is kept as a blob, and its place in the record says `blob:sha256:<digest>`. A string that
happens to begin like that is kept as a blob as well, so that reading is never in doubt.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

from pydantic import JsonValue

from agentcore.events import Event, parse_event

__all__ = ["BLOB_PREFIX", "BLOB_THRESHOLD", "decode", "encode", "find_blobs"]

BLOB_THRESHOLD: Final = 64 * 1024
BLOB_PREFIX: Final = "blob:sha256:"
_MARK: Final = f'"{BLOB_PREFIX}'.encode()
_DIGEST_LENGTH: Final = 64


async def encode(event: Event, write_blob: Callable[[bytes], Awaitable[str]]) -> bytes:
    """Give the event's JSON on one line, large strings replaced by blobs that are already kept."""
    body = event.model_dump_json().encode()
    if len(body) <= BLOB_THRESHOLD and _MARK not in body:
        return body
    blobs: dict[str, str] = {}
    data: JsonValue = json.loads(body)
    for text in _strings(data):
        if text not in blobs and (len(text.encode()) > BLOB_THRESHOLD or text.startswith(BLOB_PREFIX)):
            blobs[text] = BLOB_PREFIX + await write_blob(text.encode())
    return json.dumps(_replace(data, blobs), ensure_ascii=False, separators=(",", ":")).encode()


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
