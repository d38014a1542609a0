"""A program that is killed leaves nothing of what it started, though it can end nothing itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import psutil
import pytest

from agentcore.workspace import LocalWorkspace
from agentcore.workspace.reap import end_all
from agentcore.workspace.reaper import REAPER
from living import still_running

AGENT = """
    import sys
    import anyio
    from agentcore.workspace import LocalWorkspace

    STUBBORN = "trap '' TERM HUP INT; echo $BASHPID >>pids; while :; do sleep 0.1; done"

    async def main():
        async with LocalWorkspace() as workspace, anyio.create_task_group() as tasks:
            tasks.start_soon(workspace.run, STUBBORN)
            async with workspace.open_process(["bash", "--norc", "-i"], pty=True) as shell:
                await shell.send(b"echo $$ >>pids; nohup sleep 1000 & echo $! >>pids\\n")
                await shell.send(b"(setsid sleep 1000 & echo $! >>pids; wait) &\\n")
                await shell.send(f"bash -c \\"{STUBBORN.replace('$', chr(92) + '$')}\\"\\n".encode())
                while True:
                    await shell.receive()

    anyio.run(main, backend=sys.argv[1])
"""


@pytest.fixture
def children() -> Iterator[list[int]]:
    pids: list[int] = []
    yield pids
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_killed_at_once_a_program_leaves_nothing_it_started(
    tmp_path: Path, surroundings: dict[str, str], children: list[int]
) -> None:
    (tmp_path / "agent.py").write_text(textwrap.dedent(AGENT))
    with subprocess.Popen([sys.executable, "agent.py", "asyncio"], cwd=tmp_path, env=surroundings) as agent:
        try:
            deadline = time.monotonic() + 60
            while len(children) < 5:
                assert time.monotonic() < deadline
                time.sleep(0.01)
                if (tmp_path / "pids").exists():
                    children[:] = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
            children += [child.pid for child in psutil.Process(agent.pid).children(recursive=True)]
            assert still_running(*children) == children
        finally:
            agent.kill()
    deadline = time.monotonic() + 30
    while left := still_running(*children):
        assert time.monotonic() < deadline, left
        time.sleep(0.01)


def guards() -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for child in psutil.Process().children():
        # A process of some other test may be over, and not waited for yet.
        with suppress(psutil.NoSuchProcess):
            if "agentcore-guard" in child.cmdline():
                found.append(child)
    return found


async def test_there_is_one_guard_while_a_workspace_that_started_something_is_open(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with LocalWorkspace(tmp_path) as idle:
            assert guards() == []
            async with LocalWorkspace(tmp_path) as one, LocalWorkspace(tmp_path) as other:
                await one.run("true")
                (guard,) = guards()
                await other.run("true")
                assert guards() == [guard]
            assert guards() == []
            await idle.run("true")
            assert len(guards()) == 1
        assert guards() == []


async def test_all_that_a_program_starts_has_its_mark(tmp_path: Path) -> None:
    async with LocalWorkspace(tmp_path) as workspace:
        assert f"{REAPER.mark}:" in (await workspace.run("echo $AGENTCORE_PROCESSES")).stdout


def test_only_what_has_the_mark_is_ended() -> None:
    def start(marks: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["sleep", "1000"], env={"AGENTCORE_TEST_MARKS": marks, "PATH": os.environ["PATH"]})

    with start("outer:0123abcd:inner") as marked, start("outer:4567cdef") as other:
        try:
            end_all("AGENTCORE_TEST_MARKS", "0123abcd")
            assert marked.wait(30) == -signal.SIGTERM
            assert other.poll() is None
        finally:
            other.kill()
            marked.kill()
