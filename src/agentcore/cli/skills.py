"""`agentcore skills`: the skills that an agent finds, and what is wrong with those that one writes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from agentcore.cli.console import BAD, DIM, NAME, WARN, make_console, print_line, styled, write_json
from agentcore.cli.failures import UsageError
from agentcore.cli.text import count, one_line
from agentcore.errors import AgentcoreError
from agentcore.skills import Places, Skill, find_library
from agentcore.skills.check import check_skill
from agentcore.skills.find import BASES, HostReader, Search, Tree
from agentcore.skills.frontmatter import Malformed
from agentcore.skills.skill import MOST_BYTES, Source, decode
from agentcore.workspace import LocalWorkspace

_DOCUMENTS: Final = frozenset({"AGENTS.md", "CLAUDE.md", "GEMINI.md", "README.md", "MEMORY.md"})
"""Markdown files that are not skills wherever they are."""


async def list_skills(folder: str, *, json: bool) -> int:
    """Print the skills that an agent finds in a folder, and return the exit code."""
    async with LocalWorkspace(folder) as workspace:
        library = await find_library(workspace, Places())
    found = list(library.skills.values())
    if json:
        for skill in found:
            write_json(_as_json(skill))
        for problem in library.problems:
            write_json({"problem": problem})
        return 0
    console = make_console()
    if not found:
        print_line(console, f"No skills in {folder}, in your home, or in installed packages.")
    for skill in found:
        line = styled(one_line(skill.name), NAME).append(f"  {one_line(skill.label)}  ", DIM)
        print_line(console, line.append(one_line(skill.activation)))
        if skill.description:
            print_line(console, f"  {one_line(skill.description)}")
    for problem in library.problems:
        print_line(console, one_line(problem), WARN)
    return 0


def _as_json(skill: Skill) -> dict[str, object]:
    return {
        "name": skill.name,
        "source": skill.label,
        "path": skill.path,
        "description": skill.description,
        "always": skill.always,
        "tool": skill.callable and not skill.always,
        "triggers": list(skill.triggers),
        "paths": list(skill.paths),
        "inputs": [each.name for each in skill.inputs],
    }


async def check_skills(paths: Sequence[str]) -> int:
    """Print what is wrong with skills, and return the exit code: 1 if something is."""
    reader = HostReader()
    files: list[Source] = []
    problems: list[str] = []
    for place in [_place(path) for path in paths] or [_place(".", BASES)]:
        if isinstance(place, Source):
            files.append(place)
            continue
        search = Search(reader, place)
        await search.run()
        problems += search.problems
        # Markdown files elsewhere are documents.
        flat = not paths or any(f"{place.root}/".endswith(f"/{base}/") for base in BASES)
        found = [each for each in search.found if each.is_folder or flat]
        if paths and not found and not search.problems:
            problems.append(f"{place.shown_root}SKILL.md:1: There is no such file.")
        files += found
    malformed = len(problems)
    for source in files:
        wrong = await _check(reader, source)
        malformed += bool(wrong)
        problems += [f"{source.where}:{each.line}: {each.sentence}" for each in wrong]
    console = make_console()
    for problem in problems:
        print_line(console, one_line(problem), BAD)
    print_line(console, f"{count(len(files), 'skill')} checked, {malformed or 'none'} malformed.")
    return 1 if problems else 0


def _place(path: str, bases: Sequence[str] = ("",)) -> Source | Tree:
    """Return a file, or a folder to search."""
    absolute = os.path.abspath(path)
    if not os.path.lexists(absolute):
        raise UsageError(f"No such file or folder: {path}")
    if os.path.isdir(absolute):
        return Tree("project", "project", absolute, bases, "" if path == "." else f"{path.rstrip('/')}/")
    in_place = any(os.path.dirname(absolute).endswith(f"/{base}") for base in BASES)
    if os.path.basename(absolute) in _DOCUMENTS or not (absolute.endswith(".md") or in_place):
        raise UsageError(f"{path} is not a skill: skills are files called SKILL.md, or Markdown files in {BASES[0]}.")
    return Source("project", "project", absolute, path)


async def _check(reader: HostReader, source: Source) -> Sequence[Malformed]:
    try:
        text = decode(await reader.read(source.path, MOST_BYTES))
    except Malformed as error:
        return [error]
    except AgentcoreError as error:
        return [Malformed(1, str(error))]
    return check_skill(text, source)
