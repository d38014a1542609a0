"""Reading several files at once as a tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import anyio
from pydantic import Field

from agentcore._value import Value
from agentcore.display import code_span
from agentcore.errors import PathError, ToolError
from agentcore.tools import OUTPUT_LIMIT, Action, Resource, Tool, ToolContext
from agentcore_tools._calls import TextAnswer, heading, others
from agentcore_tools.files.files import Files, decode_text, file_tool, worked
from agentcore_tools.files.text import Text
from agentcore_tools.files.view import fitting, medium_of
from agentcore_tools.search.globs import Glob
from agentcore_tools.search.walk import find_place, shown_path, walk


class ReadManyAction(Action):
    """Files, and globs of files."""

    paths: list[Annotated[str, Field(min_length=1)]] = Field(min_length=1, max_length=100)
    """Files, or globs as in "src/**/*.py". A relative path starts in the workspace's folder."""
    everything: bool = False
    """Let globs find hidden files, and those that .gitignore excludes, too."""


class ReadManyFile(Value):
    """One of the files."""

    path: str
    """Relative to the workspace's folder, where it is in there."""
    lines: int = 0
    """How many lines it has."""
    shown: int = 0
    """How many of them are shown, from the first on."""
    problem: str | None = None
    """Why nothing of it is shown."""


class ReadManyObservation(TextAnswer):
    """The files, one after the other."""

    files: tuple[ReadManyFile, ...]
    left_out: int
    """How many more there are."""


_DESCRIPTION: Final = """\
Read several text files at once: those that are named, and those that globs find. Of long ones the beginning is shown."""
_MOST_FILES: Final = 50
_ROOM: Final = OUTPUT_LIMIT - 3_000
_AT_ONCE: Final = 8
_OTHER_NAMES: Final[dict[str, str]] = dict.fromkeys(("files", "file_paths", "include"), "paths")


def read_many_tool(extra_roots: Sequence[str] = ()) -> Tool[ReadManyAction, ReadManyObservation]:
    """Make the tool with which an agent reads several files at once.

    Args:
        extra_roots: Folders outside of the workspace's that it may read, too; "/" is everything.
    """
    return file_tool(
        _read_many,
        ReadManyAction,
        name="read_many",
        title="Read several files",
        description=_DESCRIPTION,
        extra_roots=extra_roots,
        read_only=True,
        resources=lambda action, root: tuple(
            Resource.file(path, "read", root=root) if not _is_glob(path) else Resource.workspace("read")
            for path in action.paths
        ),
        aliases=("read_many_files", "read_files"),
        other_names=_OTHER_NAMES,
        display_call=lambda action: heading(", ".join(map(code_span, action.paths)), others(action, "paths")),
    )


async def _read_many(files: Files, action: ReadManyAction, _ctx: ToolContext) -> ReadManyObservation:
    names, nothing = await _names(files, action)
    wanted = names[:_MOST_FILES]
    read: dict[str, Text | str] = {}
    room = anyio.CapacityLimiter(_AT_ONCE)

    async def one(name: str) -> None:
        async with room:
            read[name] = await _read(files, name)

    async with anyio.create_task_group() as tasks:
        for name in wanted:
            tasks.start_soon(one, name)
    sections: list[str] = []
    found: list[ReadManyFile] = []
    left = _ROOM
    for number, name in enumerate(wanted):
        section, file = _section(shown_path(name), read[name], left // (len(wanted) - number))
        left -= len(section)
        sections.append(section)
        found.append(file)
    left_out = len(names) - len(wanted)
    if left_out:
        sections.append(f"[{left_out} more files are not shown: at most {_MOST_FILES} are read at once.]")
    sections += [f"[No file matches {glob!r}.{_skipped(action)}]" for glob in nothing]
    return ReadManyObservation(text="\n\n".join(sections), files=tuple(found), left_out=left_out)


async def _names(files: Files, action: ReadManyAction) -> tuple[list[str], list[str]]:
    """Return the files in the order of the request, each once, and the globs that match none."""
    names: dict[str, None] = {}
    nothing: list[str] = []
    globs = [path for path in action.paths if _is_glob(path)]
    here: list[str] = []
    if globs:
        hidden = any(Glob(path).names_hidden for path in globs)
        place = await find_place(files, ".")
        walked = await walk(files.workspace, place.folder, hidden=hidden, everything=action.everything)
        here = [each.path for each in walked.found if each.kind == "file"]
    for path in action.paths:
        # A name that looks like a glob may be a file's, as `[id].tsx` is.
        if not _is_glob(path) or await files.workspace.stat(await files.to_read(path)) is not None:
            names[path.removeprefix("./")] = None
            continue
        glob = Glob(path.removeprefix(f"{files.workspace.root}/"))
        found = [each for each in here if glob.matches(each)]
        names.update(dict.fromkeys(found))
        nothing += [] if found else [path]
    if not names:
        raise ToolError(f"No file matches {' or '.join(map(repr, nothing))}.{_skipped(action)}")
    return list(names), nothing


def _skipped(action: ReadManyAction) -> str:
    return "" if action.everything else " Hidden and ignored files were skipped; everything=true reads them."


async def _read(files: Files, name: str) -> Text | str:
    """Return the text of a file, or the reason why there is none."""
    try:
        path = await files.to_read(name)
        data = await files.look(path)
        if medium_of(data) is not None:
            return "It is a picture or a PDF. View it by itself."
        return await worked(data, lambda: decode_text(data, path))
    except (ToolError, PathError) as error:
        return shown_path(str(error))


def _section(name: str, found: Text | str, room: int) -> tuple[str, ReadManyFile]:
    if isinstance(found, str):
        return f"==> {name} <==\n[{found}]", ReadManyFile(path=name, problem=found)
    lines = found.lines
    shown = fitting(lines, room)
    rest = "" if shown == len(lines) else f"\n[{len(lines) - shown} more lines. Read the file by itself to see them.]"
    text = "\n".join(lines[:shown]) if lines else "[It is empty.]"
    return f"==> {name} <==\n{found.note}{text}{rest}", ReadManyFile(path=name, lines=len(lines), shown=shown)


def _is_glob(path: str) -> bool:
    return bool(set(path) & set("*?[{"))
