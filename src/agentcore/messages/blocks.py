"""The pieces a message is made of."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from typing import Annotated, Literal, cast

from pydantic import Field, JsonValue, field_validator

from agentcore._value import VERBATIM, Recorded, Verbatim


class TextBlock(Recorded):
    """Words."""

    type: Literal["text"] = "text"
    text: str


class ImageBlock(Recorded):
    """A picture, by value (base64) or by address: exactly one of `data` and `url`."""

    type: Literal["image"] = "image"
    data: Verbatim | None = None
    """Base64 text, without a `data:` prefix."""
    media_type: Verbatim | None = None
    """As in "image/png"; needed with `data`."""
    url: str | None = None


class DocumentBlock(Recorded):
    """A document, by value (base64) or by address: exactly one of `data` and `url`."""

    type: Literal["document"] = "document"
    data: Verbatim | None = None
    """Base64 text, without a `data:` prefix."""
    media_type: Verbatim = "application/pdf"
    """The media type. Every provider that accepts documents accepts PDF."""
    url: str | None = None
    name: str | None = None
    """The name of the file, which the model may be shown."""


class AudioBlock(Recorded):
    """Speech or sound that a model made."""

    type: Literal["audio"] = "audio"
    data: Verbatim | None = None
    """Base64 text, without a `data:` prefix."""
    media_type: Verbatim | None = None
    """As in "audio/wav"; None where the provider does not say: then it is the format that was asked for."""
    transcript: str = ""
    """The words that are spoken, where the provider gives them."""
    id: Verbatim | None = None
    """The name by which its provider knows it again in the next request."""
    provider: Verbatim | None = None
    """Whose model made it."""


class RefusalBlock(Recorded):
    """The words in which a model, or its provider, refuses to answer."""

    type: Literal["refusal"] = "refusal"
    text: str


class ThinkingBlock(Recorded):
    """Thinking of the model as text; signed where the provider wants it back unchanged."""

    type: Literal["thinking"] = "thinking"
    text: str
    signature: Verbatim | None = None
    provider: Verbatim | None = None
    """Whose model thought it, as in "anthropic": no other model can read the signature. None where that is not recorded."""


class RedactedThinkingBlock(Recorded):
    """Thinking that only the provider can read, to be sent back as it came."""

    type: Literal["redacted_thinking"] = "redacted_thinking"
    data: Verbatim
    provider: Verbatim | None = None
    """Whose model thought it. None where that is not recorded."""


class ReasoningBlock(Recorded):
    """A reasoning item of the Responses wire."""

    type: Literal["reasoning"] = "reasoning"
    id: Verbatim
    summary: tuple[str, ...] = ()
    """The words, part by part: a summary of the reasoning, or the reasoning itself where `in_words` is set."""
    in_words: bool = False
    """True if the text is the reasoning itself, as of open models, and not a summary."""
    encrypted_content: Verbatim | None = None
    provider: Verbatim | None = None
    """Whose it is: no other model can read it. None is of a log from before that was noted."""

    @property
    def words(self) -> str:
        """All its words; the parts of a summary have a blank line between them."""
        return ("" if self.in_words else "\n\n").join(self.summary)


class ToolCallBlock(Recorded):
    """The model asks for a tool."""

    type: Literal["tool_call"] = "tool_call"
    id: Verbatim
    """The provider's id of the call. Some providers use one twice: never key on it beyond one reply."""
    name: str
    arguments: dict[str, JsonValue] | str
    """The arguments; text only where what the model sent is not a JSON object."""


class ProviderBlock(Recorded):
    """Anything of one provider's own (a server-side tool, a citation): kept, and sent back to that provider as it came."""

    type: Literal["provider"] = "provider"
    provider: Verbatim
    data: Annotated[JsonValue, VERBATIM]


class UnknownBlock(Recorded):
    """A block of a type that only a newer version knows: kept as it is, never sent to a model."""

    type: Verbatim

    @field_validator("type")
    @classmethod
    def _not_a_known_type(cls, value: str) -> str:
        if value in _KNOWN_TYPES:
            # Without this, a damaged block of a known type would pass for an unknown one.
            raise ValueError(f"a block of type {value!r} with wrong fields")
        return value


ResultBlock = TextBlock | ImageBlock | DocumentBlock
"""Blocks that a tool may show to a model."""

StoredResultBlock = Annotated[
    Annotated[ResultBlock, Field(discriminator="type")] | UnknownBlock, Field(union_mode="left_to_right")
]
"""The same as a log may hold them: with blocks of types that only a newer version knows."""


class ToolResultBlock(Recorded):
    """The answer to one tool call."""

    type: Literal["tool_result"] = "tool_result"
    call_id: Verbatim
    name: str
    content: tuple[Annotated[ResultBlock, Field(discriminator="type")], ...]
    is_error: bool = False

    @property
    def text(self) -> str:
        """All the words of the answer."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextBlock))


_AnyKnown = (
    TextBlock
    | ImageBlock
    | DocumentBlock
    | AudioBlock
    | RefusalBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | ReasoningBlock
    | ToolCallBlock
    | ToolResultBlock
    | ProviderBlock
)

Block = Annotated[Annotated[_AnyKnown, Field(discriminator="type")] | UnknownBlock, Field(union_mode="left_to_right")]
"""Any block, one of an unknown type included."""

_CLASSES: tuple[type[Recorded], ...] = _AnyKnown.__args__
_KNOWN_TYPES = frozenset(cast("str", cls.model_fields["type"].default) for cls in _CLASSES)
