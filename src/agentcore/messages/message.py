"""One message, as a model reads or writes it, whichever provider it goes to."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import hashlib
import json
from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue

from agentcore._value import VERBATIM, Recorded, Verbatim
from agentcore.messages.blocks import AudioBlock, Block, RefusalBlock, TextBlock, ToolCallBlock
from agentcore.messages.citations import Citation, find_citations

__all__ = ["Message", "Role", "ToolSchema"]

Role = Literal["system", "user", "assistant", "tool"]


class Message(Recorded):
    """One message: a role and its blocks in order. Tool results travel in messages of role "tool"."""

    role: Annotated[Role, VERBATIM]
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


def _blocks(content: tuple[str | Block, ...]) -> tuple[Block, ...]:
    return tuple(TextBlock(text=piece) if isinstance(piece, str) else piece for piece in content)


def _digest(fields: dict[str, Any]) -> str:
    """Hash what a model is told of a tool; the order of the keys of an object does not count."""
    told = [fields.get("name"), fields.get("description"), fields.get("parameters")]
    return hashlib.sha256(json.dumps(told, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class ToolSchema(Recorded):
    """What a model is told of a tool."""

    name: Verbatim
    description: str
    parameters: dict[str, JsonValue]
    """A JSON Schema of type "object"."""
    digest: Verbatim = Field(default_factory=_digest)
    """A SHA-256 of name, description and parameters as the tool has them: where the log masks a secret, this stays."""
