from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync
from hypothesis import given
from hypothesis import strategies as st

from agentcore.workspace import LocalWorkspace
from agentcore.workspace.process_table import (
    ProcessInfo,
    descendants,
    gather,
    read_by_psutil,
    read_from_proc,
    snapshot,
    tree_members,
)


def seen(parent: int, group: int, session: int, *marks: bytes) -> ProcessInfo:
    return ProcessInfo(parent, group, session, 1.0, marks)


def test_descendants_are_found_by_mark_by_session_and_by_parent() -> None:
    processes = {
        100: seen(50, 100, 100, b"m"),
        101: seen(100, 101, 100, b"m"),
        102: seen(1, 102, 102, b"outer", b"m"),  # setsid, and its parent is gone
        103: seen(1, 103, 102),  # in that session, without an environment
        104: seen(101, 104, 104),  # setsid without an environment, but its parent is there
        105: seen(104, 105, 105),
        200: seen(50, 200, 200, b"other"),
        201: seen(1, 201, 201, b"mm"),
    }
    assert tree_members(processes, 100, b"m") == {100, 101, 102, 103, 104, 105}
    assert tree_members(processes, None, b"other") == {200}
    assert tree_members(processes, 300, b"none") == set()


def test_offspring_are_found_by_parent_and_by_the_sessions_they_made() -> None:
    processes = {
        100: seen(50, 100, 100),
        101: seen(100, 101, 100),  # the job
        102: seen(101, 102, 102),  # its child, which called setsid
        103: seen(1, 102, 102),  # forked by that, and left
        110: seen(100, 110, 100),  # another job in the same session
    }
    assert descendants(processes, [101, 999]) == {101, 102, 103}


@st.composite
def process_tables(draw: st.DrawFn) -> tuple[dict[int, ProcessInfo], int]:
    pids = [1, os.getpid(), os.getsid(0), *range(500_001, 500_012)]
    some = st.sampled_from([0, *pids])
    marks = st.lists(st.sampled_from([b"m", b"n"]), max_size=2).map(tuple)
    table = {pid: ProcessInfo(draw(some), draw(some), draw(some), 1.0, draw(marks)) for pid in pids}
    return table, draw(st.sampled_from(pids[3:]))


@given(process_tables())
def test_whatever_is_marked_this_program_is_never_part_of_it(drawn: tuple[dict[int, ProcessInfo], int]) -> None:
    table, root = drawn
    for found in (tree_members(table, root, b"m"), descendants(table, table)):
        assert not found & {0, 1, os.getpid()}
        assert found <= table.keys()


@given(process_tables())
def test_a_descendants_child_is_a_descendant(drawn: tuple[dict[int, ProcessInfo], int]) -> None:
    table, root = drawn
    found = tree_members(table, root, b"m")
    assert {pid for pid, each in table.items() if each.parent in found} - {0, 1, os.getpid()} <= found


def test_a_child_is_seen_whose_parent_ended_while_others_were_looked_at() -> None:
    # Each, when it is looked at, has just forked and ended; the last one lives.
    running = [1]

    def read(pid: int) -> ProcessInfo | None:
        if pid == 5:
            return seen(0, 5, 5)
        running.remove(pid)
        running.append(pid + 1)
        return None

    assert set(gather(lambda: list(running), read)) == {5}


async def test_both_ways_to_look_see_the_same(tmp_path: Path) -> None:
    # The name of a program may hold what separates the fields of /proc/PID/stat.
    odd = tmp_path / "a) Z 1 (b"
    odd.write_text("#!/bin/sh\necho up; read -r line\n")
    odd.chmod(0o755)
    async with LocalWorkspace(tmp_path) as workspace, workspace.open_process([str(odd)]) as process:
        with anyio.fail_after(30):
            await process.receive()
        in_proc, by_psutil = await run_sync(read_from_proc), await run_sync(read_by_psutil)
        here = in_proc[process.pid]
        assert (here.parent, here.group, here.session) == (os.getpid(), process.pid, process.pid)
        assert len(here.marks) == 2  # of this program, and of the process
        assert 0 <= here.age < 60
        assert by_psutil[process.pid][:3] == here[:3]
        assert by_psutil[process.pid].marks == here.marks
        assert abs(by_psutil[process.pid].age - here.age) < 5


async def test_a_process_that_has_ended_is_not_seen_though_nobody_collected_it(tmp_path: Path) -> None:
    async with LocalWorkspace(tmp_path) as workspace, workspace.open_process("exit 3") as process:
        with anyio.fail_after(30):
            assert await process.wait() == 3
        assert await anyio.Path(f"/proc/{process.pid}/stat").exists()
        assert process.pid not in await run_sync(read_from_proc)
        assert process.pid not in await run_sync(read_by_psutil)


async def test_a_census_is_shared_by_those_who_asked_before_it_began() -> None:
    answers: list[Mapping[int, ProcessInfo]] = []

    async def ask() -> None:
        answers.append(await snapshot())

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(ask)
    assert len(answers) == 50
    assert len({id(answer) for answer in answers}) <= 2


@pytest.mark.slow
async def test_a_census_shows_what_was_started_before_it_was_asked_for(tmp_path: Path) -> None:
    async def start_and_look() -> None:
        async with workspace.open_process(["sleep", "1000"]) as process:
            assert process.pid in await snapshot()

    with anyio.fail_after(60):
        async with LocalWorkspace(tmp_path) as workspace, anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(start_and_look)


@pytest.mark.slow
async def test_a_process_that_is_just_replacing_its_program_is_known(tmp_path: Path) -> None:
    """For a moment it has no environment; a look that came then would take it for a stranger."""

    def look_often() -> list[ProcessInfo]:
        return [read_from_proc()[process.pid] for _ in range(100)]

    async with LocalWorkspace(tmp_path) as workspace:
        await workspace.write("again", "exec bash again")
        with anyio.fail_after(60):
            async with workspace.open_process("exec bash again") as process:
                looks = await run_sync(look_often)
    # On a machine that is busy enough it stays in that state for a second, which is said.
    assert {len(each.marks) for each in looks if not each.uncertain} == {2}
