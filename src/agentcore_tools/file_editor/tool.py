"""The file editor as a tool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeVar, final

from pydantic import JsonValue

from agentcore.assessment import SecurityRisk
from agentcore.display import DiffBlock, DisplayBlock, ExcerptBlock, code_span
from agentcore.errors import ToolError
from agentcore.messages import DocumentBlock, ImageBlock, ResultBlock
from agentcore.tools import Action, Observation, Resource, Tool, ToolAnnotations, ToolContext, ToolSpec
from agentcore_tools._display import added, file_diff, heading, others, replaced
from agentcore_tools.file_editor.normalize import ALIASES, normalize
from agentcore_tools.files.allowed_paths import AllowedPaths
from agentcore_tools.files.change import between, inserting, replacing, unified_diff
from agentcore_tools.files.files import Files, opening, text_of, worked
from agentcore_tools.files.text import Change, Text, encoded
from agentcore_tools.files.view import medium_of, shown_change, shown_folder, shown_medium, view


class FileEditorAction(Action):
    """A look at a file or a folder, or a change to a file."""

    command: Literal["view", "create", "str_replace", "insert", "undo_edit"]
    """The command."""
    path: str
    """The file, or for view also a folder. A relative path starts in the workspace's folder."""
    file_text: str | None = None
    """For create: the whole content."""
    old_str: str | None = None
    """For str_replace: the text to replace, exactly as it is in the file, with enough around it to occur only once."""
    new_str: str | None = None
    """For str_replace: what comes in its place (left out: nothing does). For insert: the lines to insert."""
    insert_line: int | None = None
    """For insert: the number of the line after which to insert; 0 is the beginning."""
    view_range: list[int] | None = None
    """For view: the numbers of the first and the last line to show; -1 as the last is the end."""


class FileEditorObservation(Observation):
    """The content that was viewed, or the change that was made."""

    text: str
    """The text for the model."""
    command: Literal["view", "create", "str_replace", "insert", "undo_edit"]
    path: str
    """The absolute path."""
    diff: str | None = None
    """The change as a unified diff, with a line feed at the end of each line whatever the file has. A long one is cut."""
    outcome: Literal["viewed", "created", "changed", "removed"]
    """The outcome for the file. Undoing its creation removes it."""

    medium: ImageBlock | DocumentBlock | None = None
    """The picture or the document that was viewed."""

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (self.text,) if self.medium is None else (self.text, self.medium)

    def to_data(self) -> dict[str, JsonValue]:
        """Return the change; the text for the model is in the content already."""
        return self.model_dump(mode="json", exclude={"text", "medium"})


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
    head = heading(action.command, code_span(action.path), place, others(action, *shown))
    return head if not diff else (*head, DiffBlock(path=action.path, diff=diff))


def show_answer(_action: FileEditorAction, observation: FileEditorObservation) -> Sequence[DisplayBlock]:
    """Show the change as it came out; of a look, what the model is shown."""
    if observation.outcome != "viewed":
        return file_diff(observation.path, observation.diff)
    return () if observation.medium is not None else (ExcerptBlock(path=observation.path),)


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
    extra_roots: Sequence[str] = (), confine_to: Sequence[str] | None = None
) -> Tool[FileEditorAction, FileEditorObservation]:
    """Make the tool with which an agent looks at files and changes them.

    Args:
        extra_roots: Folders outside of the workspace's in which it may do so, too; "/" is everything. A link in the workspace's
            folder that leads out of it is followed only to there.
        confine_to: The only files that it may change, as paths in the workspace.
    """
    allowed = AllowedPaths.of(extra_roots, confine_to)
    described = (
        ""
        if confine_to is None
        else f" Only {' and '.join(confine_to)} can be changed; everything else is for viewing."
    )
    return Tool(
        name="file_editor",
        description=_DESCRIPTION + described,
        action=FileEditorAction,
        open=opening(FileEditor, allowed),
        annotations=ToolAnnotations(title="File editor", open_world=False),
        resources=_resources,
        aliases=ALIASES,
        normalize=normalize,
        risk=_risk,
        display_call=show_call,
        display_answer=show_answer,
        spec=ToolSpec(name="file_editor", params=allowed.params),
    )


def _resources(action: FileEditorAction, root: str) -> tuple[Resource, ...]:
    return (Resource.file(action.path, "read" if action.command == "view" else "write", root=root),)


def _risk(action: FileEditorAction) -> SecurityRisk:
    return SecurityRisk.LOW if action.command == "view" else SecurityRisk.UNKNOWN
