"""Sets of tools for kinds of work, and all factories by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from agentcore.tools import AnyTool, ToolFactory
from agentcore_tools.apply_patch import apply_patch_tool
from agentcore_tools.edit import edit_tool
from agentcore_tools.file_editor import file_editor_tool
from agentcore_tools.glob import glob_tool
from agentcore_tools.grep import grep_tool
from agentcore_tools.list_directory import list_directory_tool
from agentcore_tools.list_files import list_files_tool
from agentcore_tools.read_file import read_file_tool
from agentcore_tools.read_many import read_many_tool
from agentcore_tools.run import run_tool
from agentcore_tools.task_tracker import task_tracker_tool
from agentcore_tools.terminal import terminal_tool
from agentcore_tools.write_file import write_file_tool

PLAN_FILE: Final = "PLAN.md"
"""The one file that an agent with `planning_tools` may write."""

FACTORIES: Final[Mapping[str, ToolFactory]] = MappingProxyType(
    {
        "apply_patch": apply_patch_tool,
        "edit": edit_tool,
        "file_editor": file_editor_tool,
        "glob": glob_tool,
        "grep": grep_tool,
        "list_directory": list_directory_tool,
        "list_files": list_files_tool,
        "read_file": read_file_tool,
        "read_many": read_many_tool,
        "run": run_tool,
        "task_tracker": task_tracker_tool,
        "terminal": terminal_tool,
        "write_file": write_file_tool,
    }
)
"""The factories that make tools again from a log, by the names that are recorded there."""


def coding_tools(model: str | None = None, *, extra_roots: Sequence[str] = ()) -> tuple[AnyTool, ...]:
    """Return the tools of an agent that writes software: a terminal, an editor, glob, grep and a task list.

    Args:
        model: The model's name, as in "openai/gpt-5-codex". Models of the GPT-5 and Codex families edit by patches, those of the
            Gemini family with small tools, all others with the file editor.
        extra_roots: Folders and files outside of the workspace's folder that may be edited, too.
    """
    return (terminal_tool(), *_editing(model or "", extra_roots), glob_tool(), grep_tool(), task_tracker_tool())


def readonly_tools() -> tuple[AnyTool, ...]:
    """Return tools that only read. A terminal is not among them, because it could change files."""
    return (read_file_tool(), read_many_tool(), list_files_tool(), glob_tool(), grep_tool())


def planning_tools() -> tuple[AnyTool, ...]:
    """Return the tools of an agent that makes a plan and may write only PLAN.md."""
    return (glob_tool(), grep_tool(), file_editor_tool(confine_to=(PLAN_FILE,)))


def _editing(model: str, extra_roots: Sequence[str]) -> tuple[AnyTool, ...]:
    name = model.rsplit("/", 1)[-1].lower()
    if name.startswith("gpt-5") or "codex" in name:
        return (apply_patch_tool(extra_roots), read_file_tool(extra_roots))
    if "gemini" in name:
        return (
            read_file_tool(extra_roots),
            write_file_tool(extra_roots),
            edit_tool(extra_roots),
            list_directory_tool(),
        )
    return (file_editor_tool(extra_roots),)
