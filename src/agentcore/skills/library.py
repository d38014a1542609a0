"""All skills of a conversation: those of the project, the user and the installed packages, each name once."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentcore._groups import for_each
from agentcore._registry import entry_points_in
from agentcore._threads import Threads
from agentcore.errors import AgentcoreError
from agentcore.skills.find import BASES, HostReader, Reader, Search, Tree, WorkspaceReader
from agentcore.skills.frontmatter import Malformed
from agentcore.skills.skill import MOST_BYTES, Skill, Source, decode, one_line, read_skill
from agentcore.workspace import LocalWorkspace, Workspace

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS: Final = "agentcore.skills"
"""The entry point group in which an installed distribution names a package that has a folder `skills`."""

_THREADS: Final = Threads("skills", 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Which skills are looked for."""

    project: bool = True
    user: bool = True
    packages: bool = True


@dataclass(frozen=True, slots=True)
class Library:
    """The skills that were found."""

    skills: dict[str, Skill]
    """By name, the project's first."""
    problems: tuple[str, ...]
    """A sentence for each one that was left out or changed."""
    workspace: Workspace

    def reader(self, skill: Skill) -> Reader:
        """Return what reads the files of a skill."""
        return WorkspaceReader(self.workspace) if skill.origin == "project" else HostReader()

    async def read(self, skill: Skill) -> str:
        """Read the file of a skill as it is now.

        Raises:
            AgentcoreError: It can't be read any more.
            Malformed: It is not text.
        """
        return decode(await self.reader(skill).read(skill.path, MOST_BYTES))


async def find_library(workspace: Workspace, places: Places) -> Library:
    """Find all skills: the first one of a name wins, in the order project, user, packages.

    Args:
        workspace: Where the project is; it has to be open.
        places: Which skills to look for.
    """
    problems: list[str] = []
    trees: list[tuple[Reader, Tree]] = []
    root = workspace.root.rstrip("/")
    home = _home()
    if places.project:
        trees.append((WorkspaceReader(workspace), Tree("project", "project", root, BASES, "")))
    is_home = places.project and root == home and isinstance(workspace, LocalWorkspace)
    if places.user and home.startswith("/") and not is_home:
        trees.append((HostReader(), Tree("user", "user", home, BASES, "~/", links_anywhere=True)))
    if places.packages:
        declared, failed = await _THREADS.run(_package_trees)
        trees += [(HostReader(), tree) for tree in declared]
        problems += failed
    searches = await for_each(_search, trees)
    skills: dict[str, Skill] = {}
    for (reader, _), search in zip(trees, searches, strict=True):
        problems += search.problems
        for source, result in zip(search.found, await _read_all(reader, search.found), strict=True):
            problems += result.problems
            if (skill := result.skill) is None:
                continue
            first = skills.setdefault(skill.name, skill)
            if first is not skill:
                problems.append(
                    f"{source.where}: {first.where} has a skill of the same name, {skill.name!r}, and wins."
                )
    return Library(skills, tuple(problems), workspace)


def _home() -> str:
    return os.path.expanduser("~").rstrip("/")


async def _search(tree: tuple[Reader, Tree]) -> Search:
    search = Search(*tree)
    await search.run()
    return search


def _package_trees() -> tuple[list[Tree], list[str]]:
    trees: list[Tree] = []
    problems: list[str] = []
    for point in sorted(entry_points_in(ENTRY_POINTS), key=lambda each: each.name):
        folder = _folder_of(point)
        name = one_line(point.name, 80)
        if folder is None:
            problems.append(f"{name}: the package {point.module!r} was not found, so it has no skills.")
        else:
            trees.append(Tree("package", f"package {name}", folder, ("skills",), f"{name}: ", links_anywhere=True))
    return trees, problems


def _folder_of(point: EntryPoint) -> str | None:
    try:
        spec = importlib.util.find_spec(point.module)
    except (ImportError, ValueError, AttributeError):
        return None
    folders = None if spec is None else spec.submodule_search_locations
    return next((os.path.abspath(each) for each in folders or ()), None)


@dataclass(frozen=True, slots=True)
class _Result:
    skill: Skill | None
    problems: Sequence[str]


async def _read_all(reader: Reader, sources: Sequence[Source]) -> list[_Result]:
    async def read(source: Source) -> bytes | AgentcoreError:
        try:
            return await reader.read(source.path, MOST_BYTES)
        except AgentcoreError as error:
            return error

    def parse(files: Sequence[bytes | AgentcoreError]) -> list[_Result]:
        return [_parse(data, source) for data, source in zip(files, sources, strict=True)]

    if not sources:
        return []
    # In a thread: yaml takes its time, and is imported there.
    return await _THREADS.run(parse, await for_each(read, sources))


def _parse(data: bytes | AgentcoreError, source: Source) -> _Result:
    if isinstance(data, AgentcoreError):
        return _Result(None, [f"{source.where}: {one_line(str(data), 400)}"])
    try:
        skill, notes = read_skill(decode(data), source)
    except Malformed as error:
        return _Result(None, [f"{source.where}:{error.line}: {one_line(error.sentence, 400)} It was left out."])
    return _Result(skill, [f"{source.where}:{note.line}: {note.sentence}" for note in notes])
