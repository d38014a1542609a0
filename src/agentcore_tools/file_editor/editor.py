"""Doing a file editor's actions through the workspace."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, final

from agentcore.errors import ToolError
from agentcore.tools import ToolContext
from agentcore_tools.file_editor.action import FileEditorAction
from agentcore_tools.file_editor.observation import FileEditorObservation
from agentcore_tools.files.change import between, inserting, replacing
from agentcore_tools.files.diff import unified_diff
from agentcore_tools.files.files import Files, text_of, worked
from agentcore_tools.files.media import medium_of, shown_medium
from agentcore_tools.files.text import Change, Text, encoded
from agentcore_tools.files.view import shown_change, shown_folder, view

__all__ = ["FileEditor"]

ResultT = TypeVar("ResultT")


@final
class FileEditor:
    """Does the actions of one conversation; several at once, where the files are not the same."""

    def __init__(self, files: Files) -> None:
        self._files = files

    async def __call__(self, action: FileEditorAction, ctx: ToolContext) -> FileEditorObservation:
        """Do an action.

        Raises:
            ToolError: it can't be done; its text says what to do instead.
            PathError: the path can't be used so.
        """
        if action.command == "view":
            return await self._view(await self._files.to_read(action.path), action, ctx)
        path = await self._files.to_write(action.path)
        match action.command:
            case "create":
                return await self._create(path, _given(action, "file_text", action.file_text))
            case "str_replace":
                old, new = _given(action, "old_str", action.old_str), action.new_str or ""
                return await self._edit(action, path, lambda text: replacing(text, old, new, path))
            case "insert":
                line, new = _given(action, "insert_line", action.insert_line), _given(action, "new_str", action.new_str)
                return await self._edit(action, path, lambda text: inserting(text, line, new, path))
            case "undo_edit":
                return await self._undo(path)

    async def _view(self, path: str, action: FileEditorAction, ctx: ToolContext) -> FileEditorObservation:
        workspace = self._files.workspace
        found = await workspace.stat(path)
        if found is not None and found.kind == "dir":
            if action.view_range is not None:
                raise ToolError(f"{path!r} is a folder: leave view_range out, which is about lines.")
            shown = await shown_folder(workspace, path)
            return FileEditorObservation(text=shown, command="view", path=path, outcome="viewed")
        data = await self._files.look(path)
        if (media_type := medium_of(data)) is not None:
            medium = await shown_medium(data, media_type, path, ctx)
            text = f"{path} ({media_type}, {len(data):,} bytes):"
            return FileEditorObservation(text=text, medium=medium, command="view", path=path, outcome="viewed")
        shown = await worked(data, lambda: view(text_of(data, path).lines, action.view_range, path))
        return FileEditorObservation(text=shown, command="view", path=path, outcome="viewed")

    async def _create(self, path: str, content: str) -> FileEditorObservation:
        if await self._files.workspace.stat(path) is not None:
            raise ToolError(
                f"There is something at {path!r} already, and create replaces nothing. Change it with str_replace or insert."
            )
        await self._files.put(path, None, encoded(content))
        change = Change(0, 0, Text(content).normal)
        diff = await worked(content, lambda: unified_diff("", [change], path, created=True))
        lines = len(Text(content).lines)
        text = f"Created {path} with {lines} {'line' if lines == 1 else 'lines'}."
        return FileEditorObservation(text=text, command="create", path=path, diff=diff, outcome="created")

    async def _edit(self, action: FileEditorAction, path: str, find: Callable[[Text], Change]) -> FileEditorObservation:
        before = await self._files.to_change(path)

        def edited() -> tuple[bytes, str, str]:
            old = text_of(before, path)
            change = find(old)
            new = old.replaced([change])
            return new.encode(), unified_diff(old.normal, [change], path), shown_change(new, change)

        after, diff, shown = await worked(before, edited)
        await self._files.put(path, before, after)
        text = f"Changed {path}. There it reads now:\n{shown}" if shown else f"Changed {path}. It is empty now."
        return FileEditorObservation(text=text, command=action.command, path=path, diff=diff, outcome="changed")

    async def _undo(self, path: str) -> FileEditorObservation:
        history = self._files.memory.history
        last = history.last(path)
        if last is None:
            raise ToolError(
                f"There is no edit of {path!r} to undo: only those of these tools, since the conversation was opened."
            )
        now = await self._files.read(path)
        if not last.is_as_left(now):
            raise ToolError(
                f"{path!r} was changed by something else after the edit, which undoing would destroy. View it."
            )
        if last.data is None:
            return await self._remove(path, now)
        then = last.data

        def undone() -> tuple[str, str]:
            old, new = text_of(now, path), text_of(then, path)
            change = between(old.normal, new.normal)
            return unified_diff(old.normal, [change], path), shown_change(new, change)

        diff, shown = await worked(now, undone)
        await self._files.workspace.write(path, then)
        self._files.memory.saw(path, then)
        history.forget_last(path)
        text = f"Undid the last edit of {path}. There it reads now:\n{shown}"
        return FileEditorObservation(text=text, command="undo_edit", path=path, diff=diff, outcome="changed")

    async def _remove(self, path: str, now: bytes) -> FileEditorObservation:
        await self._files.remove(path)
        self._files.memory.history.forget_last(path)
        normal = text_of(now, path).normal
        change = Change(0, len(normal), "")
        diff = await worked(now, lambda: unified_diff(normal, [change], path, removed=True))
        text = f"Undid the creation of {path}: it is removed."
        return FileEditorObservation(text=text, command="undo_edit", path=path, diff=diff, outcome="removed")


def _given(action: FileEditorAction, name: str, value: ResultT | None) -> ResultT:
    if value is None:
        meaning = type(action).model_fields[name].description
        raise ToolError(f"{action.command} needs {name}, which is missing. {meaning}")
    return value
