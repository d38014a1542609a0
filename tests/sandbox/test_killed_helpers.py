"""Helpers that are killed in the middle of a call: whoever waits is told, nothing is left, and the next call has a new one."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync

from agentcore.errors import WorkspaceLost
from agentcore_sandbox.workspace import BoxWorkspace
from boxes_plain import CALLS, commands_below, left_over, open_stocked
from rounds import rounds, some_quick

Act = Callable[[BoxWorkspace, Path], Awaitable[None]]


async def find_helper(workspace: BoxWorkspace) -> int:
    return int((await workspace.run("echo $PPID")).stdout)


async def kill_in_the_middle(act: Act, folder: Path, moments: int) -> None:
    errors: list[WorkspaceLost | anyio.BrokenResourceError] = []

    async def call() -> None:
        try:
            await act(workspace, here)
        except (WorkspaceLost, anyio.BrokenResourceError) as error:
            errors.append(error)

    async with open_stocked(folder) as (workspace, here):
        await workspace.fence(5, "c")
        for moment in range(moments):
            errors.clear()
            with anyio.fail_after(60):
                helper = await find_helper(workspace)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(call)
                    with anyio.move_on_after((moment + 0.5) * 0.02):
                        await anyio.sleep_forever()
                    os.kill(helper, signal.SIGKILL)
                    with suppress(WorkspaceLost):
                        while await find_helper(workspace) == helper:
                            pass
                    assert await find_helper(workspace) != helper
                    tasks.cancel_scope.cancel()
                # Of calls one after the other, the death may fall between two: then the later one has the new helper.
                assert errors or act.__name__.endswith("_again")
                # What was served to something inside sees a connection that broke.
                assert [error.reason for error in errors if isinstance(error, WorkspaceLost)] in ([], ["exited"])
                # They were this helper's alone, and end with its stream.
                while await run_sync(commands_below, folder):
                    await anyio.sleep(0.01)
        assert left_over(folder / "here") == []


@pytest.mark.slow
@pytest.mark.parametrize("act", some_quick(CALLS, 5))
async def test_whoever_waits_is_told_and_the_next_call_has_a_new_helper(act: Act, tmp_path: Path) -> None:
    await kill_in_the_middle(act, tmp_path, 3)


@pytest.mark.slow
@pytest.mark.parametrize("act", CALLS)
async def test_ten_helpers_that_are_killed(act: Act, tmp_path: Path) -> None:
    await kill_in_the_middle(act, tmp_path, rounds(10))


@pytest.mark.slow
async def test_a_program_that_is_killed_leaves_no_helper_and_no_command(
    tmp_path: Path, surroundings: dict[str, str]
) -> None:
    program = """
import sys, anyio
from pathlib import Path
from boxes_plain import open_plain

async def main():
    async with open_plain(Path(sys.argv[1])) as workspace:
        async with workspace.open_process("echo $PPID >helper; setsid sleep 1000 & echo; exec sleep 1000") as process:
            await process.receive()
            print("up", flush=True)
            await process.wait()

anyio.run(main)
"""
    tests = str(Path(__file__).parents[1])
    variables = {**surroundings, "PYTHONPATH": f"{surroundings['PYTHONPATH']}:{tests}"}
    with anyio.fail_after(60):
        command = [sys.executable, "-c", program, str(tmp_path)]
        async with await anyio.open_process(command, env=variables, stderr=None) as process:
            assert process.stdout is not None
            await process.stdout.receive()
            helper = int((tmp_path / "project" / "helper").read_text())
            assert len(await run_sync(commands_below, tmp_path)) >= 2
            process.kill()
        while await run_sync(commands_below, tmp_path) or Path(f"/proc/{helper}").exists():
            await anyio.sleep(0.01)
