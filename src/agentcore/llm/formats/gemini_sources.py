"""The sources that a reply of Google's names, and the words that they are for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, cast

from pydantic import JsonValue

from agentcore._text import replace_lone_surrogates as clean
from agentcore.messages import Block, ProviderBlock, TextBlock
from agentcore.messages.message import CITED, GROUNDING

_FIELDS = ("groundingMetadata", "urlContextMetadata", "citationMetadata")


def sources(candidate: dict[str, Any]) -> dict[str, JsonValue]:
    """Return what is said of sources, as it came; nothing where nothing is."""
    found: dict[str, JsonValue] = {name: candidate[name] for name in _FIELDS if candidate.get(name)}
    return {"type": GROUNDING, **found} if found else {}


def cited(content: Iterable[Block], candidate: dict[str, Any], provider: str) -> Iterator[Block]:
    """Put behind each text how it is cut by what is cited for its pieces."""
    supports = list(_supports(candidate))
    pending: Block | None = None
    for block in content:
        if pending is not None and not isinstance(block, ProviderBlock):
            yield pending
            pending = None
        yield block
        if isinstance(block, TextBlock):
            spans = [span for support in supports if (span := _find(block.text, *support)) is not None]
            if spans:
                parts = _cut(len(block.text), spans)
                pending = ProviderBlock(provider=provider, data={"type": CITED, "parts": parts})
    if pending is not None:
        yield pending


def _supports(candidate: dict[str, Any]) -> Iterator[tuple[int, int, str, list[JsonValue]]]:
    """Yield pieces of the reply, from byte to byte, with their words where they are said, and what is cited for them."""
    grounding: dict[str, Any] = candidate.get("groundingMetadata") or {}
    chunks: list[JsonValue] = grounding.get("groundingChunks") or []
    for support in grounding.get("groundingSupports") or ():
        segment: dict[str, Any] = support.get("segment") or {}
        found = [chunks[number] for number in support.get("groundingChunkIndices") or () if number < len(chunks)]
        if found:
            yield segment.get("startIndex") or 0, segment.get("endIndex") or 0, segment.get("text") or "", found
    citations: dict[str, Any] = candidate.get("citationMetadata") or {}
    for source in citations.get("citationSources") or citations.get("citations") or ():
        yield source.get("startIndex") or 0, source.get("endIndex") or 0, "", [cast("JsonValue", source)]


def _find(
    text: str, start: int, end: int, words: str, found: list[JsonValue]
) -> tuple[int, int, list[JsonValue]] | None:
    """Find a piece in a text, from character to character. Bytes are counted from the beginning of some part."""
    written = text.encode()
    if end <= len(written) and start < end:
        piece = written[start:end].decode(errors="replace")
        if not words or piece == words:
            begin = len(written[:start].decode(errors="replace"))
            return begin, begin + len(piece), found
    at = text.find(words) if words else -1
    return None if at < 0 else (at, at + len(words), found)


def _cut(length: int, spans: list[tuple[int, int, list[JsonValue]]]) -> list[JsonValue]:
    edges = sorted({0, length, *(edge for start, end, _ in spans for edge in (start, end) if edge <= length)})
    parts: list[JsonValue] = []
    for start, end in pairwise(edges):
        part: dict[str, JsonValue] = {"length": end - start}
        citations: list[JsonValue] = []
        for begin, until, found in spans:
            if begin <= start and end <= until:
                citations += [source for source in found if source not in citations]
        if citations:
            part["citations"] = clean(citations)
        parts.append(part)
    return parts
