"""The file editor as a tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agentcore.risk import SecurityRisk
from agentcore.tools import Resource, Tool, ToolAnnotations, ToolSpec
from agentcore_tools.file_editor.action import FileEditorAction
from agentcore_tools.file_editor.display import show_answer, show_call
from agentcore_tools.file_editor.editor import FileEditor
from agentcore_tools.file_editor.normalize import ALIASES, normalize
from agentcore_tools.file_editor.observation import FileEditorObservation
from agentcore_tools.files.opening import opening
from agentcore_tools.files.reach import Reach

__all__ = ["file_editor_tool"]

_DESCRIPTION: Final = """\
Look at files and folders, and change text files.

- view shows a file with the numbers of its lines (view_range: only some of them), a picture or a PDF, or lists a folder \
and the folders in it.
- create makes a new file, and the folders above it. It does not replace one.
- str_replace replaces the one place in a file where old_str occurs. It has to be there exactly so, space and indentation \
included but without the line numbers, and only once: give as much around it as that takes.
- insert puts new_str after the line insert_line, in lines of its own.
- undo_edit takes the last change back that this tool made to a file; each call takes back one more.

Encoding, line ends and permissions of a file stay as they are. Write line ends as plain line feeds."""


def file_editor_tool(
    also: Sequence[str] = (), only: Sequence[str] | None = None
) -> Tool[FileEditorAction, FileEditorObservation]:
    """Make the tool with which an agent looks at files and changes them.

    Args:
        also: Folders outside of the workspace's in which it may do so, too; "/" is everything. A link in the workspace's
            folder that leads out of it is followed only to there.
        only: The only files that it may change, as paths in the workspace.
    """
    reach = Reach.of(also, only)
    described = "" if only is None else f" Only {' and '.join(only)} can be changed; everything else is for viewing."
    return Tool(
        name="file_editor",
        description=_DESCRIPTION + described,
        action=FileEditorAction,
        open=opening(FileEditor, reach),
        annotations=ToolAnnotations(title="File editor", open_world=False),
        resources=_resources,
        aliases=ALIASES,
        normalize=normalize,
        risk=_risk,
        display_call=show_call,
        display_answer=show_answer,
        spec=ToolSpec(name="file_editor", params=reach.params),
    )


def _resources(action: FileEditorAction, root: str) -> tuple[Resource, ...]:
    return (Resource.file(action.path, "read" if action.command == "view" else "write", root=root),)


def _risk(action: FileEditorAction) -> SecurityRisk:
    return SecurityRisk.LOW if action.command == "view" else SecurityRisk.UNKNOWN
