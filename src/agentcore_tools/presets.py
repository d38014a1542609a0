"""Sets of tools for kinds of work."""

from __future__ import annotations

from agentcore.tools import AnyTool
from agentcore_tools.file_editor import file_editor_tool
from agentcore_tools.terminal import terminal_tool

__all__ = ["coding_tools"]


def coding_tools() -> tuple[AnyTool, ...]:
    """Give the tools of an agent that writes software: a terminal and a file editor."""
    return (terminal_tool(), file_editor_tool())
