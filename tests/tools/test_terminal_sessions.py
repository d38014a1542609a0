"""Several shells at once, each under its name."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from agentcore.errors import ToolError
from living import still_running
from opened_tool import Terminal, line_in, open_terminal


async def test_sessions_know_nothing_of_each_other(tmp_path: Path, terminal: Terminal) -> None:
    await terminal("mkdir sub; cd sub; A=1")
    other = await terminal("echo [$A]; pwd; cd /; A=2", session="other")
    assert (other.text, other.session, other.new_shell) == (f"[]\n{tmp_path}\n", "other", False)
    assert "; session other]" in str(other.to_content())
    assert (await terminal("echo $A; pwd")).text == f"1\n{tmp_path}/sub\n"
    assert (await terminal("echo $A; pwd", session="other")).text == "2\n/\n"


async def test_a_server_runs_in_one_session_while_another_is_worked_in(tmp_path: Path, hasty: Terminal) -> None:
    os.mkfifo(tmp_path / "requests")
    server = "exec 3<> requests; while read -u 3 line; do echo answering $line; done"
    assert (await hasty(server, session="server")).running
    assert (await hasty("echo one > requests; echo sent")).text == "sent\n"
    with anyio.fail_after(20):
        heard = ""
        while "answering one\n" not in heard:
            heard += (await hasty("", session="server")).text
    refused = await hasty("echo no", session="server")
    assert refused.problem == "still_running"
    assert (await hasty("C-c", is_input=True, session="server", timeout=60)).exit_code == 130


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
