"""Sources that a provider names for the words of a reply, in one form for all providers.

A text that cites is followed by a block of its provider's own (`CITED`): how the text is cut, and for each piece the
citations as they came. They go back to a provider that wants them; what a person is shown is read here.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from collections.abc import Iterable, Iterator
from typing import Any, cast

from agentcore._value import Value
from agentcore.messages.blocks import Block, ProviderBlock, TextBlock

__all__ = ["CITED", "GROUNDING", "Citation", "find_citations"]

CITED = "cited_text"
"""The type of a provider's block behind a text: how the text is cut, and what is cited for each piece."""
GROUNDING = "grounding"
"""The type of a provider's block with what Google says of the searches and pages behind a reply."""


class Citation(Value):
    """A source of some words of a reply."""

    text: str
    """The words of the reply; "" where the provider does not say which."""
    url: str | None = None
    title: str | None = None
    quote: str | None = None
    """The words of the source, where the provider gives them."""


def find_citations(content: Iterable[Block]) -> Iterator[Citation]:
    """Yield the citations of a message's blocks."""
    text = ""
    seen: set[str | None] = set()
    for block in content:
        if isinstance(block, TextBlock):
            text = block.text
        elif isinstance(block, ProviderBlock) and isinstance(block.data, dict):
            data = cast("dict[str, Any]", block.data)
            if data.get("type") == CITED:
                for citation in _of_text(text, data):
                    seen.add(citation.url or citation.title or citation.quote)
                    yield citation
            elif data.get("type") == GROUNDING:
                for citation in map(_read, _sources(data)):
                    # Of most sources it is said which words they are for.
                    if (name := citation.url or citation.title or citation.quote) not in seen:
                        seen.add(name)
                        yield citation


def _of_text(text: str, data: dict[str, Any]) -> Iterator[Citation]:
    start = 0
    for part in data.get("parts") or ():
        end = start + part["length"]
        for source in part.get("citations") or ():
            if isinstance(source, dict):
                yield _read(cast("dict[str, Any]", source), text, start, end)
        start = end


def _sources(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    grounding: dict[str, Any] = data.get("groundingMetadata") or {}
    yield from grounding.get("groundingChunks") or ()
    pages: dict[str, Any] = data.get("urlContextMetadata") or {}
    for page in pages.get("urlMetadata") or ():
        if str(page.get("urlRetrievalStatus", "")).endswith("SUCCESS"):
            yield {"web": {"uri": page.get("retrievedUrl")}}


def _read(source: dict[str, Any], text: str = "", start: int = 0, end: int = 0) -> Citation:
    inside = next((source[name] for name in _INSIDE if isinstance(source.get(name), dict)), source)
    begin, until = inside.get("start_index"), inside.get("end_index")
    if isinstance(begin, int) and isinstance(until, int) and start <= begin < until <= end:
        start, end = begin, until
    return Citation(
        text=text[start:end],
        url=_first(inside, "url", "uri", "document_uri"),
        title=_first(inside, "title", "document_title", "filename"),
        quote=_first(inside, "cited_text", "content", "text", "quote"),
    )


_INSIDE = ("url_citation", "web", "retrievedContext", "maps")
"""Under which name some providers put what they say of a source."""


def _first(source: dict[str, Any], *names: str) -> str | None:
    return next((value for name in names if isinstance(value := source.get(name), str) and value), None)
