"""What a file editor saw or did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import JsonValue

from agentcore.messages import DocumentBlock, ImageBlock, ResultBlock
from agentcore.tools import Observation

__all__ = ["FileEditorObservation"]


class FileEditorObservation(Observation):
    """What there is, or what was changed."""

    text: str
    """What the model is shown."""
    command: Literal["view", "create", "str_replace", "insert", "undo_edit"]
    path: str
    """The absolute path."""
    diff: str | None = None
    """The change as a unified diff, with a line feed at the end of each line whatever the file has. A long one is cut."""
    outcome: Literal["viewed", "created", "changed", "removed"]
    """What became of the file. Undoing its creation removes it."""

    medium: ImageBlock | DocumentBlock | None = None
    """The picture or the document that was viewed."""

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (self.text,) if self.medium is None else (self.text, self.medium)

    def to_data(self) -> dict[str, JsonValue]:
        """Give the change; what the model is shown is in the content already."""
        return self.model_dump(mode="json", exclude={"text", "medium"})
