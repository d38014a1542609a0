"""Walking a tree in a workspace. One command lists each level, so that it is also fast on another machine."""

from __future__ import annotations

import posixpath
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from agentcore._gitignore import Rules, is_ignored, read_rules
from agentcore._threads import Threads
from agentcore.errors import ToolError
from agentcore.workspace import EntryKind, Workspace
from agentcore_tools.files.files import Files


class Place(NamedTuple):
    """A folder, or one file, to search."""

    folder: str
    """The absolute path of the folder; of a file, of the one that it is in."""
    file: str | None
    """The name of the file, where it is one."""
    prefix: str
    """The prefix that makes found paths relative to the workspace's folder."""


async def find_place(files: Files, path: str) -> Place:
    """Look where a search is to start."""
    absolute = await files.to_read(path)
    found = await files.workspace.stat(absolute)
    if found is None:
        raise ToolError(await files.missing(absolute, f"No such file or folder: {absolute!r}."))
    if found.kind == "other":
        raise ToolError(f"{absolute!r} is a device, a pipe or a socket, so nothing can be searched there.")
    folder, name = (absolute, None) if found.kind == "dir" else posixpath.split(absolute)
    return Place(folder, name, f"{folder.rstrip('/')}/".removeprefix(f"{files.workspace.root.rstrip('/')}/"))


def shown_path(path: str) -> str:
    """Make text of a path that any log and wire can carry."""
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")


_LISTS: Final = Threads("lists", 4)
_MOST: Final = 200_000
_MOST_OUTPUT: Final = 128 * 1024 * 1024

# Reads folders, each with a NUL behind it. Writes a record for each entry, and two for each .gitignore: its folder (for one
# above: the way from there), and its text.
# Where find can't print, as on macOS and in small containers, stat does.
_LIST: Final = r"""
export LC_ALL=C
up() {
  local folder=$PWD
  while [ "$folder" != / ] && [ ! -e "$folder/.git" ]; do
    folder=${folder%/*}; folder=${folder:-/}
    if [ -f "$folder/.gitignore" ]; then printf 'U%s/\0' "${PWD#"${folder%/}/"}"; tr -d '\000' < "$folder/.gitignore"; printf '\0'; fi
  done
}
[ -z "$1" ] || up
ignores='for folder; do if [ -f "$folder/.gitignore" ]; then
  printf "I%s\0" "$folder"; tr -d "\000" < "$folder/.gitignore"; printf "\0"; fi; done'
if find . -maxdepth 0 -printf '' > /dev/null 2>&1; then
  entries='find "$@" -mindepth 1 -maxdepth 1 -printf "E%y %s %T@ %p\0"'
elif stat -c %f / > /dev/null 2>&1; then
  entries='find "$@" -mindepth 1 -maxdepth 1 -exec stat -c "E%f %s %Y %n" {} + | tr "\n" "\000"'
else
  entries='find "$@" -mindepth 1 -maxdepth 1 -exec stat -f "E%Xp %z %m %N" {} + | tr "\n" "\000"'
fi
xargs -0 sh -c "$ignores; $entries" sh 2> /dev/null
"""
_LETTERS: Final[dict[str, EntryKind]] = {"f": "file", "d": "dir", "l": "link"}


class Found(NamedTuple):
    """Something in a tree."""

    path: str
    """Relative to where the walk started."""
    kind: EntryKind
    size: int
    modified: float


@dataclass(slots=True)
class Walked:
    """The result of a walk."""

    found: list[Found] = field(default_factory=list[Found])
    """In the order of the paths, folders before what is in them."""
    hidden: int = 0
    """How many hidden entries were skipped; what is in hidden folders is not counted."""
    ignored: int = 0
    """How many entries that are ignored were; the same of folders."""
    cut: bool = False
    """True if the walk stopped because there was too much."""


class _Folder(NamedTuple):
    path: str
    rules: tuple[Rules, ...]


async def walk(
    workspace: Workspace, start: str, *, hidden: bool = False, everything: bool = False, depth: int | None = None
) -> Walked:
    """Find what is in a folder (an absolute path), and in those in it: so many levels, or all.

    `hidden` takes hidden files in, and `everything` those that are ignored, too, but never what is in `.git`.
    """
    walked = Walked()
    level = [_Folder(".", ())]
    first = True
    while level and depth != 0 and not walked.cut:
        names = "".join(f"{folder.path}\0" for folder in level).encode(errors="surrogateescape")
        result = await workspace.run(
            ["bash", "-c", _LIST, "bash", "" if everything or not first else "up"],
            cwd=start,
            stdin=names,
            max_output=_MOST_OUTPUT,
        )
        if result.exit_code == 127:
            raise ToolError(f"This place lacks a program that is needed to list files: {result.stderr.strip()}")
        walked.cut = result.truncated
        output, folders = result.out.head, level
        level = await _LISTS.run(_read_level, output, folders, walked, hidden or everything, everything)
        first = False
        depth = None if depth is None else depth - 1
    await _LISTS.run(lambda: walked.found.sort(key=lambda each: each.path.split("/")))
    return walked


def _read_level(
    output: bytes, folders: Sequence[_Folder], walked: Walked, hidden: bool, everything: bool
) -> list[_Folder]:
    records = iter(output.decode(errors="surrogateescape").split("\0"))
    entries: list[str] = []
    texts: dict[str, str] = {}
    above: list[Rules] = []
    for record in records:
        match record[:1]:
            case "E":
                entries.append(record)
            case "I":
                texts[record[1:]] = next(records, "")
            case "U":
                above.insert(0, read_rules(next(records, ""), above=record[1:]))
            case _:
                pass
    listed = [found for entry in entries if (found := _found(entry)) is not None]
    repositories = {each.path.removesuffix("/.git") for each in listed if each.path.endswith("/.git")}
    rules: dict[str, tuple[Rules, ...]] = {}
    for folder in folders:
        # A repository in a repository has rules of its own only.
        inherited = () if folder.path in repositories else (*above, *folder.rules)
        text = "" if everything else texts.get(folder.path, "")
        rules[folder.path] = (*inherited, read_rules(text, f"{folder.path}/".removeprefix("./"))) if text else inherited
    below: list[_Folder] = []
    for each in listed:
        parent, _, name = each.path.rpartition("/")
        path = each.path.removeprefix("./")
        if name == ".git":
            walked.hidden += not everything
        elif name.startswith(".") and not hidden:
            walked.hidden += 1
        elif not everything and is_ignored(f"{path}/" if each.kind == "dir" else path, rules[parent]):
            walked.ignored += 1
        elif len(walked.found) >= _MOST:
            walked.cut = True
        else:
            walked.found.append(each._replace(path=path))
            if each.kind == "dir":
                below.append(_Folder(each.path, rules[parent]))
    return below


def _found(record: str) -> Found | None:
    parts = record[1:].split(" ", 3)
    try:
        mode, size, modified, path = parts
        kind = _LETTERS.get(mode, "other") if len(mode) == 1 else _kind(int(mode, 16))
        return Found(path, kind, int(size), float(modified))
    except ValueError:
        return None  # the rest of a name with a line feed in it, where stat prints lines


def _kind(mode: int) -> EntryKind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "dir"
    return "link" if stat.S_ISLNK(mode) else "other"
