"""How calls of the file editor, and what came of them, are shown to people."""

from __future__ import annotations

from collections.abc import Sequence

from agentcore.display import DiffBlock, DisplayBlock, ExcerptBlock, code_span
from agentcore_tools._display import added, file_diff, heading, others, replaced
from agentcore_tools.file_editor.action import FileEditorAction
from agentcore_tools.file_editor.observation import FileEditorObservation

__all__ = ["show_answer", "show_call"]


def show_call(action: FileEditorAction) -> Sequence[DisplayBlock]:
    """Show where something is looked at or changed, and the change."""
    shown = {"command", "path"}
    diff = None
    if action.old_str is not None:
        shown |= {"old_str", "new_str"}
        diff = replaced(action.old_str, action.new_str or "")
    elif (new := action.file_text if action.file_text is not None else action.new_str) is not None:
        shown.add("new_str" if action.file_text is None else "file_text")
        diff = added(new)
    place = ""
    match action.view_range:
        case [first, last]:
            shown.add("view_range")
            place = f"from line {first}" if last == -1 else f"lines {first} to {last}"
        case _:
            pass
    if action.insert_line is not None:
        shown.add("insert_line")
        place = f"after line {action.insert_line}" if action.insert_line else "at the beginning"
    said = heading(action.command, code_span(action.path), place, others(action, *shown))
    return said if not diff else (*said, DiffBlock(path=action.path, diff=diff))


def show_answer(_action: FileEditorAction, observation: FileEditorObservation) -> Sequence[DisplayBlock]:
    """Show the change as it came out; of a look, what the model is shown."""
    if observation.outcome != "viewed":
        return file_diff(observation.path, observation.diff)
    return () if observation.medium is not None else (ExcerptBlock(path=observation.path),)
