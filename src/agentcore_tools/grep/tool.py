"""Searching files for lines as a tool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

import anyio
from pydantic import Field

from agentcore._text import Mask
from agentcore._value import Value
from agentcore.errors import ToolError
from agentcore.tools import OUTPUT_LIMIT, Action, Arguments, Tool, ToolContext
from agentcore_tools._calls import IGNORED, TextAnswer, rename
from agentcore_tools._output import LONGEST_SECRET
from agentcore_tools.files.files import Files, file_tool
from agentcore_tools.files.view import fitting
from agentcore_tools.grep.python import PYTHON_NOTE, search_here, search_there
from agentcore_tools.grep.query import LONGEST, Line, Lines, ProgramMissing, Search, fix_pattern
from agentcore_tools.grep.ripgrep import RipgrepFailed, find_ripgrep, search_with_ripgrep
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


class GrepObservation(TextAnswer):
    """The files with lines that match, in the order of their paths."""

    files: tuple[GrepFile, ...]
    truncated: bool
    """True if there is more."""


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
_TYPES: Final = {
    "c": "*.{c,h}",
    "cpp": "*.{cc,cpp,cxx,hh,hpp,hxx,h,inl}",
    "csharp": "*.cs",
    "html": "*.{htm,html}",
    "js": "*.{js,jsx,mjs,cjs,vue}",
    "kotlin": "*.{kt,kts}",
    "make": "{[Mm]akefile,GNUmakefile,*.mk}",
    "markdown": "*.{md,markdown,mdx}",
    "md": "*.{md,markdown,mdx}",
    "py": "*.{py,pyi}",
    "python": "*.{py,pyi}",
    "ruby": "*.{rb,gemspec}",
    "rust": "*.rs",
    "sh": "*.{sh,bash,zsh,ksh}",
    "ts": "*.{ts,tsx,mts,cts}",
    "typescript": "*.{ts,tsx,mts,cts}",
    "yaml": "*.{yml,yaml}",
}
"""ripgrep's names for kinds of files, where they are not just the ending."""
_OTHER_OUTPUTS: Final = {"content": "lines", "files_with_matches": "files", "count": "counts"}


def grep_tool(extra_roots: Sequence[str] = ()) -> Tool[GrepAction, GrepObservation]:
    """Make the tool with which an agent searches files for lines.

    Args:
        extra_roots: Folders outside of the workspace's that it may search, too; "/" is everything.
    """
    return file_tool(
        _grep,
        GrepAction,
        name="grep",
        title="Search in files",
        description=_DESCRIPTION,
        extra_roots=extra_roots,
        read_only=True,
        heads="pattern",
        aliases=("rg", "ripgrep", "search_files", "grep_search", "search_file_content"),
        normalize=_normalize,
        # Lines always come with their numbers, and a pattern never goes over more than one.
        ignored=(*IGNORED, "-n", ("multiline", False), ("offset", 0)),
    )


def _normalize(arguments: Arguments) -> Arguments:
    normalized = rename(arguments, _OTHER_NAMES)
    around = [normalized.pop(name) for name in ("-A", "-B") if name in normalized]
    if around and "context" not in normalized:
        # Above and below are the same here: the larger of the two shows all that was asked for.
        normalized["context"] = max(around, key=lambda value: int(str(value)))
    if isinstance(kind := normalized.get("type"), str) and "include" not in normalized:
        del normalized["type"]
        normalized["include"] = _TYPES.get(kind, f"*.{kind}")
    if normalized.get("limit") == 0:
        del normalized["limit"]  # as many as there may be
    output = normalized.get("output")
    if isinstance(output, str):
        normalized["output"] = _OTHER_OUTPUTS.get(output, output)
    return normalized


async def _grep(files: Files, action: GrepAction, ctx: ToolContext) -> GrepObservation:
    if "\0" in action.pattern:
        raise ToolError("There is a NUL character in the pattern, and no file with one is searched: it is not text.")
    place = await find_place(files, action.path)
    glob = None if action.include is None else Glob(action.include)
    found: list[Lines] = []
    with_python = False
    with anyio.move_on_after(_PATIENCE) as patience:
        found, with_python = await _search(files, place, action, glob)
    if patience.cancelled_caught:
        raise ToolError(
            f"The search took longer than {_PATIENCE} s and was stopped. Search in a folder (path) or in some files (include), or "
            "with a simpler pattern."
        )
    found.sort(key=lambda lines: lines.path.split("/"))
    found, truncated = _cut(found, action)
    rows = list(_shown(found, action, place.prefix, ctx.secrets.mask))
    count = fitting(rows, _ROOM)
    room_ran_out = count < len(rows)
    notes = ["\n".join(rows[:count]).rstrip("\n")] if count else []
    if not found:
        notes.append(_nothing(action))
    elif truncated or room_ran_out:
        what = "lines" if action.output == "lines" else "files"
        notes.append(
            f"[There are more {what}. Search for less: in a folder (path), in some files (include), or for something rarer.]"
        )
    if with_python:
        notes.append(f"[{PYTHON_NOTE}]")
    answers = tuple(GrepFile(path=shown_path(place.prefix + lines.path), matches=lines.matches) for lines in found)
    return GrepObservation(text="\n".join(notes), files=answers, truncated=truncated or room_ran_out)


async def _search(files: Files, place: Place, action: GrepAction, glob: Glob | None) -> tuple[list[Lines], bool]:
    """Return the lines, and whether it was Python that found them."""
    workspace = files.workspace
    search = Search(
        pattern=fix_pattern(action.pattern),
        ignore_case=action.ignore_case,
        context=action.context,
        first_only=action.output == "files",
        keep=action.output == "lines",
        limit=action.limit,
    )
    hidden = glob is not None and glob.names_hidden
    missing = files.memory.missing_programs
    while (program := await find_ripgrep(missing)) is not None:
        try:
            found = await search_with_ripgrep(
                workspace,
                place.folder,
                place.file,
                search,
                lambda path: place.file is not None or _is_wanted(path, glob, hidden=hidden or action.everything),
                program=program,
                types=None if glob is None or "/" in glob.pattern else glob.pattern,
                hidden=hidden,
                everything=action.everything,
            )
            return found, False
        except ProgramMissing:
            missing.add(program)
        except RipgrepFailed:
            break  # what it found by then would look like all there is
    candidates = await _candidates(files, place, action, glob, hidden)
    if "python3" not in missing:
        try:
            return await search_there(workspace, place.folder, candidates, search), True
        except ProgramMissing:
            missing.add("python3")
    return await search_here(workspace, place.folder, candidates, search), True


async def _candidates(files: Files, place: Place, action: GrepAction, glob: Glob | None, hidden: bool) -> list[Found]:
    if place.file is not None:
        entry = await files.workspace.stat(f"{place.folder}/{place.file}")
        size = 0 if entry is None else entry.size
        return [Found(place.file, "file", size, 0)]
    walked = await walk(files.workspace, place.folder, hidden=hidden, everything=action.everything)
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


def _shown(found: Sequence[Lines], action: GrepAction, prefix: str, mask: Mask) -> Iterator[str]:
    for lines in found:
        path = shown_path(prefix + lines.path)
        match action.output:
            case "files":
                yield path
            case "counts":
                yield f"{path}: {lines.matches}"
            case "lines":
                yield path
                yield from _numbered(lines.lines, action.context, mask)
                yield ""


def _numbered(lines: Sequence[Line], context: int, mask: Mask) -> Iterator[str]:
    before = None
    for line in lines:
        if before is not None and line.number > before + 1 and context:
            yield "--"
        before = line.number
        text = line.text
        if len(text) > _LONGEST_LINE:
            text = _beginning(text, mask)
        yield f"{line.number}{':' if line.matches else '-'}{text}"


def _beginning(text: str, mask: Mask) -> str:
    masked = mask(text)
    if len(text) >= LONGEST:  # its end may be half of a secret
        masked = masked[: max(len(masked) - LONGEST_SECRET, 0)]
    return (
        masked
        if len(masked) <= _LONGEST_LINE and len(text) < LONGEST
        else f"{masked[:_LONGEST_LINE]} [... the line goes on]"
    )


def _nothing(action: GrepAction) -> str:
    where = f" in {action.path!r}" if action.path != "." else ""
    include = f" in the files of {action.include!r}" if action.include is not None else ""
    more = "" if action.everything else " Hidden and ignored files were skipped; everything=true searches them."
    return f"[No line{where}{include} matches {action.pattern!r}.{more}]"
