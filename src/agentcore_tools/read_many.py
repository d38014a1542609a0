"""Reading several files at once as a tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, final

import anyio
from pydantic import Field, JsonValue

from agentcore._value import Value
from agentcore.display import code_span
from agentcore.errors import PathError, ToolError
from agentcore.messages import ResultBlock
from agentcore.tools import OUTPUT_LIMIT, Action, Observation, Resource, Tool, ToolAnnotations, ToolContext, ToolSpec
from agentcore_tools._display import heading, others
from agentcore_tools.files.allowed_paths import AllowedPaths
from agentcore_tools.files.files import Files, opening, text_of, worked
from agentcore_tools.files.view import medium_of
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


class ReadManyObservation(Observation):
    """The files, one after the other."""

    text: str
    """The text for the model."""
    files: tuple[ReadManyFile, ...]
    left_out: int
    """How many more there are."""

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (self.text,)

    def to_data(self) -> dict[str, JsonValue]:
        """Return the files that were read; their text is in the content already."""
        return self.model_dump(mode="json", exclude={"text"})


_DESCRIPTION: Final = """\
Read several text files at once: those that are named, and those that globs find. Of long ones the beginning is shown."""
_MOST_FILES: Final = 50
_ROOM: Final = OUTPUT_LIMIT - 3_000
_AT_ONCE: Final = 8
_OTHER_NAMES: Final = ("files", "file_paths", "include")


def read_many_tool(extra_roots: Sequence[str] = ()) -> Tool[ReadManyAction, ReadManyObservation]:
    """Make the tool with which an agent reads several files at once.

    Args:
        extra_roots: Folders outside of the workspace's that it may read, too; "/" is everything.
    """
    allowed = AllowedPaths.of(extra_roots)
    return Tool(
        name="read_many",
        description=_DESCRIPTION,
        action=ReadManyAction,
        open=opening(_Reader, allowed),
        annotations=ToolAnnotations(
            title="Read several files", read_only=True, destructive=False, idempotent=True, open_world=False
        ),
        resources=lambda action, root: tuple(
            Resource.file(path, "read", root=root) if not _is_glob(path) else Resource.workspace("read")
            for path in action.paths
        ),
        aliases=("read_many_files", "read_files"),
        normalize=lambda arguments: {
            "paths" if name in _OTHER_NAMES else name: value for name, value in arguments.items()
        },
        display_call=lambda action: heading(", ".join(map(code_span, action.paths)), others(action, "paths")),
        spec=ToolSpec(name="read_many", params=allowed.params),
    )


@final
class _Reader:
    def __init__(self, files: Files) -> None:
        self._files = files

    async def __call__(self, action: ReadManyAction, ctx: ToolContext) -> ReadManyObservation:  # noqa: ARG002 every executor is given it
        names = await self._names(action)
        wanted = names[:_MOST_FILES]
        read: dict[str, list[str] | str] = {}
        room = anyio.CapacityLimiter(_AT_ONCE)

        async def one(name: str) -> None:
            async with room:
                read[name] = await self._read(name)

        async with anyio.create_task_group() as tasks:
            for name in wanted:
                tasks.start_soon(one, name)
        sections: list[str] = []
        files: list[ReadManyFile] = []
        left = _ROOM
        for number, name in enumerate(wanted):
            section, file = _section(shown_path(name), read[name], left // (len(wanted) - number))
            left -= len(section)
            sections.append(section)
            files.append(file)
        left_out = len(names) - len(wanted)
        if left_out:
            sections.append(f"[{left_out} more files are not shown: at most {_MOST_FILES} are read at once.]")
        return ReadManyObservation(text="\n\n".join(sections), files=tuple(files), left_out=left_out)

    async def _names(self, action: ReadManyAction) -> list[str]:
        """Return the files in the order of the request, each once."""
        names: dict[str, None] = {}
        nothing: list[str] = []
        globs = [path for path in action.paths if _is_glob(path)]
        here = [] if not globs else await self._here(any(Glob(path).names_hidden for path in globs), action.everything)
        for path in action.paths:
            if not _is_glob(path) or await self._is_there(path):
                names[path.removeprefix("./")] = None
                continue
            glob = Glob(path.removeprefix(f"{self._files.workspace.root}/"))
            found = [each for each in here if glob.matches(each)]
            names.update(dict.fromkeys(found))
            nothing += [] if found else [path]
        if not names:
            raise ToolError(f"No file is like {' or '.join(map(repr, nothing))}.")
        return list(names)

    async def _here(self, hidden: bool, everything: bool) -> list[str]:
        place = await find_place(self._files, ".")
        walked = await walk(self._files.workspace, place.folder, hidden=hidden, everything=everything)
        return [each.path for each in walked.found if each.kind == "file"]

    async def _is_there(self, path: str) -> bool:
        """Return True if a name that looks like a glob is a file's, as with `[id].tsx`."""
        return await self._files.workspace.stat(await self._files.to_read(path)) is not None

    async def _read(self, name: str) -> list[str] | str:
        """Return the lines of a file, or the reason why there are none."""
        try:
            path = await self._files.to_read(name)
            data = await self._files.look(path)
            if medium_of(data) is not None:
                return "It is a picture or a PDF. View it by itself."
            return await worked(data, lambda: text_of(data, path).lines)
        except (ToolError, PathError) as error:
            return shown_path(str(error))


def _section(name: str, lines: list[str] | str, room: int) -> tuple[str, ReadManyFile]:
    if isinstance(lines, str):
        return f"==> {name} <==\n[{lines}]", ReadManyFile(path=name, problem=lines)
    shown = 0
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        shown += 1
    rest = "" if shown == len(lines) else f"\n[{len(lines) - shown} more lines. Read the file by itself to see them.]"
    text = "\n".join(lines[:shown]) if lines else "[It is empty.]"
    return f"==> {name} <==\n{text}{rest}", ReadManyFile(path=name, lines=len(lines), shown=shown)


def _is_glob(path: str) -> bool:
    return bool(set(path) & set("*?[{"))
