"""What several files say."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from agentcore._value import Value
from agentcore.messages import ResultBlock
from agentcore.tools import Observation

__all__ = ["ReadManyFile", "ReadManyObservation"]


class ReadManyFile(Value):
    """One of the files."""

    path: str
    """Relative to the workspace's folder, where it is in there."""
    lines: int = 0
    """How many lines it has."""
    shown: int = 0
    """How many of them are shown, from the first on."""
    problem: str | None = None
    """Why nothing of it is shown."""


class ReadManyObservation(Observation):
    """The files, one after the other."""

    text: str
    """What the model is shown."""
    files: tuple[ReadManyFile, ...]
    left_out: int
    """How many more there are."""

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (self.text,)

    def to_data(self) -> dict[str, JsonValue]:
        """Give which files were read; what they say is in the content already."""
        return self.model_dump(mode="json", exclude={"text"})
