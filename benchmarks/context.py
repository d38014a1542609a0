"""What a step costs more with five parts of context, where nothing happens that calls for others.

The conversations take turns, and the best of several runs counts: the rest is what else the machine does.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass, replace

import anyio
from _agents import QuickModel, agent_of
from _report import Clock, Report, Settings, report
from anyio.lowlevel import checkpoint

from agentcore import AgentContext, Conversation, Limits, MemoryStore
from agentcore.context import ContextPart, Happened, SourceContext


@dataclass(frozen=True)
class FiveParts:
    """Five project files of a few kilobytes each."""

    name: str = "five parts"
    problems: Sequence[str] = ()

    @property
    def parts(self) -> Sequence[ContextPart]:
        """The parts, made once for each conversation."""
        return [
            ContextPart(f"file:{number}.md", f"# {number}.md\n\n{'A rule of the project. ' * 150}")
            for number in range(5)
        ]

    async def open(self, context: SourceContext) -> FiveParts:  # noqa: ARG002 it reads nothing
        """Return itself."""
        await checkpoint()
        return self

    async def follow(self, happened: Happened) -> Sequence[ContextPart]:  # noqa: ARG002
        """Return nothing."""
        await checkpoint()
        return ()

    def record(self) -> None:
        """Return None: it can't be written down."""


def measure(settings: Settings) -> Report:
    """Measure both."""
    found = Report("What does a step cost more with five parts of context, where nothing happens?")
    anyio.run(compare, settings, found)
    return found


async def compare(settings: Settings, found: Report) -> None:
    """Take turns."""
    steps = settings.pick(100, 4)
    plain: list[float] = []
    with_parts: list[float] = []
    context = AgentContext(sources=(FiveParts(),))
    for number in range(settings.pick(28, 1)):
        turns = [(plain, None), (with_parts, context)]
        for figures, each in turns if number % 2 else reversed(turns):
            gc.collect()
            figures.append(await cpu_of_step(each, steps))
    found.hold("step_with_five_parts_to_without_cpu_ratio", min(with_parts) / min(plain), 1.1)
    found.tell("step_without_cpu_ms", min(plain) * 1e3)
    found.tell("step_with_five_parts_cpu_ms", min(with_parts) * 1e3)


async def cpu_of_step(context: AgentContext | None, steps: int) -> float:
    """Give the CPU of a step in a conversation of so many, opening included."""
    agent = replace(agent_of(QuickModel(steps)), context=context)
    async with Conversation(agent, store=MemoryStore(), limits=Limits(steps=None)) as conversation:
        clock = Clock()
        await conversation.run("Find where the price is rounded.")
        return clock.read().cpu / steps


if __name__ == "__main__":
    report(measure)
