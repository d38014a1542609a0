"""Finding files by their paths as a tool."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Final

from pydantic import Field, JsonValue

from agentcore.errors import ToolError
from agentcore.tools import Action, Resource, Tool, ToolContext
from agentcore_tools._calls import TextAnswer
from agentcore_tools.files.files import Files, file_tool
from agentcore_tools.search.globs import Glob
from agentcore_tools.search.walk import find_place, shown_path, walk


class GlobAction(Action):
    """A glob, and where to look."""

    pattern: str = Field(min_length=1)
    """As in "**/*.py", "src/**/test_*.{ts,tsx}" or "*.md"; without a slash it is about names, in whatever folder."""
    path: str = "."
    """The folder to look in. A relative path starts in the workspace's folder."""
    everything: bool = False
    """Look at hidden files, and at those that .gitignore excludes, too."""
    limit: int = Field(default=100, ge=1, le=1_000)
    """How many files to show at most."""


class GlobObservation(TextAnswer):
    """Files, the newest first."""

    files: tuple[str, ...]
    """Relative to the workspace's folder, where they are in there."""
    count: int
    """How many there are, those that are not shown included."""

    def to_data(self) -> dict[str, JsonValue]:
        """Return the number of files; their paths are in the content already."""
        return {"count": self.count}


_DESCRIPTION: Final = """\
Find files by their paths, the newest first. Hidden files and files that .gitignore leaves out are skipped."""
_OTHER_NAMES: Final = {"glob": "pattern", "glob_pattern": "pattern", "dir_path": "path", "folder": "path"}


def glob_tool(extra_roots: Sequence[str] = ()) -> Tool[GlobAction, GlobObservation]:
    """Make the tool with which an agent finds files by their paths.

    Args:
        extra_roots: Folders outside of the workspace's that it may look in, too; "/" is everything.
    """
    return file_tool(
        _find,
        GlobAction,
        name="glob",
        title="Find files",
        description=_DESCRIPTION,
        extra_roots=extra_roots,
        read_only=True,
        heads="pattern",
        resources=lambda action, root: (Resource.file(_split(action.path, action.pattern)[0], "read", root=root),),
        aliases=("find_files", "file_glob", "find"),
        other_names=_OTHER_NAMES,
    )


async def _find(files: Files, action: GlobAction, _ctx: ToolContext) -> GlobObservation:
    path, pattern = _split(action.path, action.pattern)
    glob = Glob(pattern)
    place = await find_place(files, path)
    if place.file is not None:
        raise ToolError(f"{path!r} is a file. Give the folder to look in, or read the file.")
    walked = await walk(files.workspace, place.folder, hidden=glob.names_hidden, everything=action.everything)
    found = [each for each in walked.found if each.kind != "dir" and glob.matches(each.path)]
    found.sort(key=lambda each: (-each.modified, each.path.split("/")))
    shown = tuple(shown_path(place.prefix + each.path) for each in found[: action.limit])
    notes: list[str] = []
    if not found:
        passed = "" if action.everything else " Hidden and ignored files were skipped; everything=true finds them."
        notes.append(f"[No file in {place.folder!r} matches {pattern!r}.{passed}]")
    if len(found) > len(shown):
        notes.append(f"[These are the newest {len(shown)} of {len(found)} files.]")
    if walked.cut:
        notes.append("[There is too much in this folder to look at all of it. Look in one that is in it.]")
    return GlobObservation(text="\n".join([*shown, *notes]), files=shown, count=len(found))


def _split(path: str, pattern: str) -> tuple[str, str]:
    """Split a glob that is absolute, or that leads up, into a folder and a glob in that folder."""
    if not pattern.startswith(("/", "../")):
        return path, pattern
    parts = pattern.split("/")
    fixed = next((number for number, part in enumerate(parts) if set(part) & set("*?[{\\")), len(parts) - 1)
    folder = "/".join(parts[:fixed]) or "/"
    # With a slash, so that it is matched against paths: the folder is given.
    return posixpath.join(path, folder), "./" + "/".join(parts[fixed:])
