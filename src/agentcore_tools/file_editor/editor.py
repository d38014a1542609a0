"""Doing a file editor's actions through the workspace."""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar, final

from agentcore.errors import PathError, ToolError
from agentcore.tools import ToolContext
from agentcore.workspace import Workspace
from agentcore.workspace.threads import Threads
from agentcore_tools.file_editor.action import FileEditorAction
from agentcore_tools.file_editor.change import Change, between, inserting, replacing
from agentcore_tools.file_editor.diff import unified_diff
from agentcore_tools.file_editor.observation import FileEditorObservation
from agentcore_tools.file_editor.text import NotText, Text
from agentcore_tools.file_editor.undo import History
from agentcore_tools.file_editor.view import around, shown_folder, view

__all__ = ["FileEditor", "open_file_editor"]

_LARGEST: Final = 10 * 1024 * 1024
# From so many bytes on, reading and changing a text takes long enough to be done in a thread.
_MUCH: Final = 100_000
_EDITS: Final = Threads("edits", 4)
_ELSEWHERE: Final = re.compile(r"[A-Za-z]:[\\/]|\\\\")

ResultT = TypeVar("ResultT")


@asynccontextmanager
async def open_file_editor(
    workspace: Workspace,
    conversation_id: str,  # noqa: ARG001 a tool is opened with it
) -> AsyncGenerator[FileEditor]:
    """Open a file editor for one conversation; once it is left, its edits can't be undone any more."""
    yield FileEditor(workspace)


@final
class FileEditor:
    """Does the actions of one conversation; several at once, where the files are not the same."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._history = History()

    async def __call__(self, action: FileEditorAction, ctx: ToolContext) -> FileEditorObservation:  # noqa: ARG002 every executor is given it
        """Do an action.

        Raises:
            ToolError: it can't be done; its text says what to do instead.
            PathError: the path can't be used so.
        """
        path = self._resolve(action.path)
        match action.command:
            case "view":
                return await self._view(path, action)
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

    def _resolve(self, path: str) -> str:
        if not path.strip():
            raise ToolError(f"path is empty. The workspace's folder is {self._workspace.root!r}.")
        if path.startswith("~"):
            raise ToolError(f"{path!r}: a home folder can't be given by '~' here. Give the path in full.")
        if _ELSEWHERE.match(path):
            raise ToolError(
                f"{path!r} is a path for Windows. Here, paths look like {self._workspace.resolve('a/b')!r}."
            )
        return self._workspace.resolve(path)

    async def _view(self, path: str, action: FileEditorAction) -> FileEditorObservation:
        found = await self._workspace.stat(path)
        if found is not None and found.kind == "dir":
            if action.view_range is not None:
                raise ToolError(f"{path!r} is a folder: leave view_range out, which is about lines.")
            shown = await shown_folder(self._workspace, path)
        else:
            data = await self._read(path)
            shown = await _worked(data, lambda: view(_text(data, path).lines, action.view_range, path))
        return FileEditorObservation(text=shown, command="view", path=path, outcome="viewed")

    async def _create(self, path: str, content: str) -> FileEditorObservation:
        if await self._workspace.stat(path) is not None:
            raise ToolError(
                f"There is something at {path!r} already, and create replaces nothing. Change it with str_replace or insert."
            )
        data = content.encode(errors="replace")
        await self._workspace.write(path, data)
        self._history.add(path, None, data)
        change = Change(0, 0, Text(content).normal)
        diff = await _worked(data, lambda: unified_diff("", change, path, created=True))
        lines = len(Text(content).lines)
        text = f"Created {path} with {lines} {'line' if lines == 1 else 'lines'}."
        return FileEditorObservation(text=text, command="create", path=path, diff=diff, outcome="created")

    async def _edit(self, action: FileEditorAction, path: str, find: Callable[[Text], Change]) -> FileEditorObservation:
        before = await self._read(path)

        def edited() -> tuple[bytes, str, str]:
            old = _text(before, path)
            change = find(old)
            new = old.replaced(*change)
            return new.encode(), unified_diff(old.normal, change, path), _shown_around(new, change)

        after, diff, shown = await _worked(before, edited)
        await self._workspace.write(path, after)
        self._history.add(path, before, after)
        text = f"Changed {path}. There it reads now:\n{shown}" if shown else f"Changed {path}. It is empty now."
        return FileEditorObservation(text=text, command=action.command, path=path, diff=diff, outcome="changed")

    async def _undo(self, path: str) -> FileEditorObservation:
        last = self._history.last(path)
        if last is None:
            raise ToolError(
                f"There is no edit of {path!r} to undo: only this tool's own, since the conversation was opened."
            )
        now = await self._read(path)
        if not last.is_as_left(now):
            raise ToolError(
                f"{path!r} was changed by something else after the edit, which undoing would destroy. View it."
            )
        if last.data is None:
            return await self._remove(path, now)
        then = last.data

        def undone() -> tuple[str, str]:
            old, new = _text(now, path), _text(then, path)
            change = between(old.normal, new.normal)
            return unified_diff(old.normal, change, path), _shown_around(new, change)

        diff, shown = await _worked(now, undone)
        await self._workspace.write(path, then)
        self._history.forget_last(path)
        text = f"Undid the last edit of {path}. There it reads now:\n{shown}"
        return FileEditorObservation(text=text, command="undo_edit", path=path, diff=diff, outcome="changed")

    async def _remove(self, path: str, now: bytes) -> FileEditorObservation:
        result = await self._workspace.run(["rm", "-f", "--", path])
        if result.exit_code:
            raise ToolError(f"{path!r} can't be removed: {result.stderr.strip()}")
        self._history.forget_last(path)
        normal = _text(now, path).normal
        change = Change(0, len(normal), "")
        diff = await _worked(now, lambda: unified_diff(normal, change, path, removed=True))
        text = f"Undid the creation of {path}: it is removed."
        return FileEditorObservation(text=text, command="undo_edit", path=path, diff=diff, outcome="removed")

    async def _read(self, path: str) -> bytes:
        try:
            return await self._workspace.read(path, max_bytes=_LARGEST)
        except PathError as error:
            if error.reason != "missing":
                raise
            raise ToolError(f"{error}{await self._like(path)}") from error

    async def _like(self, path: str) -> str:
        """Say what there is with a name like that."""
        folder, name = posixpath.split(path)
        try:
            names = [entry.name for entry in await self._workspace.list(folder)]
        except PathError:
            return f" There is no folder {folder!r}, either."
        found = difflib.get_close_matches(name, names[:10_000], n=3)
        return f" There is {', '.join(map(repr, found))} in that folder." if found else ""


def _given(action: FileEditorAction, name: str, value: ResultT | None) -> ResultT:
    if value is None:
        meaning = type(action).model_fields[name].description
        raise ToolError(f"{action.command} needs {name}, which is missing. {meaning}")
    return value


def _text(data: bytes, path: str) -> Text:
    try:
        return Text.read(data)
    except NotText:
        raise ToolError(
            f"{path!r} is not text ({len(data)} bytes). Look at it with commands, such as `file`, `strings` or `xxd`."
        ) from None


def _shown_around(text: Text, change: Change) -> str:
    """Show the place in a text where a change was made."""
    lines = text.lines
    first = min(text.normal.count("\n", 0, change.start) + 1, max(len(lines), 1))
    last = first + change.new.removesuffix("\n").count("\n")
    return around(lines, first, last)


async def _worked(data: bytes, work: Callable[[], ResultT]) -> ResultT:
    return work() if len(data) < _MUCH else await _EDITS.run(work)
