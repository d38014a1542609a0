"""What became of a file that was written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import JsonValue

from agentcore.messages import ResultBlock
from agentcore.tools import Observation

__all__ = ["WriteFileObservation"]


class WriteFileObservation(Observation):
    """A file was made, or replaced."""

    text: str
    """What the model is shown."""
    path: str
    """The absolute path."""
    diff: str
    """The change as a unified diff. A long one is cut."""
    outcome: Literal["created", "changed"]

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (self.text,)

    def to_data(self) -> dict[str, JsonValue]:
        """Give the change; the text is in the content already."""
        return self.model_dump(mode="json", exclude={"text"})
