"""Jobs that are asked for twice have one result."""

from __future__ import annotations

import anyio
import pytest

from agentcore_serve.jobs import JobBook


async def test_whoever_asks_again_gets_what_the_first_one_came_to() -> None:
    book = JobBook[int]()
    gate, begun = anyio.Event(), anyio.Event()
    done: list[int] = []

    async def work() -> int:
        begun.set()
        await gate.wait()
        done.append(1)
        return 42

    results: list[int] = []

    async def ask() -> None:
        results.append(await book.do("job_1", work))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await begun.wait()
        tasks.start_soon(ask)
        gate.set()
    assert (results, done) == ([42, 42], [1])
    assert await book.do("job_1", work) == 42
    assert done == [1]


async def test_an_error_is_that_of_the_first_time_too() -> None:
    book = JobBook[int]()
    tries: list[int] = []

    async def work() -> int:
        tries.append(1)
        raise LookupError("once")

    for _ in range(2):
        with pytest.raises(LookupError, match="once"):
            await book.do("job_1", work)
    assert tries == [1]


async def test_one_that_was_cancelled_is_done_anew_by_who_waited() -> None:
    book = JobBook[int]()
    begun = anyio.Event()
    first = anyio.CancelScope()
    results: list[int] = []

    async def never() -> int:
        begun.set()
        await anyio.sleep_forever()
        return 0

    async def soon() -> int:
        return 7

    async def ask_first() -> None:
        with first:
            await book.do("job_1", never)

    async def ask_again() -> None:
        results.append(await book.do("job_1", soon))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask_first)
        await begun.wait()
        tasks.start_soon(ask_again)
        await anyio.lowlevel.checkpoint()
        first.cancel()
    assert results == [7]


async def test_the_oldest_are_forgotten() -> None:
    book = JobBook[int]()
    done: list[int] = []

    async def work() -> int:
        done.append(1)
        return len(done)

    for number in range(102):
        await book.do(f"job_{number}", work)
    assert await book.do("job_101", work) == 102
    assert await book.do("job_0", work) == 103
