"""The tools of one request: what the model was told of them, and what its calls are read against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import final

from agentcore.messages import ToolSchema
from agentcore.tools.definition import AnyTool

__all__ = ["ToolSnapshot"]


@final
class ToolSnapshot:
    """Tools as they were at one time, in order. A tool that changes later does not change it."""

    def __init__(self, tools: Iterable[AnyTool] = (), instructions: Mapping[str, str] | None = None) -> None:
        """Take the tools, whose names are distinct, and the instructions of toolsets by their names."""
        self.tools: tuple[AnyTool, ...] = tuple(tools)
        self.instructions: Mapping[str, str] = dict(instructions or {})
        """The instructions of toolsets, by their names."""

    def __repr__(self) -> str:
        return f"<ToolSnapshot of {len(self.tools)} tools>"

    @cached_property
    def schemas(self) -> tuple[ToolSchema, ...]:
        """The schema of each tool."""
        return tuple(tool.schema for tool in self.tools)

    def is_of(self, tools: Sequence[AnyTool], instructions: Mapping[str, str]) -> bool:
        """Return True if it is a snapshot of these very tools."""
        return self.tools == tuple(tools) and self.instructions == instructions
