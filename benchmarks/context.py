"""What a step costs more with five project files and 50 skills, where nothing happens that calls for others.

The conversations take turns, and the best of several runs counts: the rest is what else the machine does. Opening the
sources, which is done once, is told apart.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import anyio
from _agents import QuickModel, agent_of
from _report import Clock, Report, Settings, report
from anyio.lowlevel import checkpoint

from agentcore import AgentContext, Conversation, Limits, MemoryStore, Message, ProjectFiles, Skills

WARM: Final = 3
"""Steps that are not counted: the sources are opened in the first one."""


def measure(settings: Settings) -> Report:
    """Measure both."""
    found = Report("What does a step cost more with five project files and 50 skills, where nothing happens?")
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        write_project(Path(folder))
        anyio.run(compare, settings, found, folder)
    return found


def write_project(folder: Path) -> None:
    """Write the files and the skills."""
    (folder / ".git").mkdir()
    (folder / ".github").mkdir()
    for name in ("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".cursorrules", ".github/copilot-instructions.md"):
        (folder / name).write_text(f"# {name}\n\n{'A rule of the project. ' * 150}\n", encoding="utf-8")
    for number in range(50):
        skill = folder / ".agents" / "skills" / f"skill-{number}"
        skill.mkdir(parents=True)
        triggers = f"triggers: [word{number}]\n" if number % 2 else ""
        text = (
            f"---\nname: skill-{number}\ndescription: How to do task {number}.\n{triggers}---\n\n{'Do it so. ' * 200}\n"
        )
        (skill / "SKILL.md").write_text(text, encoding="utf-8")


async def compare(settings: Settings, found: Report, folder: str) -> None:
    """Take turns."""
    steps = settings.pick(100, 4)
    plain: list[float] = []
    with_parts: list[float] = []
    openings: list[float] = []
    context = AgentContext(sources=(ProjectFiles(), Skills(user=False, packages=False)))
    for number in range(settings.pick(14, 1)):
        turns = [(plain, None), (with_parts, context)]
        for figures, each in turns if number % 2 else reversed(turns):
            gc.collect()
            opening, step = await cpu_of_steps(each, steps, folder)
            figures.append(step)
            if each is not None:
                openings.append(opening)
    found.hold("step_with_files_and_skills_to_without_cpu_ratio", min(with_parts) / min(plain), 1.1)
    found.tell("step_without_cpu_ms", min(plain) * 1e3)
    found.tell("step_with_files_and_skills_cpu_ms", min(with_parts) * 1e3)
    found.tell("first_steps_with_files_and_skills_cpu_ms", min(openings) * 1e3)


async def cpu_of_steps(context: AgentContext | None, steps: int, folder: str) -> tuple[float, float]:
    """Give the CPU of the first steps together, and of one of the others."""
    clocks = [Clock()]
    requests = 0

    async def on_request(messages: Sequence[Message]) -> None:  # noqa: ARG001 it counts
        nonlocal requests
        await checkpoint()
        requests += 1
        if requests == WARM:
            clocks.append(Clock())

    agent = replace(agent_of(QuickModel(steps + WARM, on_request=on_request)), context=context)
    async with Conversation(agent, folder, store=MemoryStore(), limits=Limits(steps=None)) as conversation:
        await conversation.run("Find where the price is rounded.")
        first, others = clocks
        return first.read().cpu - others.read().cpu, others.read().cpu / steps


if __name__ == "__main__":
    report(measure)
