"""Several shells at once, each under its name."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from agentcore.errors import ToolError
from living import still_running
from opened_tool import Terminal, line_in, open_terminal


async def test_calls_in_different_sessions_run_at_once(tmp_path: Path, terminal: Terminal) -> None:
    os.mkfifo(tmp_path / "there")
    os.mkfifo(tmp_path / "back")
    async with anyio.create_task_group() as tasks:
        # Each waits for the other.
        tasks.start_soon(lambda: terminal("echo a > there; read x < back; echo $x", session="a"))
        tasks.start_soon(lambda: terminal("read x < there; echo b > back; echo $x", session="b"))


async def test_cancelling_a_call_ends_what_runs_in_its_session_alone(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, quiet=0.3) as terminal:
        await terminal("echo $BASHPID > one; exec sleep 1000", session="one")
        one, two = int(await line_in(tmp_path / "one")), 0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: terminal("bash -c 'echo $$ > two; exec sleep 1000'", session="two", timeout=600))
            two = int(await line_in(tmp_path / "two"))
            tasks.cancel_scope.cancel()
        assert still_running(one, two) == [one]
    assert still_running(one, two) == []


async def test_there_are_so_many_sessions_and_one_that_has_ended_makes_room(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, sessions=2) as terminal:
        await terminal("A=1")
        await terminal("true", session="two")
        with pytest.raises(ToolError, match="'default', 'two'"):
            await terminal("true", session="three")
        assert (await terminal("exit 0", session="two", timeout=60)).shell_ended
        assert (await terminal("echo three", session="three")).text == "three\n"
        with pytest.raises(ToolError, match="2 sessions are open"):
            await terminal("true", session="two")
        assert (await terminal("echo $A")).text == "1\n"


async def test_a_session_whose_command_is_running_is_closed_by_a_reset(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, quiet=0.3, sessions=1) as terminal:
        await terminal("sleep 1000", session="one")
        assert (await terminal("exit 0", session="one", reset=True, timeout=60)).shell_ended
        assert (await terminal("echo two", session="two")).text == "two\n"


async def test_what_would_look_at_a_session_that_was_never_used_opens_none(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, sessions=1) as terminal:
        assert (await terminal("", session="one")).problem == "nothing_running"
        assert (await terminal("echo two", session="two")).text == "two\n"
