"""Searching files for lines as a tool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, final

import anyio
from pydantic import Field, JsonValue

from agentcore._value import Value
from agentcore.display import code_span
from agentcore.errors import ToolError
from agentcore.messages import ResultBlock
from agentcore.tools import (
    OUTPUT_LIMIT,
    Action,
    Arguments,
    Observation,
    Resource,
    Tool,
    ToolAnnotations,
    ToolContext,
    ToolSpec,
)
from agentcore_tools._display import heading, others
from agentcore_tools.files.allowed_paths import AllowedPaths
from agentcore_tools.files.files import Files, opening
from agentcore_tools.grep.python import PYTHON_NOTE, NoPython, search_here, search_there
from agentcore_tools.grep.query import Line, Lines, Search, fix_pattern
from agentcore_tools.grep.ripgrep import NoRipgrep, RipgrepFailed, search_with_ripgrep
from agentcore_tools.search.globs import Glob
from agentcore_tools.search.walk import Found, Place, find_place, shown_path, walk


class GrepAction(Action):
    """A regular expression, and where to look for it."""

    pattern: str = Field(min_length=1)
    """A regular expression, as ripgrep takes it. It is matched line by line."""
    path: str = "."
    """The folder, or the one file, to search. A relative path starts in the workspace's folder."""
    include: str | None = None
    """A glob of the files to search, as in "*.{ts,tsx}" or "src/**/*.py"; without a slash it is about names."""
    ignore_case: bool = False
    """Treat capital and small letters as the same."""
    context: int = Field(default=0, ge=0, le=20)
    """How many lines to show above and below each that matches."""
    output: Literal["lines", "files", "counts"] = "lines"
    """The form of the answer: the lines, only the paths of the files, or the number of lines in each file."""
    everything: bool = False
    """Search hidden files, and those that .gitignore excludes, too."""
    limit: int = Field(default=200, ge=1, le=2_000)
    """After how many lines to stop; where lines are not shown, after how many files."""


class GrepFile(Value):
    """A file with lines that match."""

    path: str
    """Relative to the workspace's folder, where it is in there."""
    matches: int
    """How many of its lines match; where files alone were asked for, 1."""


class GrepObservation(Observation):
    """The files with lines that match, in the order of their paths."""

    text: str
    """The text for the model."""
    files: tuple[GrepFile, ...]
    truncated: bool
    """True if there is more."""

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (self.text,)

    def to_data(self) -> dict[str, JsonValue]:
        """Return the files; the lines are in the content already."""
        return self.model_dump(mode="json", exclude={"text"})


_DESCRIPTION: Final = """\
Search files for lines that match a regular expression (in the syntax of ripgrep: no lookaround, no backreferences). Hidden files, \
files that .gitignore excludes and files that are not text are skipped. Lines come with their numbers, ordered by path."""
_ROOM: Final = OUTPUT_LIMIT - 2_000
_LONGEST_LINE: Final = 500
_PATIENCE: Final = 60
"""Seconds. Without ripgrep, a pattern can take for ever."""
_OTHER_NAMES: Final = {
    "regex": "pattern",
    "query": "pattern",
    "search": "pattern",
    "glob": "include",
    "file_pattern": "include",
    "case_insensitive": "ignore_case",
    "-i": "ignore_case",
    "-C": "context",
    "output_mode": "output",
    "head_limit": "limit",
}
_OTHER_OUTPUTS: Final = {"content": "lines", "files_with_matches": "files", "count": "counts"}


def grep_tool(extra_roots: Sequence[str] = ()) -> Tool[GrepAction, GrepObservation]:
    """Make the tool with which an agent searches files for lines.

    Args:
        extra_roots: Folders outside of the workspace's that it may search, too; "/" is everything.
    """
    allowed = AllowedPaths.of(extra_roots)
    return Tool(
        name="grep",
        description=_DESCRIPTION,
        action=GrepAction,
        open=opening(_Searcher, allowed),
        annotations=ToolAnnotations(
            title="Search in files", read_only=True, destructive=False, idempotent=True, open_world=False
        ),
        resources=lambda action, root: (Resource.file(action.path, "read", root=root),),
        aliases=("rg", "ripgrep", "search_files", "grep_search", "search_file_content"),
        normalize=_normalize,
        display_call=lambda action: heading(code_span(action.pattern), others(action, "pattern")),
        spec=ToolSpec(name="grep", params=allowed.params),
    )


def _normalize(arguments: Arguments) -> Arguments:
    normalized = {_OTHER_NAMES.get(name, name): value for name, value in arguments.items()}
    output = normalized.get("output")
    if isinstance(output, str):
        normalized["output"] = _OTHER_OUTPUTS.get(output, output)
    return normalized


@final
class _Searcher:
    def __init__(self, files: Files) -> None:
        self._files = files
        self._no_ripgrep = False
        self._no_python = False

    async def __call__(self, action: GrepAction, ctx: ToolContext) -> GrepObservation:  # noqa: ARG002 every executor is given it
        if "\0" in action.pattern:
            raise ToolError(
                "There is a NUL character in the pattern, and no file with one is searched: it is not text."
            )
        place = await find_place(self._files, action.path)
        glob = None if action.include is None else Glob(action.include)
        found: list[Lines] = []
        with_python = False
        with anyio.move_on_after(_PATIENCE) as patience:
            found, with_python = await self._search(place, action, glob)
        if patience.cancelled_caught:
            raise ToolError(
                f"The search took longer than {_PATIENCE} s and was ended. Search in a folder (path) or in some files (include), or "
                "with a simpler pattern."
            )
        found.sort(key=lambda lines: lines.path.split("/"))
        found, truncated = _cut(found, action)
        shown = _shown(found, action, place.prefix)
        text, room_ran_out = _fitted(shown)
        notes = [text] if text else []
        if not found:
            notes.append(_nothing(action))
        elif truncated or room_ran_out:
            what = "lines" if action.output == "lines" else "files"
            notes.append(
                f"[There are more {what}. Search for less: in a folder (path), in some files (include), or for something rarer.]"
            )
        if with_python:
            notes.append(f"[{PYTHON_NOTE}]")
        files = tuple(GrepFile(path=shown_path(place.prefix + lines.path), matches=lines.matches) for lines in found)
        return GrepObservation(text="\n".join(notes), files=files, truncated=truncated or room_ran_out)

    async def _search(self, place: Place, action: GrepAction, glob: Glob | None) -> tuple[list[Lines], bool]:
        """Return the lines, and whether it was Python that found them."""
        workspace = self._files.workspace
        search = Search(
            pattern=fix_pattern(action.pattern),
            ignore_case=action.ignore_case,
            context=action.context,
            first_only=action.output == "files",
            keep=action.output == "lines",
            limit=action.limit,
        )
        hidden = glob is not None and glob.names_hidden
        if not self._no_ripgrep:
            try:
                found = await search_with_ripgrep(
                    workspace,
                    place.folder,
                    place.file,
                    search,
                    lambda path: place.file is not None or _is_wanted(path, glob, hidden=hidden or action.everything),
                    types=None if glob is None or "/" in glob.pattern else glob.pattern,
                    hidden=hidden,
                    everything=action.everything,
                )
                return found, False
            except NoRipgrep:
                self._no_ripgrep = True
            except RipgrepFailed:
                pass  # what it found by then would look like all there is
        files = await self._candidates(place, action, glob, hidden)
        if not self._no_python:
            try:
                return await search_there(workspace, place.folder, files, search), True
            except NoPython:
                self._no_python = True
        return await search_here(workspace, place.folder, files, search), True

    async def _candidates(self, place: Place, action: GrepAction, glob: Glob | None, hidden: bool) -> list[Found]:
        if place.file is not None:
            entry = await self._files.workspace.stat(f"{place.folder}/{place.file}")
            size = 0 if entry is None else entry.size
            return [Found(place.file, "file", size, 0)]
        walked = await walk(self._files.workspace, place.folder, hidden=hidden, everything=action.everything)
        return [each for each in walked.found if each.kind == "file" and (glob is None or glob.matches(each.path))]


def _is_wanted(path: str, glob: Glob | None, *, hidden: bool) -> bool:
    # ripgrep looks at what is hidden where a .gitignore has a line that takes it back in.
    if not hidden and (path.startswith(".") or "/." in path):
        return False
    return glob is None or glob.matches(path)


def _cut(found: list[Lines], action: GrepAction) -> tuple[list[Lines], bool]:
    """Keep as many lines, or files, as were asked for."""
    if action.output != "lines":
        return found[: action.limit], len(found) > action.limit
    left = action.limit
    kept: list[Lines] = []
    for lines in found:
        if not left:
            return kept, True
        if lines.matches > left:
            last = [line.number for line in lines.lines if line.matches][left - 1]
            fitting = [line for line in lines.lines if line.number <= last]
            return [*kept, Lines(lines.path, fitting, left)], True
        left -= lines.matches
        kept.append(lines)
    return kept, False


def _shown(found: Sequence[Lines], action: GrepAction, prefix: str) -> Iterator[str]:
    for lines in found:
        path = shown_path(prefix + lines.path)
        match action.output:
            case "files":
                yield path
            case "counts":
                yield f"{path}: {lines.matches}"
            case "lines":
                yield path
                yield from _numbered(lines.lines, action.context)
                yield ""


def _numbered(lines: Sequence[Line], context: int) -> Iterator[str]:
    before = None
    for line in lines:
        if before is not None and line.number > before + 1 and context:
            yield "--"
        before = line.number
        text = line.text
        if len(text) > _LONGEST_LINE:
            text = f"{text[:_LONGEST_LINE]} [... the line goes on]"
        yield f"{line.number}{':' if line.matches else '-'}{text}"


def _fitted(rows: Iterator[str]) -> tuple[str, bool]:
    kept: list[str] = []
    room = _ROOM
    for row in rows:
        room -= len(row) + 1
        if room < 0:
            return "\n".join(kept), True
        kept.append(row)
    return "\n".join(kept).rstrip("\n"), False


def _nothing(action: GrepAction) -> str:
    where = f" in {action.path!r}" if action.path != "." else ""
    include = f" in files like {action.include!r}" if action.include is not None else ""
    more = "" if action.everything else " Hidden and ignored files were passed over; everything=true searches them."
    return f"[No line{where}{include} matches {action.pattern!r}.{more}]"
