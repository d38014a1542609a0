"""What ends the process ends it, with its code, wherever in a conversation it is raised."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import anyio
import psutil
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from warm_python import WarmPython

PROGRAM = Path(__file__).with_name("ended_program.py")


class Started:
    """Runs the program in a process of its own."""

    def __init__(self, warm: WarmPython, env: dict[str, str], cwd: Path) -> None:
        self._warm = warm
        self._env = env
        self._cwd = cwd

    async def ends_with(self, kind: str, backend: str) -> int:
        with anyio.fail_after(60):
            # Its words are of no interest here: what asyncio says of tasks that fail while it closes.
            done = await self._warm.run([str(PROGRAM), kind, backend], env=self._env, cwd=self._cwd)
        return done.returncode


@pytest.fixture
def started(warm: WarmPython, surroundings: dict[str, str], tmp_path: Path) -> Started:
    """Give what runs the program."""
    return Started(warm, surroundings, tmp_path)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("task", 6),
        ("body", 6),
        ("ask", 6),
        ("think", 6),
        ("watch", 6),
        ("child_exits", 6),
        ("interrupt", -signal.SIGINT),
        ("interrupt_in_thread", -signal.SIGINT),
    ],
)
def test_the_process_ends_with_its_code_on_asyncio(kind: str, code: int, started: Started) -> None:
    assert anyio.run(started.ends_with, kind, "asyncio") == code


@pytest.mark.parametrize(("kind", "code"), [("task", 6), ("ask", 6), ("interrupt", -signal.SIGINT)])
def test_the_process_ends_with_its_code_on_trio(kind: str, code: int, started: Started) -> None:
    assert anyio.run(started.ends_with, kind, "trio") == code


async def at_rest(process: psutil.Process) -> None:
    """Wait until a process waits at one place. What asyncio was at when the second signal comes may be left half done."""
    still, switches = 0, -1
    while still < 5:
        await anyio.sleep(0.02)
        before, switches = switches, process.num_ctx_switches().voluntary
        still = still + 1 if switches == before and process.status() == psutil.STATUS_SLEEPING else 0


async def interrupted_twice(cwd: Path) -> int:
    program = [sys.executable, str(PROGRAM), "hold", "asyncio"]
    with anyio.fail_after(60):
        async with await anyio.open_process(program, cwd=cwd, stderr=None) as process:
            assert process.stdout is not None
            said = BufferedByteReceiveStream(process.stdout)
            assert await said.receive_until(b"\n", 100) == b"held"
            process.send_signal(signal.SIGINT)
            assert await said.receive_until(b"\n", 100) == b"asked"
            await at_rest(psutil.Process(process.pid))
            process.send_signal(signal.SIGINT)
            return await process.wait()


@pytest.mark.slow  # it waits for the ten seconds that such a tool is given
def test_a_second_ctrl_c_ends_a_tool_that_shields_itself(tmp_path: Path) -> None:
    assert anyio.run(interrupted_twice, tmp_path) == -signal.SIGINT
