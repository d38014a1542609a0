"""What was found in files."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from agentcore._value import Value
from agentcore.messages import ResultBlock
from agentcore.tools import Observation

__all__ = ["GrepFile", "GrepObservation"]


class GrepFile(Value):
    """A file with lines that match."""

    path: str
    """Relative to the workspace's folder, where it is in there."""
    matches: int
    """How many of its lines match; where files alone were asked for, 1."""


class GrepObservation(Observation):
    """The files with lines that match, in the order of their paths."""

    text: str
    """What the model is shown."""
    files: tuple[GrepFile, ...]
    truncated: bool
    """Whether there is more."""

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (self.text,)

    def to_data(self) -> dict[str, JsonValue]:
        """Give the files; the lines are in the content already."""
        return self.model_dump(mode="json", exclude={"text"})
