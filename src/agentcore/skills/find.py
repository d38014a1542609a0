"""Finding skills: the files in the folders where people keep them, with bounds on depth, number and size.

Project folders are listed and read through the workspace, so that they may be on another machine; a user's and those of
installed packages are on this one. A level of folders is listed at once.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from agentcore._groups import for_each
from agentcore._threads import Threads
from agentcore.errors import AgentcoreError, PathError
from agentcore.skills.skill import MOST_BYTES, Origin, Source, is_skill_file, one_line
from agentcore.workspace import Entry, Workspace, real_paths
from agentcore.workspace.files import FILES, list_folder, read_file

FOLDERS: Final = (".agents", ".agentcore", ".claude", ".openhands")
"""The folders of clients, in the order in which they win."""
_KINDS: Final = ("skills", "microagents")

_DEEPEST: Final = 5
_MOST_FOLDERS: Final = 2_000
_MOST_PATH: Final = 300
_SKIPPED: Final = frozenset({"node_modules", "__pycache__"})
_NOT_SKILLS: Final = frozenset({"readme.md", "agents.md", "claude.md", "gemini.md", "license.md", "changelog.md"})
_NOWHERE: Final = "A link that leads nowhere, or in a circle: not followed."
_PATHS: Final = Threads("skill_paths", 4)


class Reader(Protocol):
    """A place with files. Its methods raise as a workspace's do."""

    async def list(self, path: str) -> Sequence[Entry]:
        """List a folder, links as links."""
        ...

    async def read(self, path: str, max_bytes: int) -> bytes:
        """Read a file of at most so many bytes."""
        ...

    async def real_paths(self, paths: Sequence[str]) -> Sequence[str | None]:
        """Return where links lead in the end; None for one that leads nowhere, or where that is unknown."""
        ...


class HostReader:
    """The files of this machine."""

    async def list(self, path: str) -> Sequence[Entry]:
        return await FILES.run(list_folder, path, abandon_on_cancel=True)

    async def read(self, path: str, max_bytes: int) -> bytes:
        return await FILES.run(read_file, path, max_bytes, abandon_on_cancel=True)

    async def real_paths(self, paths: Sequence[str]) -> Sequence[str | None]:
        return await _PATHS.run(lambda: [_real_path(path) for path in paths], abandon_on_cancel=True)


def _real_path(path: str) -> str | None:
    try:
        return os.path.realpath(path, strict=True)
    except (OSError, ValueError):
        return None


class WorkspaceReader:
    """The files of a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def list(self, path: str) -> Sequence[Entry]:
        return await self._workspace.list(path)

    async def read(self, path: str, max_bytes: int) -> bytes:
        return await self._workspace.read(path, max_bytes=max_bytes)

    async def real_paths(self, paths: Sequence[str]) -> Sequence[str | None]:
        found = await real_paths(self._workspace, paths)
        return [each if isinstance(each, str) else None for each in found]


class Tree(NamedTuple):
    """Where to look for skills."""

    origin: Origin
    label: str
    root: str
    """An absolute path, without a slash at its end."""
    bases: Sequence[str]
    """The folders with skills, relative to the root and equally deep; "" is the root. Those that are not there are skipped."""
    shown_root: str
    """The words for the root in paths that people read, with a slash, or nothing."""
    links_anywhere: bool = False
    """Links are followed wherever they lead: the user made them."""

    def where(self, path: str) -> str:
        """Return a path as people read it."""
        inside = path == self.root or path.startswith(f"{self.root}/")
        return one_line(self.shown_root + path[len(self.root) + 1 :] if inside else path, _MOST_PATH)


BASES: Final = tuple(f"{folder}/{kind}" for folder in FOLDERS for kind in _KINDS)
"""The folders with skills in a project, and in the home of a user."""


class _Folder(NamedTuple):
    path: str
    real: str
    """The path without the links that were followed."""
    depth: int
    """0 is a folder with skills, less is above of one."""
    inside: str
    """The way to it from the root."""


class Search:
    """Collects the files of skills in one tree."""

    def __init__(self, reader: Reader, tree: Tree) -> None:
        self._reader = reader
        self._tree = tree
        self._followed: set[str] = set()
        self._files: set[str] = set()
        self._left = _MOST_FOLDERS
        self.found: list[Source] = []
        self.problems: list[str] = []

    async def run(self) -> None:
        """Search."""
        tree = self._tree
        # Level by level from the root, so that no part of a way is a link that nobody looked at.
        level = [_Folder(tree.root, tree.root, -len([part for part in tree.bases[0].split("/") if part]), "")]
        while level:
            if len(level) > self._left:
                self._leave_out(level[self._left], f"More than {_MOST_FOLDERS:,} folders: the rest is not searched.")
                level = level[: self._left]
            self._left -= len(level)
            listed = await for_each(self._list, level)
            links: list[tuple[_Folder, Entry]] = []
            below: list[_Folder] = []
            for folder, entries in zip(level, listed, strict=True):
                below += self._look_at(folder, entries, links)
            below += await self._follow(links)
            level = sorted(below, key=lambda each: self._order(each.inside))
        self.found.sort(key=lambda each: (self._order(each.path[len(tree.root) + 1 :]), each.path))

    def _order(self, inside: str) -> int:
        bases = self._tree.bases
        return next((at for at, base in enumerate(bases) if f"{inside}/".startswith(f"{base}/")), len(bases))

    async def _list(self, folder: _Folder) -> Sequence[Entry]:
        try:
            return await self._reader.list(folder.path)
        except PathError as error:
            if error.reason != "missing":
                self._leave_out(folder, str(error))
        except AgentcoreError as error:
            self._leave_out(folder, str(error))
        return ()

    def _leave_out(self, folder: _Folder, sentence: str) -> None:
        self.problems.append(f"{self._tree.where(folder.path) or '.'}: {one_line(sentence, 400)}")

    def _look_at(self, folder: _Folder, entries: Sequence[Entry], links: list[tuple[_Folder, Entry]]) -> list[_Folder]:
        skill = next((each for each in entries if is_skill_file(each.name)), None) if folder.depth >= 0 else None
        if skill is not None and (folder.depth > 0 or not self._tree.bases[0]):
            # What is in its folder belongs to it.
            entries = [skill]
        below: list[_Folder] = []
        for entry in entries:
            inside = posixpath.join(folder.inside, entry.name)
            if folder.depth < 0:
                if not any(f"{base}/".startswith(f"{inside}/") for base in self._tree.bases):
                    continue
            elif entry.name.startswith(".") or entry.name in _SKIPPED:
                continue
            child = _Folder(f"{folder.path}/{entry.name}", f"{folder.real}/{entry.name}", folder.depth + 1, inside)
            if entry.kind == "dir" and folder.depth >= 0 and is_skill_file(entry.name):
                self._leave_out(child, "Not a file.")
            elif entry.kind == "dir" and folder.depth < _DEEPEST:
                below.append(child)
            elif entry.kind == "dir":
                self._leave_out(child, f"More than {_DEEPEST} folders deep: not searched.")
            elif entry.kind == "link" and (folder.depth < _DEEPEST or self._is_wanted(child, entry.name)):
                links.append((child, entry))
            elif folder.depth >= 0 and self._is_wanted(child, entry.name):
                self._take_file(child, entry)
        return below

    def _is_wanted(self, child: _Folder, name: str) -> bool:
        if is_skill_file(name):
            return True
        # Claude Code's folder has notes beside the skills; elsewhere a Markdown file is a skill.
        is_note = name.lower() in _NOT_SKILLS or child.inside.startswith(".claude/skills/")
        return name.endswith(".md") and not is_note

    def _take_file(self, file: _Folder, entry: Entry) -> None:
        if file.real in self._files:
            return
        self._files.add(file.real)
        if entry.kind != "file":
            self._leave_out(file, "Not a file.")
        elif entry.size > MOST_BYTES:
            self._leave_out(file, f"{entry.size:,} bytes, and {MOST_BYTES:,} are the most for a skill: left out.")
        else:
            self.found.append(Source(self._tree.origin, self._tree.label, file.path, self._tree.where(file.path)))

    async def _follow(self, links: Sequence[tuple[_Folder, Entry]]) -> list[_Folder]:
        if not links:
            return []
        links = links[:_MOST_FOLDERS]
        try:
            root, *targets = await self._reader.real_paths([self._tree.root, *(link.path for link, _ in links)])
        except AgentcoreError as error:
            self._leave_out(links[0][0], f"Links are not followed: {error}")
            return []
        below: list[_Folder] = []
        for (link, entry), target in zip(links, targets, strict=True):
            if target is None:
                self._leave_out(link, _NOWHERE)
            elif not self._tree.links_anywhere and (root is None or not target.startswith(f"{root.rstrip('/')}/")):
                self._leave_out(link, "A link out of the project: not followed.")
            else:
                # As paths are written here, so that a file is found once where the root is behind a link itself.
                inside = root is not None and target.startswith(f"{root.rstrip('/')}/")
                real = self._tree.root + target[len((root or "").rstrip("/")) :] if inside else target
                if link.real.startswith(f"{real}/"):
                    self._leave_out(link, "A link to a folder that it is in: not followed.")
                else:
                    below += await self._enter(link._replace(real=real), entry)
        return below

    async def _enter(self, link: _Folder, entry: Entry) -> list[_Folder]:
        """Take in what a link leads to: a file, or a folder to look into."""
        if link.real in self._followed:
            return []
        self._followed.add(link.real)
        try:
            parent = await self._reader.list(posixpath.dirname(link.real))
        except PathError as error:
            self._leave_out(link, _NOWHERE if error.reason == "missing" else str(error))
            return []
        except AgentcoreError as error:
            self._leave_out(link, str(error))
            return []
        target = next((each for each in parent if each.name == posixpath.basename(link.real)), None)
        if target is None:
            self._leave_out(link, _NOWHERE)
        elif target.kind == "dir":
            return [link]
        elif link.depth > 0 and self._is_wanted(link, entry.name):
            self._take_file(link, target)
        return []
