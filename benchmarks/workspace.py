"""What a command's round trip through a workspace costs, against running it without anything around it."""

from __future__ import annotations

import resource
import tempfile

import anyio
from _report import Clock, Report, Settings, Spent, median, report

from agentcore import LocalWorkspace

COMMANDS = {"nothing": "true", "a_megabyte": "head -c 1000000 /dev/zero | tr '\\0' 'x'"}


def measure(settings: Settings) -> Report:
    """Measure each command."""
    found = Report("What does a command cost through LocalWorkspace, against a bare anyio.run_process?")
    anyio.run(measure_commands, settings, found)
    return found


async def measure_commands(settings: Settings, found: Report) -> None:
    """Run each command both ways, in turn."""
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        async with LocalWorkspace(folder) as workspace:
            for name, command in COMMANDS.items():
                through: list[Spent] = []
                bare: list[Spent] = []
                for _ in range(settings.pick(80, 1)):
                    clock, children = Clock(), of_children()
                    result = await workspace.run(command)
                    through.append(clock.read().plus_cpu(of_children() - children))
                    clock, children = Clock(), of_children()
                    process = await anyio.run_process(["/bin/bash", "-c", command], cwd=folder)
                    bare.append(clock.read().plus_cpu(of_children() - children))
                    assert result.exit_code == process.returncode == 0
                    assert len(result.stdout) == len(process.stdout)
                for unit in ("wall", "cpu"):
                    ours, theirs = (median([getattr(each, unit) for each in runs]) for runs in (through, bare))
                    found.tell(f"{name}_{unit}_ratio", ours / theirs)
                    found.tell(f"{name}_{unit}_ms", ours * 1e3)
                    found.tell(f"{name}_bare_{unit}_ms", theirs * 1e3)


def of_children() -> float:
    """Give the CPU of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    report(measure)
