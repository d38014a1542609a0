"""Answers to asks: what a client sends back for an `ask` frame.

Above: the server, which waits for them, and the client, which makes them. Below: blocks of messages.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue, PlainSerializer, SecretStr, TypeAdapter

from agentcore._value import Value, Verbatim
from agentcore.messages import ResultBlock


class ToolAnswer(Value):
    """A tool ran in the client: its observation."""

    kind: Literal["answer"] = "answer"
    content: tuple[Annotated[ResultBlock, Field(discriminator="type")], ...] = ()
    """The content for the model."""
    data: dict[str, JsonValue] = {}
    """The data for programs, which is recorded."""
    is_error: bool = False
    """True if what was found is an error, though the tool worked."""
    secrets: tuple[Verbatim, ...] = ()
    """The names of the secrets whose values the tool read: the server has to know those, to mask them."""
    progress: str = ""
    """The progress that was not sent yet."""


class ToolFailed(Value):
    """A tool raised in the client, or could not be called there; or the source of a secret failed."""

    kind: Literal["failed"] = "failed"
    error: str
    """The text for the model."""
    code: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")] = "ToolError"
    """The name of the exception's class."""
    secrets: tuple[Verbatim, ...] = ()
    progress: str = ""


class ToolProgress(Value):
    """A tool that runs in the client says what it is doing; it goes on."""

    kind: Literal["progress"] = "progress"
    text: str


class SecretAnswer(Value):
    """The value of a secret."""

    kind: Literal["secret"] = "secret"
    value: Annotated[SecretStr, PlainSerializer(lambda secret: secret.get_secret_value(), when_used="json")]


AskResult = ToolAnswer | ToolFailed | ToolProgress | SecretAnswer
"""The body of an answer to an ask."""

_adapter: TypeAdapter[AskResult] = TypeAdapter(
    Annotated[AskResult, Field(discriminator="kind")], config=ConfigDict(defer_build=True)
)


def parse_ask_result(text: str | bytes) -> AskResult:
    """Read an answer.

    Raises:
        ValidationError: It is not one. Its details have the input, which may be a secret: they are not for logs.
    """
    return _adapter.validate_json(text)
