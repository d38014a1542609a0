"""What is in a folder."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from agentcore.messages import ResultBlock
from agentcore.tools import Observation

__all__ = ["ListFilesObservation"]


class ListFilesObservation(Observation):
    """A tree."""

    text: str
    """What the model is shown."""
    path: str
    """The absolute path of the folder."""
    count: int
    """How many entries are shown."""
    hidden: int
    """How many hidden entries are not shown; what is in hidden folders is not counted."""
    ignored: int
    """How many entries are not shown because .gitignore leaves them out; the same of folders."""
    truncated: bool
    """Whether there are more."""

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (self.text,)

    def to_data(self) -> dict[str, JsonValue]:
        """Give the numbers; the tree is in the content already."""
        return self.model_dump(mode="json", exclude={"text"})
