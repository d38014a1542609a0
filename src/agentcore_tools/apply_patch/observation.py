"""What a patch did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import JsonValue

from agentcore._value import Value
from agentcore.messages import ResultBlock
from agentcore.tools import Observation

__all__ = ["ApplyPatchObservation", "PatchedFile"]


class PatchedFile(Value):
    """What became of one file."""

    path: str
    """The absolute path; of a file that was moved where it was."""
    outcome: Literal["created", "changed", "moved", "removed"]
    moved_to: str | None = None


class ApplyPatchObservation(Observation):
    """All of the patch was applied."""

    text: str
    """What the model is shown."""
    files: tuple[PatchedFile, ...]
    """In the order of the patch."""
    diff: str
    """The change as a unified diff of all files. Of a file with a long one it is cut."""

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (self.text,)

    def to_data(self) -> dict[str, JsonValue]:
        """Give the changes; the text is in the content already."""
        return self.model_dump(mode="json", exclude={"text"})
