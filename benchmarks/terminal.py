"""What a command costs in the agent's terminal, against a shell of its own, and how fast output comes through."""

from __future__ import annotations

import tempfile
from typing import Any, cast

import anyio
from _report import Clock, Report, Settings, Spent, median, report

from agentcore import Agent, Conversation, LocalWorkspace, ObservationEvent
from agentcore.secrets import SecretRegistry
from agentcore.testing import ScriptedLLM, call, say
from agentcore.tools import ToolContext
from agentcore_tools import TerminalAction, terminal_tool

MEGABYTES = 10
LINE = "a line of output, as a build writes them, of some eighty characters or so ...."


def measure(settings: Settings) -> Report:
    """Measure the round trip, then the output."""
    found = Report(
        "What does a command cost in the terminal, against a bare subprocess, and how fast does output come?"
    )
    anyio.run(measure_round_trips, settings, found)
    anyio.run(measure_output, settings, found)
    return found


async def measure_round_trips(settings: Settings, found: Report) -> None:
    """Run `true` in an open shell and in a new process, in turn."""
    ours: list[Spent] = []
    bare: list[Spent] = []
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        async with LocalWorkspace(folder) as workspace:
            context = ToolContext(
                workspace=workspace,
                secrets=SecretRegistry(),
                conversation_id="conversation",
                action_id="action",
                call_id="call",
                tool_name="terminal",
                # A command that writes nothing asks nothing of it.
                host=cast("Any", None),
            )
            async with terminal_tool().open_executor(workspace, "conversation") as execute:
                await execute(TerminalAction(command="true"), context)
                for _ in range(settings.pick(200, 1)):
                    clock = Clock()
                    observation = await execute(TerminalAction(command="true"), context)
                    ours.append(clock.read())
                    assert observation.exit_code == 0
                    clock = Clock()
                    await anyio.run_process(["/bin/bash", "-c", "true"], cwd=folder)
                    bare.append(clock.read())
    through, alone = (median([each.wall for each in runs]) for runs in (ours, bare))
    found.hold("true_wall_ms", through * 1e3, at_most=3)
    found.tell("true_cpu_ms", median([each.cpu for each in ours]) * 1e3)
    found.tell("true_bare_wall_ms", alone * 1e3)
    found.hold("true_wall_ratio", through / alone, at_most=1)


async def measure_output(settings: Settings, found: Report) -> None:
    """Write many lines, in a conversation that keeps them on disk, and to a terminal that is read and nothing else."""
    size = settings.pick(MEGABYTES, 1) << 20
    command = f"yes '{LINE}' | head -c {size}"
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        ours: list[Spent] = []
        bare: list[Spent] = []
        for _ in range(settings.pick(5, 1)):
            llm = ScriptedLLM([call("terminal", command=command), say("ok")])
            async with Conversation(Agent(llm=llm, tools=[terminal_tool()]), folder) as conversation:
                clock = Clock()
                await conversation.run("Write.")
                ours.append(clock.read())
                (told,) = [event for event in conversation.state.events if isinstance(event, ObservationEvent)]
                assert told.data["exit_code"] == 0
            async with LocalWorkspace(folder) as workspace:
                clock = Clock()
                async with workspace.open_process(command, pty=True) as process:
                    try:
                        while True:
                            await process.receive()
                    except anyio.EndOfStream:
                        bare.append(clock.read())
    for unit in ("wall", "cpu"):
        through, alone = (median([getattr(each, unit) for each in runs]) for runs in (ours, bare))
        found.tell(f"output_{unit}_ms", through * 1e3)
        found.tell(f"output_{unit}_ratio", through / alone)
    found.tell("output_megabytes", size / 2**20)


if __name__ == "__main__":
    report(measure)
