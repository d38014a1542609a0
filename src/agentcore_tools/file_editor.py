"""A file editor as a tool: it looks at files and folders, and changes text files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Literal, TypeVar

from pydantic.json_schema import SkipJsonSchema

from agentcore._value import Value
from agentcore.assessment import SecurityRisk
from agentcore.display import DiffBlock, DisplayBlock, ExcerptBlock, code_span
from agentcore.errors import ToolError
from agentcore.messages import DocumentBlock, ImageBlock, ResultBlock
from agentcore.tools import Action, Aliases, Arguments, Resource, Tool, ToolContext
from agentcore_tools._calls import FILE_NAMES, TextAnswer, added, file_diff, heading, others, rename, replaced
from agentcore_tools.files.change import between, inserting, replacing, unified_diff
from agentcore_tools.files.files import Files, decode_text, file_tool, worked
from agentcore_tools.files.text import Change, Text
from agentcore_tools.files.view import changed_text, medium_of, shown_change, shown_folder, shown_medium, view


class Replacement(Value):
    """One of several replacements."""

    old_str: str
    new_str: str = ""
    replace_all: bool = False


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
    replace_all: bool = False
    """For str_replace: replace every occurrence of old_str."""
    # Not in the schema: for models that make several edits in one call without being offered it.
    edits: SkipJsonSchema[tuple[Replacement, ...] | None] = None
    """For str_replace: several replacements, one after the other, in place of old_str and new_str."""


class FileEditorObservation(TextAnswer):
    """The content that was viewed, or the change that was made."""

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


ResultT = TypeVar("ResultT")


async def _edit_file(files: Files, action: FileEditorAction, ctx: ToolContext) -> FileEditorObservation:
    if action.command == "view":
        return await _view(files, await files.to_read(action.path), action, ctx)
    path = await files.to_write(action.path)
    match action.command:
        case "create":
            return await _create(files, path, _given(action, "file_text", action.file_text))
        case "str_replace":
            finds = [partial(_replacing, each, path) for each in _replacements(action)]
            return await _edit(files, action, path, finds)
        case "insert":
            line, new = _given(action, "insert_line", action.insert_line), _given(action, "new_str", action.new_str)
            return await _edit(files, action, path, [lambda text: [inserting(text, line, new, path)]])
        case "undo_edit":
            return await _undo(files, path)


def _replacements(action: FileEditorAction) -> tuple[Replacement, ...]:
    if action.edits:
        return action.edits
    old = _given(action, "old_str", action.old_str)
    return (Replacement(old_str=old, new_str=action.new_str or "", replace_all=action.replace_all),)


def _replacing(edit: Replacement, path: str, text: Text) -> list[Change]:
    return replacing(text, edit.old_str, edit.new_str, path, every=edit.replace_all)


async def _view(files: Files, path: str, action: FileEditorAction, ctx: ToolContext) -> FileEditorObservation:
    workspace = files.workspace
    found = await workspace.stat(path)
    if found is not None and found.kind == "dir":
        if action.view_range is not None:
            raise ToolError(f"{path!r} is a folder: leave view_range out, which is about lines.")
        shown = await shown_folder(workspace, path)
        return FileEditorObservation(text=shown, command="view", path=path, outcome="viewed")
    data = await files.look(path)
    if (media_type := medium_of(data)) is not None:
        text, medium = await shown_medium(data, media_type, path, ctx)
        return FileEditorObservation(text=text, medium=medium, command="view", path=path, outcome="viewed")

    def viewed() -> str:
        text = decode_text(data, path)
        return text.note + view(text.lines, action.view_range, path)

    shown = await worked(data, viewed)
    return FileEditorObservation(text=shown, command="view", path=path, outcome="viewed")


async def _create(files: Files, path: str, content: str) -> FileEditorObservation:
    if await files.workspace.stat(path) is not None:
        raise ToolError(
            f"{path!r} exists already, and create does not overwrite. Change it with str_replace or insert."
        )
    diff = await files.create(path, content)
    lines = len(Text(content).lines)
    text = f"Created {path} with {lines} {'line' if lines == 1 else 'lines'}."
    return FileEditorObservation(text=text, command="create", path=path, diff=diff, outcome="created")


async def _edit(
    files: Files, action: FileEditorAction, path: str, finds: Sequence[Callable[[Text], list[Change]]]
) -> FileEditorObservation:
    before = await files.to_change(path)

    def edited() -> tuple[bytes, str, str]:
        old = decode_text(before, path)
        if len(finds) == 1:
            changes = finds[0](old)
            new = files.replaced(old, changes, path)
            diff = unified_diff(old.normal, changes, path)
            return new.encode(), diff, changed_text(new, path, changes[0], len(changes))
        new = old
        for number, find in enumerate(finds, 1):
            try:
                new = files.replaced(new, find(new), path)
            except ToolError as error:
                raise ToolError(f"Edit {number} of {len(finds)}: {error} None of the edits was made.") from error
        diff = unified_diff(old.normal, [between(old.normal, new.normal)], path)
        return new.encode(), diff, f"Made {len(finds)} edits of {path}:\n{new.note}{diff}"

    after, diff, text = await worked(before, edited)
    await files.put(path, before, after)
    return FileEditorObservation(text=text, command=action.command, path=path, diff=diff, outcome="changed")


async def _undo(files: Files, path: str) -> FileEditorObservation:
    history = files.memory.history
    last = history.last(files.key(path))
    if last is None:
        raise ToolError(
            f"There is no edit of {path!r} to undo: only those of these tools, since the conversation was opened."
        )
    now = await files.read(path)
    if not last.is_as_left(now):
        raise ToolError(f"{path!r} was changed by something else after the edit, which undoing would destroy. View it.")
    if last.data is None:
        return await _remove(files, path, now)
    then = last.data

    def undone() -> tuple[str, str]:
        old, new = decode_text(now, path), decode_text(then, path)
        change = between(old.normal, new.normal)
        return unified_diff(old.normal, [change], path), new.note + shown_change(new, change)

    diff, shown = await worked(now, undone)
    await files.workspace.write(path, then)
    files.memory.saw(files.key(path), then)
    history.forget_last(files.key(path))
    text = f"Undid the last edit of {path}. The lines are now:\n{shown}"
    return FileEditorObservation(text=text, command="undo_edit", path=path, diff=diff, outcome="changed")


async def _remove(files: Files, path: str, now: bytes) -> FileEditorObservation:
    await files.remove(path)
    files.memory.history.forget_last(files.key(path))

    def removed() -> str:
        normal = decode_text(now, path).normal
        return unified_diff(normal, [Change(0, len(normal), "")], path, removed=True)

    diff = await worked(now, removed)
    text = f"Undid the creation of {path}: it is removed."
    return FileEditorObservation(text=text, command="undo_edit", path=path, diff=diff, outcome="removed")


def _given(action: FileEditorAction, name: str, value: ResultT | None) -> ResultT:
    if value is None:
        meaning = type(action).model_fields[name].description
        raise ToolError(f"{action.command} needs {name}, which is missing. {meaning}")
    return value


def _show_call(action: FileEditorAction) -> Sequence[DisplayBlock]:
    """Show where something is looked at or changed, and the change."""
    shown = {"command", "path"}
    diff = None
    if action.edits or action.old_str is not None:
        shown |= {"old_str", "new_str", "edits"}
        diff = "".join(replaced(edit.old_str, edit.new_str) for edit in _replacements(action))
    elif (new := action.file_text if action.file_text is not None else action.new_str) is not None:
        shown.add("new_str" if action.file_text is None else "file_text")
        diff = added(new)
    place = ""
    if action.view_range is not None and len(action.view_range) == 2:
        first, last = action.view_range
        shown.add("view_range")
        place = f"from line {first}" if last == -1 else f"lines {first} to {last}"
    if action.insert_line is not None:
        shown.add("insert_line")
        place = f"after line {action.insert_line}" if action.insert_line else "at the beginning"
    head = heading(action.command, code_span(action.path), place, others(action, *shown))
    return head if not diff else (*head, DiffBlock(path=action.path, diff=diff))


def _show_answer(_action: FileEditorAction, observation: FileEditorObservation) -> Sequence[DisplayBlock]:
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
included but without the line numbers, and only once: give as much around it as that takes, or replace_all.
- insert puts new_str after the line insert_line, in lines of its own.
- undo_edit takes the last change back that this tool made to a file; each call takes back one more.

Encoding, line ends and permissions of a file stay as they are. Write line ends as plain line feeds."""


_OTHER_NAMES: Final = dict.fromkeys(FILE_NAMES, "path") | {
    "content": "file_text",
    "contents": "file_text",
    "old_string": "old_str",
    "new_string": "new_str",
    "old_text": "old_str",
    "new_text": "new_str",
    "insert_text": "new_str",
    "line": "insert_line",
    "lines": "view_range",
}
_OTHER_COMMANDS: Final = {
    "read": "view",
    "open": "view",
    "write": "create",
    "replace": "str_replace",
    "undo": "undo_edit",
}


def _normalize(arguments: Arguments) -> Arguments:
    """Rename the arguments, and infer a missing command."""
    normalized = rename(arguments, _OTHER_NAMES)
    edits = normalized.get("edits")
    if isinstance(edits, list):
        normalized["edits"] = [rename(each, _OTHER_NAMES) if isinstance(each, dict) else each for each in edits]
    command = normalized.get("command")
    if isinstance(command, str):
        normalized["command"] = _OTHER_COMMANDS.get(command, command)
    elif command is None:
        normalized["command"] = _inferred(normalized)
    if (
        normalized["command"] == "insert"
        and normalized.get("new_str") is None
        and isinstance(normalized.get("file_text"), str)
    ):
        normalized["new_str"] = normalized.pop("file_text")
    return normalized


def _inferred(arguments: Arguments) -> str:
    """Infer the command of a call from its other arguments."""
    given = {name for name, value in arguments.items() if value is not None}
    if given & {"old_str", "edits"}:
        return "str_replace"
    if "insert_line" in given:
        return "insert"
    return "create" if "file_text" in given else "view"


def _as(command: str, name: str | None = None) -> tuple[str, Callable[[Arguments], Arguments]]:
    return (name or command, lambda arguments: {**arguments, "command": command})


def _read(arguments: Arguments) -> Arguments:
    """Make a view of a reading call, whose offset is the number of the first line."""
    rest = {name: value for name, value in arguments.items() if name not in {"offset", "limit"}}
    offset, limit = (int(str(arguments.get(name) or 0)) for name in ("offset", "limit"))
    if offset or limit:
        first = max(offset, 1)
        rest["view_range"] = [first, first + limit - 1 if limit else -1]
    return {**rest, "command": "view"}


_ALIASES: Final[Aliases] = (
    "str_replace_editor",
    "str_replace_based_edit_tool",
    "edit",
    "edit_file",
    "file_edit",
    "editor",
    _as("str_replace"),
    _as("view"),
    _as("create"),
    _as("insert"),
    _as("view", "view_file"),
    _as("view", "read_file"),
    ("read", _read),
    _as("create", "create_file"),
    _as("create", "write"),
    _as("str_replace", "multi_edit"),
)


def file_editor_tool(
    extra_roots: Sequence[str] = (), confine_to: Sequence[str] | None = None
) -> Tool[FileEditorAction, FileEditorObservation]:
    """Make the tool with which an agent looks at files and changes them.

    Args:
        extra_roots: Folders outside of the workspace's in which it may do so, too; "/" is everything. A link in the workspace's
            folder that leads out of it is followed only to there.
        confine_to: The only files that it may change, as paths in the workspace.
    """
    described = (
        ""
        if confine_to is None
        else f" Only {' and '.join(confine_to)} can be changed; everything else is for viewing."
    )
    return file_tool(
        _edit_file,
        FileEditorAction,
        name="file_editor",
        title="File editor",
        description=_DESCRIPTION + described,
        extra_roots=extra_roots,
        confine_to=confine_to,
        resources=lambda action, root: (
            Resource.file(action.path, "read" if action.command == "view" else "write", root=root),
        ),
        aliases=_ALIASES,
        normalize=_normalize,
        risk=lambda action: SecurityRisk.LOW if action.command == "view" else SecurityRisk.UNKNOWN,
        display_call=_show_call,
        display_answer=_show_answer,
    )
