"""A command that waits for input is reported at once, where the system tells that it does."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest

from agentcore.workspace import LocalWorkspace
from agentcore_tools.terminal.foreground import foreground_state
from opened_tool import Terminal, open_terminal
from rounds import some_quick

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Only Linux tells it.")

PYTHON = "python3 -S"


@pytest.mark.parametrize(
    "command",
    some_quick(
        [
            "read -p 'Overwrite? ' x; echo got $x",
            "read -e -p 'Overwrite? ' x; echo got $x",
            "printf 'Overwrite? '; sort | sed 's/^/got /'",
            f"""{PYTHON} -c 'print("got " + input("Overwrite? "))'""",
            f"""{PYTHON} -c 'open("/dev/tty", "w").write("Overwrite? "); print("got " + open("/dev/tty").readline())'""",
        ],
        5,
    ),
)
async def test_a_prompt_is_seen_long_before_the_command_counts_as_silent(tmp_path: Path, command: str) -> None:
    # A terminal that counts nothing as silent, so that only the prompt can be the reason.
    async with open_terminal(tmp_path, quiet=1000, input_quiet=1000) as terminal:
        seen = await terminal(command)
        assert (seen.running, seen.waits_for_input, seen.timed_out) == (True, True, None)
        assert str(seen.to_content()[0]).startswith("Overwrite? \n[Waiting for input.")
        answered = await terminal("y", is_input=True)
        if answered.running:
            answered = await terminal("C-d", is_input=True)
        assert answered.text.lstrip().startswith("got y\n")
        assert answered.exit_code == 0


async def test_each_prompt_of_a_program_is_seen_and_so_is_one_under_a_timeout(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, quiet=1000, input_quiet=1000) as terminal:
        seen = await terminal("read -p 'one? ' a; sleep 0.5; read -p 'two? ' b; echo $a$b", timeout=1000)
        assert (seen.text, seen.waits_for_input) == ("one? ", True)
        seen = await terminal("1", is_input=True, timeout=1000)
        assert (seen.text, seen.waits_for_input) == ("two? ", True)
        assert (await terminal("")).waits_for_input
        assert (await terminal("2", is_input=True)).text == "12\n"


@pytest.mark.parametrize(
    "command",
    some_quick(
        [
            "sleep 1000",
            "while :; do :; done",
            "sleep 1000 | cat",
            "cat < pipe",
            f"""{PYTHON} -c 'import socket; a, b = socket.socketpair(); a.recv(1)'""",
            f"""{PYTHON} -c 'import select; select.select([0], [], [], 1000)'""",
            f"""{PYTHON} -c '
import socket
a = socket.create_server(("127.0.0.1", 0)); socket.create_connection(a.getsockname()).recv(1)'""",
        ],
        7,
    ),
)
async def test_what_waits_for_anything_else_counts_as_silent(tmp_path: Path, command: str) -> None:
    async with open_terminal(tmp_path, quiet=1.5) as terminal:
        await terminal("mkfifo pipe")
        seen = await terminal(command)
        assert (seen.running, seen.waits_for_input, seen.timed_out) == (True, False, "quiet")
        assert (await terminal("C-c", is_input=True)).exit_code == 130


@pytest.mark.parametrize("command", some_quick(["suspend", "kill -STOP $$"], 2))
async def test_a_shell_that_is_stopped_is_reported(tmp_path: Path, command: str) -> None:
    async with open_terminal(tmp_path, quiet=1000) as terminal:
        for stopped in (await terminal(command), await terminal("echo more"), await terminal("")):
            assert (stopped.problem, stopped.running, stopped.is_error) == ("stopped", False, True)
            assert "The shell is stopped" in str(stopped.to_content()[0])
        assert (await terminal("echo new", reset=True)).text == "new\n"


async def test_what_cannot_be_found_out_is_not_known(tmp_path: Path, terminal: Terminal) -> None:
    async with LocalWorkspace(tmp_path) as workspace:
        assert await foreground_state(workspace, 0) is None
        async with workspace.open_process("sleep 1000") as process:
            assert await foreground_state(workspace, process.pid) is None
    # A workspace that is not open starts nothing that could look.
    with anyio.fail_after(30):
        assert await foreground_state(workspace, 1) is None
    assert (await terminal("true")).exit_code == 0
