"""Which files were found."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from agentcore.messages import ResultBlock
from agentcore.tools import Observation

__all__ = ["GlobObservation"]


class GlobObservation(Observation):
    """Files, the newest first."""

    text: str
    """What the model is shown."""
    files: tuple[str, ...]
    """Relative to the workspace's folder, where they are in there."""
    count: int
    """How many there are, those that are not shown included."""

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (self.text,)

    def to_data(self) -> dict[str, JsonValue]:
        """Give how many there are; the files are in the content already."""
        return {"count": self.count}
