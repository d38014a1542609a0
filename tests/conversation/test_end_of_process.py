"""What ends the process ends it, with its code, wherever in a conversation it is raised."""

from __future__ import annotations

import signal
from pathlib import Path

import anyio
import psutil
import pytest

from programs import start_python
from rounds import some_quick

PROGRAM = Path(__file__).with_name("ended_program.py")


EXITS = ["task", "body", "ask", "think", "watch", "child_exits"]
INTERRUPTS = ["interrupt", "interrupt_in_thread"]
BOTH = [*((kind, "asyncio") for kind in EXITS + INTERRUPTS), ("task", "trio"), ("ask", "trio"), ("interrupt", "trio")]


async def run_in_turn(env: dict[str, str], cwd: Path, *each: tuple[str, str]) -> tuple[list[str], int]:
    """Run these in one process, of which the last ends it; return how the others ended, and the process's code."""
    async with start_python(PROGRAM, *(word for pair in each for word in pair), env=env, cwd=cwd) as program:
        lines = [line for line in await program.rest() if line.startswith("ended ")]
        return lines, await program.wait()


@pytest.mark.parametrize(("last", "code"), some_quick([("ask", 6), ("interrupt_in_thread", -signal.SIGINT)], 2))
def test_the_process_ends_with_its_code(last: str, code: int, surroundings: dict[str, str], tmp_path: Path) -> None:
    others = BOTH if last == "ask" else []
    lines, ended = anyio.run(run_in_turn, surroundings, tmp_path, *others, (last, "asyncio"))
    assert lines == [
        f"ended {kind} {backend}: {'KeyboardInterrupt()' if kind in INTERRUPTS else 'SystemExit(6)'}"
        for kind, backend in others
    ]
    assert ended == code


async def at_rest(process: psutil.Process) -> None:
    """Wait until a process waits at one place. What asyncio was at when the second signal comes may be left half done."""
    still, switches = 0, -1
    while still < 5:
        await anyio.sleep(0.02)
        before, switches = switches, process.num_ctx_switches().voluntary
        still = still + 1 if switches == before and process.status() == psutil.STATUS_SLEEPING else 0


async def interrupted_twice(env: dict[str, str], cwd: Path) -> int:
    async with start_python(PROGRAM, "hold", "asyncio", env=env, cwd=cwd) as program:
        assert await program.line() == "held"
        program.process.send_signal(signal.SIGINT)
        assert await program.line() == "asked"
        await at_rest(psutil.Process(program.process.pid))
        program.process.send_signal(signal.SIGINT)
        return await program.wait()


@pytest.mark.slow  # it waits for the ten seconds that such a tool is given
def test_a_second_ctrl_c_ends_a_tool_that_shields_itself(surroundings: dict[str, str], tmp_path: Path) -> None:
    assert anyio.run(interrupted_twice, surroundings, tmp_path) == -signal.SIGINT
