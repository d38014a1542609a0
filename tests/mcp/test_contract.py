"""What holds for every toolset holds for a server; and it is opened and left as often as one likes."""

from __future__ import annotations

import asyncio  # noqa: TID251  its own kind of cancellation is what a test is about
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from agentcore.mcp import MCPToolset, register_mcp_server
from agentcore.testing import ToolsetContract, cancel_everywhere
from mcp_opened import opened, program
from rounds import rounds


class TestStdio(ToolsetContract):
    secrets = ("KEY",)

    @pytest.fixture
    def toolset(self) -> MCPToolset:
        server = program("raw", env={"KEY": "${KEY}"})
        register_mcp_server(server)
        return MCPToolset(server)


def processes() -> set[int]:
    """Find the children of this process that live."""
    found: set[int] = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and fields[0] != "Z":
            found.add(int(entry.parent.name))
    return found


@pytest.fixture
def no_process_is_left() -> Iterator[None]:
    """Look for servers that outlived the test."""
    yield
    left = [pid for pid in processes() if b"servers/raw.py" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert not left


@pytest.mark.usefixtures("no_process_is_left")
async def test_a_call_that_is_cancelled_anywhere_leaves_a_server_that_works(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path, seconds=300) as it:

        async def call() -> None:
            await it.call("echo", text="a")

        for attempt in cancel_everywhere():
            await attempt(call)
        assert await it.text("echo", text="still here") == "still here"


async def test_a_thousand_calls_that_are_cancelled_leave_a_server_that_works(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        async with anyio.create_task_group() as tasks:
            for _ in range(1_000):
                tasks.start_soon(it.call, "hang")
            while len(it.host.shown) < 50:  # as many as are remembered
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        assert await it.text("echo", text="still here") == "still here"


@pytest.mark.usefixtures("no_process_is_left")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_calls_and_openings_that_asyncio_itself_cancels_leave_nothing(tmp_path: Path) -> None:
    async def hold(tell: anyio.Event) -> None:
        async with opened(program("raw"), tmp_path):
            tell.set()
            await anyio.sleep_forever()

    async with opened(program("raw"), tmp_path) as it:
        calls = [asyncio.create_task(it.call("hang")) for _ in range(100)]
        while len(it.host.shown) < 50:
            await anyio.lowlevel.checkpoint()
        for call in calls:
            call.cancel()
        ended = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in ended)
        assert await it.text("echo", text="still here") == "still here"
    for ticks in (0, 1, 5, 20, 100, 500, None):
        is_open = anyio.Event()
        holding = asyncio.create_task(hold(is_open))
        if ticks is None:
            await is_open.wait()
        for _ in range(ticks or 0):
            await asyncio.sleep(0)
        holding.cancel()
        await asyncio.wait([holding])
        assert holding.cancelled()


@pytest.mark.usefixtures("no_process_is_left")
@pytest.mark.parametrize("cycles", [5, pytest.param(rounds(500), marks=pytest.mark.slow)], ids=["few", "many"])
async def test_a_server_is_opened_and_left_in_every_way_and_leaves_nothing(tmp_path: Path, cycles: int) -> None:
    async def cycle(number: int) -> None:
        async with opened(program("raw"), tmp_path, seconds=300) as it:
            match number % 5:
                case 0:
                    await it.call("echo", text="a")
                case 1:
                    with anyio.CancelScope() as scope:
                        async with anyio.create_task_group() as tasks:
                            for _ in range(20):
                                tasks.start_soon(it.call, "hang")
                            await it.call("echo", text="a")
                            scope.cancel()
                case 2:
                    with pytest.raises(Exception, match="something broke"):
                        await it.call("die")
                case 3:
                    with pytest.raises(ZeroDivisionError):
                        raise ZeroDivisionError
                case _:
                    pass

    async def worker(begin: int) -> None:
        for number in range(begin, cycles, 5):
            await cycle(number)

    async with anyio.create_task_group() as tasks:
        for begin in range(5):
            tasks.start_soon(worker, begin)


@pytest.mark.usefixtures("no_process_is_left")
async def test_an_error_of_the_one_that_holds_it_is_raised_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with opened(program("raw"), tmp_path):
            raise ZeroDivisionError


async def test_nothing_of_mcp_is_imported_before_a_server_is_opened() -> None:
    program = "import agentcore.mcp, sys; print([name for name in ('mcp', 'httpx2', 'starlette', 'uvicorn') if name in sys.modules])"
    found = await anyio.run_process([sys.executable, "-c", program])
    assert found.stdout == b"[]\n"
