"""What a file says."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from agentcore.messages import DocumentBlock, ImageBlock, ResultBlock
from agentcore.tools import Observation

__all__ = ["ReadFileObservation"]


class ReadFileObservation(Observation):
    """A file's lines as they are, or a picture or PDF."""

    text: str
    """What the model is shown."""
    path: str
    """The absolute path."""
    lines: int = 0
    """How many lines the file has."""
    first: int = 0
    """The number of the first line that is shown, from 1; 0 where none is."""
    last: int = 0
    """The number of the last line that is shown."""
    medium: ImageBlock | DocumentBlock | None = None

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (self.text,) if self.medium is None else (self.text, self.medium)

    def to_data(self) -> dict[str, JsonValue]:
        """Give where it was read; what the model is shown is in the content already."""
        return self.model_dump(mode="json", exclude={"text", "medium"})
