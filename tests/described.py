"""What the tools here record of their calls and answers for people: `from described import call_blocks, answer_blocks`."""

from __future__ import annotations

from typing import Any

from agentcore.display import DisplayBlock
from agentcore.errors import ToolArgumentsError
from agentcore.tools import Observation, ask_user, describe_answer, describe_call, finish_tool, think_tool
from agentcore_tools import (
    apply_patch_tool,
    edit_tool,
    file_editor_tool,
    glob_tool,
    grep_tool,
    list_directory_tool,
    list_files_tool,
    read_file_tool,
    read_many_tool,
    run_tool,
    task_tracker_tool,
    terminal_tool,
    write_file_tool,
)

__all__ = ["TOOLS", "answer_blocks", "call_blocks"]

_MAKERS = (
    *(apply_patch_tool, edit_tool, file_editor_tool, glob_tool, grep_tool, list_directory_tool, list_files_tool),
    *(read_file_tool, read_many_tool, run_tool, task_tracker_tool, terminal_tool, write_file_tool),
    *(finish_tool, think_tool),
)
TOOLS = {tool.name: tool for tool in (*(make() for make in _MAKERS), ask_user)}


def call_blocks(tool_name: str, arguments: dict[str, Any]) -> tuple[DisplayBlock, ...]:
    """Return what is recorded of a call; nothing of one that can't run."""
    tool = TOOLS.get(tool_name)
    try:
        return () if tool is None else describe_call(tool, tool.parse(arguments), lambda block: block)
    except ToolArgumentsError:
        return ()


def answer_blocks(tool_name: str, arguments: dict[str, Any], observation: Observation) -> tuple[DisplayBlock, ...]:
    """Return what is recorded of an answer."""
    tool = TOOLS[tool_name]
    return describe_answer(tool, tool.parse(arguments), observation, lambda block: block)
