"""Observations: the outcome of an action, for the model and for programs."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from collections.abc import Sequence
from typing import Annotated, Any, cast

from pydantic import Field, JsonValue
from pydantic_core import PydanticSerializationError, from_json, to_json

from agentcore._value import Value
from agentcore.messages import DocumentBlock, ImageBlock, ResultBlock, TextBlock


class Observation(Value):
    """The outcome of an action. Its fields are for programs; `to_content` is for the model."""

    @property
    def is_error(self) -> bool:
        """True if what was found is an error, though the tool worked (a command that exited with 1, say)."""
        return False

    def to_content(self) -> Sequence[str | ResultBlock]:
        """Return the content that the model is shown: by default the fields as JSON."""
        return (self.model_dump_json(),)

    def to_data(self) -> dict[str, JsonValue]:
        """Return the data that is recorded for programs: by default the fields."""
        return self.model_dump(mode="json")

    def blocks(self) -> tuple[ResultBlock, ...]:
        """Return the content with its strings as text blocks."""
        return tuple(TextBlock(text=part) if isinstance(part, str) else part for part in self.to_content())


class TextObservation(Observation):
    """Words."""

    text: str

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (self.text,)

    def to_data(self) -> dict[str, JsonValue]:
        """Return no data: the text stands in the content already."""
        return {}


class JsonObservation(Observation):
    """A value, shown to the model as JSON."""

    value: JsonValue

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (to_json(self.value).decode(),)


class ContentObservation(Observation):
    """Words, pictures and documents in order."""

    content: tuple[Annotated[ResultBlock, Field(discriminator="type")], ...]

    def to_content(self) -> Sequence[str | ResultBlock]:
        return self.content

    def to_data(self) -> dict[str, JsonValue]:
        """Return no data: the blocks stand in the content already."""
        return {}


def observe(result: object, tool_name: str) -> Observation:
    """Return the observation for the result of a function.

    Raises:
        TypeError: it is nothing that JSON can say.
    """
    match result:
        case Observation():
            return result
        case None:
            return TextObservation(text="Done.")
        case str():
            return TextObservation(text=result)
        case TextBlock() | ImageBlock() | DocumentBlock():
            return ContentObservation(content=(result,))
        case list() | tuple() if _is_content(cast("Sequence[Any]", result)):
            parts = cast("Sequence[str | ResultBlock]", result)
            blocks = tuple(TextBlock(text=part) if isinstance(part, str) else part for part in parts)
            return ContentObservation(content=blocks)
        case _:
            return JsonObservation(value=_json(result, tool_name))


def _is_content(parts: Sequence[Any]) -> bool:
    return any(isinstance(part, ResultBlock) for part in parts) and all(
        isinstance(part, str | ResultBlock) for part in parts
    )


def _json(result: object, tool_name: str) -> JsonValue:
    try:
        # By way of text, so that what JSON has no word for (a NaN, say) is said in a string, as the log would have it.
        return from_json(to_json(result, by_alias=True, inf_nan_mode="strings"))
    except (PydanticSerializationError, ValueError) as error:
        raise TypeError(
            f"The tool {tool_name!r} returned a {type(result).__qualname__}, which JSON can't say: {error}. "
            "Return a string, a model, or an Observation."
        ) from error
