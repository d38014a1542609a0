"""A message as a model reads or writes it, and the citations in it; the same for all providers.

A text that cites sources is followed by a block of its provider (`CITED`) that holds how the text is cut and the
citations of each piece as they came. They go back to a provider that wants them; people are shown what is parsed here.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, Self, cast

from pydantic import Field, JsonValue

from agentcore._arguments import check_arguments, instance_of
from agentcore._value import Recorded, Value, Verbatim
from agentcore.messages.blocks import AudioBlock, Block, ProviderBlock, RefusalBlock, TextBlock, ToolCallBlock

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


Role = Literal["system", "user", "assistant", "tool"]


class Message(Recorded):
    """One message: a role and its blocks in order. Tool results travel in messages of role "tool"."""

    role: Role
    content: tuple[Block, ...]

    @classmethod
    def system(cls, *content: str | Block) -> Self:
        """Make a system message of words and blocks."""
        return cls(role="system", content=_blocks(content))

    @classmethod
    def user(cls, *content: str | Block) -> Self:
        """Make a user message of words and blocks."""
        return cls(role="user", content=_blocks(content))

    @classmethod
    def assistant(cls, *content: str | Block) -> Self:
        """Make an assistant message of words and blocks."""
        return cls(role="assistant", content=_blocks(content))

    @property
    def text(self) -> str:
        """All the words of the message, without thinking, calls and results: a refusal and what is spoken are words too."""
        return "\n".join(words for block in self.content if (words := _words(block)) is not None)

    @property
    def tool_calls(self) -> tuple[ToolCallBlock, ...]:
        """The calls of the message, in order."""
        return tuple(block for block in self.content if isinstance(block, ToolCallBlock))

    @property
    def citations(self) -> tuple[Citation, ...]:
        """The sources that the provider names for the words of the message, in order."""
        return tuple(find_citations(self.content))


def _words(block: Block) -> str | None:
    if isinstance(block, TextBlock | RefusalBlock):
        return block.text
    return block.transcript or None if isinstance(block, AudioBlock) else None


_CONTENT: Final = {"content": instance_of(str, Value, description="text or a block")}


def _blocks(content: tuple[str | Block, ...]) -> tuple[Block, ...]:
    for piece in content:
        check_arguments(_CONTENT, content=piece)
    return tuple(TextBlock(text=piece) if isinstance(piece, str) else piece for piece in content)


def _digest(fields: dict[str, Any]) -> str:
    described = [fields.get("name"), fields.get("description"), fields.get("parameters")]
    return hashlib.sha256(json.dumps(described, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class ToolSchema(Recorded):
    """The description of a tool for a model."""

    name: Verbatim
    description: str
    parameters: dict[str, JsonValue]
    """A JSON Schema of type "object"."""
    digest: Verbatim = Field(default_factory=_digest)
    """A SHA-256 of name, description and parameters as the tool has them: where the log masks a secret, this stays."""
