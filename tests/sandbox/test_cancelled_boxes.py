"""Calls that are cancelled at random moments: nothing is left of them, and the workspace is as good as new."""

from __future__ import annotations

import asyncio  # noqa: TID251 - one test cancels as only asyncio does
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync

from agentcore_sandbox.workspace import BoxWorkspace
from boxes_plain import CALLS, commands_below, left_over, open_stocked
from rounds import rounds

_LONGEST = 0.06
"""Seconds until a call is cancelled, at most: all of them are at work then."""

Cancel = Callable[[Callable[[], Awaitable[None]], float], Awaitable[None]]


async def by_scope(call: Callable[[], Awaitable[None]], seconds: float) -> None:
    """Cancel a call by a scope, as anyio does."""
    with anyio.move_on_after(seconds) as scope:
        await call()
    assert scope.cancelled_caught


async def by_asyncio_itself(call: Callable[[], Awaitable[None]], seconds: float) -> None:
    """Cancel a call as `asyncio.timeout` and `Task.cancel` do, which no shield keeps out."""

    async def run() -> None:
        await call()

    task = asyncio.create_task(run())
    await asyncio.wait([task], timeout=seconds)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def cancel_calls(folder: Path, cancel: Cancel, times: int, *, at_once: bool) -> None:
    """Cancel each kind of call in turn, and look for what is left."""
    choose = random.Random(times)
    # What is made once in a process is made before it is counted.
    async with open_stocked(folder / "warm") as (workspace, _):
        await workspace.run("true")
    tasks_before, files_before = len(anyio.get_running_tasks()), len(os.listdir("/dev/fd"))
    async with open_stocked(folder) as (workspace, here):
        inside = await count_open_files(workspace)
        for number in range(times):
            act = CALLS[number % len(CALLS)]
            with anyio.fail_after(60):
                await cancel(lambda act=act: act(workspace, here), choose.uniform(0, _LONGEST))
                while await run_sync(commands_below, folder):
                    assert not at_once, f"{act.__name__} left a process"
                    await anyio.sleep(0.01)
                assert (await workspace.run("echo fine")).stdout == "fine\n"
        # Leaving a file without waiting for that is fine, as long as it happens.
        with anyio.fail_after(30):
            while left_over(folder) or await count_open_files(workspace) != inside:
                await anyio.sleep(0.01)
    assert len(anyio.get_running_tasks()) == tasks_before
    assert len(os.listdir("/dev/fd")) <= files_before


async def count_open_files(workspace: BoxWorkspace) -> str:
    """Return how many files the helper has open."""
    return (await workspace.run("ls /proc/$PPID/fd | wc -l")).stdout


@pytest.mark.slow
async def test_a_cancelled_call_leaves_nothing(tmp_path: Path) -> None:
    await cancel_calls(tmp_path, by_scope, 10, at_once=True)


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_call_that_asyncio_itself_cancels_leaves_nothing(tmp_path: Path) -> None:
    await cancel_calls(tmp_path, by_asyncio_itself, 10, at_once=False)


@pytest.mark.slow
async def test_three_hundred_cancelled_calls_leave_nothing(tmp_path: Path) -> None:
    await cancel_calls(tmp_path, by_scope, rounds(300), at_once=True)


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_three_hundred_calls_that_asyncio_itself_cancels_leave_nothing(tmp_path: Path) -> None:
    await cancel_calls(tmp_path, by_asyncio_itself, rounds(300), at_once=False)
