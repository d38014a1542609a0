"""Cancelling at every checkpoint."""

from __future__ import annotations

import asyncio  # noqa: TID251  the loop's own task factory is what is at stake
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore.testing import CancelAttempt, cancel_at, cancel_everywhere


async def steps(log: list[object], count: int = 3) -> None:
    for step in range(count):
        await checkpoint()
        log.append(step)


async def family(log: list[object]) -> None:
    async def child(name: str) -> None:
        for step in range(2):
            await checkpoint()
            log.append((name, step))

    async with anyio.create_task_group() as group:
        group.start_soon(child, "a")
        group.start_soon(child, "b")
    log.append("done")


async def test_each_checkpoint_is_a_place_to_be_cancelled_at() -> None:
    seen: list[list[object]] = []
    assert repr(CancelAttempt(3)) == "CancelAttempt(n=3, reached=None)"
    for attempt in cancel_everywhere():
        log: list[object] = []
        assert await attempt(steps, log) == (attempt.n <= 3)
        seen.append(log)
    assert seen == [[], [], [0], [0, 1], [0, 1, 2]]
    nothing: list[object] = []
    assert await cancel_at(1, steps, nothing, 0) is False


async def test_the_checkpoints_of_all_its_tasks_are_counted_and_all_are_cancelled() -> None:
    most = attempts = 0
    for attempt in cancel_everywhere():
        log: list[object] = []
        reached = await attempt(family, log)
        assert ("done" in log) == (not reached or len(log) == 5)
        most = max(most, len(log))
        attempts += 1
    # Each child gives way twice, and their parent while it waits for them.
    assert attempts >= 6
    assert most == 5


def test_on_asyncio_the_same_n_is_the_same_place_each_time() -> None:
    async def main() -> None:
        for n in range(12):
            logs: list[list[object]] = [[], [], []]
            reached = [await cancel_at(n, family, log) for log in logs]
            assert logs[0] == logs[1] == logs[2]
            assert len(set(reached)) == 1

    anyio.run(main)


async def test_waiting_for_a_thread_is_one_checkpoint_however_long_it_takes() -> None:
    async def wait(seconds: float) -> None:
        await anyio.sleep(seconds)

    async def count(function: Callable[..., Awaitable[object]], *args: object) -> int:
        n = 1
        while await cancel_at(n, function, *args):
            n += 1
        return n - 1

    assert await count(wait, 0.001) == await count(wait, 0.02)
    assert await count(anyio.to_thread.run_sync, int) == await count(anyio.to_thread.run_sync, sum, range(300_000))


async def test_other_tasks_are_neither_counted_nor_cancelled() -> None:
    noise: list[object] = []

    async def neighbour() -> None:
        while True:
            await checkpoint()
            noise.append(None)

    async with anyio.create_task_group() as group:
        group.start_soon(neighbour)
        log: list[object] = []
        assert await cancel_at(4, steps, log) is False
        assert await cancel_at(2, steps, log) is True
        assert log == [0, 1, 2, 0]
        before = len(noise)
        await checkpoint()
        await checkpoint()
        assert len(noise) > before
        group.cancel_scope.cancel()


async def test_two_at_once_count_each_for_itself() -> None:
    results: dict[int, tuple[bool, list[object]]] = {}

    async def attempt(n: int) -> None:
        log: list[object] = []
        results[n] = (await cancel_at(n, steps, log), log)

    async with anyio.create_task_group() as group:
        for n in (4, 1, 3):
            group.start_soon(attempt, n)
    assert results == {1: (True, []), 3: (True, [0, 1]), 4: (False, [0, 1, 2])}


async def test_cleanup_that_is_shielded_is_not_cut_short() -> None:
    async def careful(log: list[object]) -> None:
        try:
            await checkpoint()
            await checkpoint()
        finally:
            with anyio.CancelScope(shield=True):
                await checkpoint()
                log.append("cleaned")

    for attempt in cancel_everywhere():
        log: list[object] = []
        await attempt(careful, log)
        assert log == ["cleaned"]


async def test_what_it_raises_is_raised() -> None:
    async def fails() -> None:
        await checkpoint()
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await cancel_at(5, fails)
    assert await cancel_at(1, fails) is True


async def test_results_and_errors_pass_through_tasks_that_are_watched() -> None:
    async def catches(log: list[object]) -> None:
        async def fails() -> None:
            await checkpoint()
            raise LookupError("mine")

        try:
            async with anyio.create_task_group() as group:
                group.start_soon(fails)
                group.start_soon(steps, log)
        except ExceptionGroup as errors:
            log.append(str(errors.exceptions[0]))

    log: list[object] = []
    await cancel_at(1_000, catches, log)
    assert log[-1] == "mine"


def test_the_task_factory_of_a_loop_is_given_back() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        made: list[object] = []

        def factory(loop: Any, coroutine: Any, **options: Any) -> Any:
            made.append(coroutine)
            return asyncio.Task(coroutine, loop=loop, **options)

        loop.set_task_factory(factory)
        log: list[object] = []
        await cancel_at(100, family, log)
        assert len(made) >= 2, "the one that was there makes the tasks"
        assert loop.get_task_factory() is factory
        loop.set_task_factory(None)
        await cancel_at(1, family, log)
        assert loop.get_task_factory() is None

    anyio.run(main)


def test_a_task_with_a_context_of_its_own_is_counted_by_that_context() -> None:
    async def work(context: Context) -> None:
        task = asyncio.get_running_loop().create_task(steps([]), context=context)
        await asyncio.wait([task])

    async def main() -> None:
        outside, inside = 0, 0
        while await cancel_at(outside + 1, work, Context()):
            outside += 1
        while await cancel_at(inside + 1, lambda: work(copy_context())):
            inside += 1
        assert inside == outside + 3

    anyio.run(main)


def test_a_task_that_is_cancelled_before_it_began_leaves_nothing_behind() -> None:
    async def work(log: list[object]) -> None:
        task = asyncio.get_running_loop().create_task(steps(log), name="mine")
        log.append((task.get_name(), "steps" in repr(task)))
        task.cancel()
        await asyncio.wait([task])

    log: list[object] = []
    assert anyio.run(cancel_at, 100, work, log) is False  # a coroutine that nobody awaited would be a warning
    assert log == [("mine", True)]


def test_a_function_that_is_thrown_away_is_closed() -> None:
    log: list[object] = []

    async def work() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            log.append("closed")

    async def main() -> None:
        steps_of_it = cancel_at(1_000, work)
        steps_of_it.send(None)
        steps_of_it.close()

    anyio.run(main)
    assert log == ["closed"]


async def test_a_loop_that_makes_no_attempt_and_what_never_ends_are_errors() -> None:
    with pytest.raises(RuntimeError, match="Attempt 0 was not made"):
        for _ in cancel_everywhere():
            pass

    async def forever() -> None:
        while True:
            await checkpoint()

    with pytest.raises(RuntimeError, match="not done at checkpoint 20"):
        for attempt in cancel_everywhere(most=20):
            await attempt(forever)
