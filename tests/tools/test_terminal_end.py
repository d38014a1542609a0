"""Stopping: a call that is cancelled leaves nothing of its command, and a terminal that is closed leaves nothing at all."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from agentcore.errors import ToolError
from agentcore.workspace import process_tree
from agentcore_tools.terminal import shell
from agentcore_tools.terminal.protocol import command_lines
from living import send_signal, still_running, until_gone
from opened_tool import Terminal, line_in, open_terminal
from rounds import some_quick

STUBBORN = """
trap '' INT TERM HUP
echo $BASHPID >> pids
setsid bash -c 'echo $$ >> pids; exec sleep 1000' &
(setsid bash -c "trap '' TERM; echo \\$\\$ >> pids; while :; do sleep 0.1; done" &)
python3 -c '
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGINT, signal.SIG_IGN)
with open("pids", "a") as file: print(os.getpid(), file=file)
time.sleep(1000)'
"""


async def cancelled(terminal: Terminal, command: str, begun: Path, lines: int = 1) -> float:
    """Run a command, cancel it when it has written so many lines to a file, and say how long that took."""
    began = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(terminal, command)
        with anyio.fail_after(30):
            while not begun.exists() or begun.read_text().count("\n") < lines:
                await anyio.sleep(0.005)
        began = anyio.current_time()
        tasks.cancel_scope.cancel()
    return anyio.current_time() - began


async def test_cancelling_ends_a_stubborn_command_with_all_that_it_started(tmp_path: Path, terminal: Terminal) -> None:
    # In a shell of its own, which ignores the signals, too.
    (tmp_path / "stubborn").write_text(STUBBORN)
    took = await cancelled(terminal, "bash stubborn", tmp_path / "pids", lines=4)
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 4
    assert still_running(*pids) == []
    assert took < 10  # a second at most where nobody else works; never the sixty of the wait for silence
    told = await terminal("echo on")
    assert told.text.endswith("on\n")


async def test_after_an_interrupt_the_shell_knows_what_it_knew(tmp_path: Path, terminal: Terminal) -> None:
    await terminal("mkdir sub; cd sub; A=kept; f() { echo f; }")
    # The job itself says that it has begun. Before that it has the shell's handlers, and on a busy machine it may keep them for
    # longer than it has to end by SIGINT.
    job = "bash -c 'echo > ../begun; exec sleep 1000'"
    await cancelled(terminal, f"echo partly; {job}; echo never", tmp_path / "begun")
    told = await terminal("echo $A; f; pwd")
    assert told.text.endswith(f"[From this command:]\nkept\nf\n{tmp_path}/sub\n")
    assert not told.new_shell
    # What the interrupted command wrote is not lost.
    assert "exit code 130" in told.text
    assert "partly\n" in told.text
    assert "never" not in told.text


async def test_a_job_that_lost_the_first_ctrl_c_gets_another_before_sigterm(
    tmp_path: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_tree, "GRACE_SECONDS", 2.0)  # on a busy machine its trap may be late for the second one
    # No shell: one remembers its signals and dies of the last.
    (tmp_path / "loses_one.py").write_text(
        "import signal, time\n"
        "signal.signal(signal.SIGINT, lambda *_: signal.signal(signal.SIGINT, signal.SIG_DFL))\n"
        "open('begun', 'w').write('\\n')\n"
        "time.sleep(1000)\n"
    )
    await cancelled(terminal, "python3 loses_one.py", tmp_path / "begun")
    assert "exit code 130" in (await terminal("true")).text


@pytest.mark.parametrize(
    "command",
    some_quick(
        [
            "echo > begun; while :; do :; done",
            "echo > begun; while true; do sleep 0.01; done",
            "for i in {1..100000}; do sleep 0.01; echo > begun; done; echo never",
            "echo > begun; wait",
            "echo > begun; read line",
            "echo > begun; cat | cat | cat",
            "(echo > begun; sleep 1000) | cat; sleep 1000",
            "f() { sleep 0.01; echo > begun; f; }; f",
            "echo > begun; yes",
            f"echo > begun; while :; do :; done # {'a long line' * 100}",
            f"while :; do sleep 0.01; echo > begun; done # {'a long line' * 100}",
            "echo > begun; exec 3< <(sleep 1000); cat <&3",
        ],
        4,
    ),
)  # fmt: skip)
async def test_the_shell_s_own_loops_and_pipelines_are_interrupted_too(
    tmp_path: Path, command: str, terminal: Terminal
) -> None:
    await terminal("A=kept")
    await cancelled(terminal, command, tmp_path / "begun")
    told = await terminal("echo $A; jobs")
    assert told.text.endswith("kept\n")
    assert not told.new_shell


async def send_after(seconds: float, pid: int, number: signal.Signals) -> None:
    await anyio.sleep(seconds)
    send_signal(pid, number)


@pytest.mark.parametrize("rounds", [3, pytest.param(100, marks=pytest.mark.slow)])
async def test_a_signal_that_comes_late_takes_no_command_with_it(
    tmp_path: Path, rounds: int, terminal: Terminal
) -> None:
    pid = int((await terminal("echo $$")).text)
    for number in range(rounds):
        (tmp_path / "begun").unlink(missing_ok=True)
        await cancelled(terminal, "echo > begun; while true; do sleep 0.01; done", tmp_path / "begun")
        async with anyio.create_task_group() as tasks:
            # The shell may still be doing what belongs to its report, be at its prompt, or be about to read the next line.
            tasks.start_soon(send_after, number % 10 * 0.000_05, pid, signal.SIGINT)
            told = await terminal(f"echo number {number}")
            # A shell that is interrupted at its prompt begins a new line, or two.
            assert re.search(rf"\[From this command:\]\n{{1,3}}number {number}\n\Z", told.text)
            assert not told.new_shell


async def test_a_shell_that_a_signal_leaves_inside_of_a_quoted_string_is_taken_out_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: Terminal
) -> None:
    left = ["echo 'half of it\n"]

    def lines(command: str, nonce: int, variables: Mapping[str, str]) -> bytes:
        return left.pop().encode() if left else command_lines(command, nonce, variables)

    await cancelled(terminal, "A=kept; echo > begun; while true; do sleep 0.01; done", tmp_path / "begun")
    monkeypatch.setattr(shell, "command_lines", lines)
    told = await terminal("echo $A")
    assert told.text.endswith("[From this command:]\nkept\n")
    assert not told.new_shell


@pytest.mark.parametrize(
    "command",
    some_quick(
        [
            "echo > begun; exec sleep 1000",
            "trap '' INT; mkfifo p; echo > begun; while :; do read -rt 1 <> p; done",
            "echo > begun; exec python3 -c 'import time\nwhile True:\n  try: time.sleep(9)\n  except KeyboardInterrupt: pass'",
            "echo > begun; kill -STOP $$",
        ],
        4,
    ),
)
async def test_a_shell_that_does_not_come_through_is_replaced(tmp_path: Path, command: str, terminal: Terminal) -> None:
    pid = int((await terminal("A=1; echo $$")).text)
    await cancelled(terminal, command, tmp_path / "begun")
    assert still_running(pid) == []
    told = await terminal("echo [$A]")
    assert told.text.endswith("[]\n")
    assert told.new_shell


async def test_a_shell_that_is_slow_after_an_interruption_takes_no_command_with_it_and_one_that_stays_away_gets_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: Terminal
) -> None:
    pid = int((await terminal("echo $$")).text)
    await cancelled(terminal, "echo > begun; while true; do sleep 0.01; done", tmp_path / "begun")
    monkeypatch.setattr(shell, "_REPORT_SECONDS", 0.05)  # it is asked again so often
    with monkeypatch.context() as patient:
        patient.setattr(shell, "_MEND_TIMES", 1000)
        send_signal(pid, signal.SIGSTOP)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send_after, 0.2, pid, signal.SIGCONT)
            told = await terminal("rm begun; echo here")
            assert (told.text.rstrip("\n")[-4:], told.exit_code, told.new_shell) == ("here", 0, False)
    await cancelled(terminal, "echo > begun; while true; do sleep 0.01; done", tmp_path / "begun")
    send_signal(pid, signal.SIGSTOP)
    with pytest.raises(ToolError, match=r"did not come back from an interruption\. The command was not run"):
        await terminal("touch ran")
    told = await terminal("ls; echo end")
    assert told.text.endswith("begun\nend\n")
    assert told.new_shell
    assert still_running(pid) == []


@pytest.mark.parametrize("signals", some_quick(["INT", "INT TERM", "TERM"], 3))
async def test_what_stands_behind_an_interrupted_command_is_not_run(
    tmp_path: Path, signals: str, terminal: Terminal
) -> None:
    stubborn = f"bash -c \"trap '' {signals}; echo > begun; while :; do sleep 0.05; done\""
    await cancelled(terminal, f"{stubborn}; touch one; {stubborn} || touch two\ntouch three", tmp_path / "begun")
    assert (await terminal("ls")).text.endswith("[From this command:]\nbegun\n")


async def test_nor_is_it_where_the_interruption_comes_as_the_command_begins(tmp_path: Path, terminal: Terminal) -> None:
    await terminal("true")
    for number in range(0, 60, 4):
        with anyio.move_on_after(number / 10_000):
            await terminal("bash -c 'sleep 1000' | sleep 1000; touch behind")
        assert (await terminal("(exit 3)")).exit_code == 3
        assert not (tmp_path / "behind").exists(), number


async def test_a_background_job_of_an_earlier_command_survives_an_interrupt(tmp_path: Path) -> None:
    async with open_terminal(tmp_path) as terminal:
        server = int((await terminal("sleep 1000 > /dev/null & echo $!; sleep 0.2")).text.splitlines()[-1])
        await cancelled(terminal, "sleep 1000 & echo $! > begun; sleep 1000", tmp_path / "begun")
        assert still_running(server) == [server]
        assert still_running(int((tmp_path / "begun").read_text())) == []
    await until_gone(server)


async def test_cancelling_a_wait_ends_what_was_waited_for(tmp_path: Path, hasty: Terminal) -> None:
    await hasty("echo $BASHPID > pid; bash -c 'echo $$ > pid; sleep 1000'", timeout=0.3)
    pid = int(await line_in(tmp_path / "pid"))
    with anyio.move_on_after(0.2):
        await hasty(timeout=1000)
    await until_gone(pid)
    assert (await hasty()).exit_code == 130


@pytest.mark.parametrize("after", some_quick([0.003, 0.0, 0.001, 0.05, 0.01, 0.02], 3))
async def test_a_call_can_be_cancelled_at_any_moment(tmp_path: Path, after: float) -> None:
    async with open_terminal(tmp_path) as terminal:
        with anyio.move_on_after(after):
            await terminal("sleep 1000")  # the shell is started for it
        with anyio.move_on_after(after):
            await terminal("sleep 1000; touch made")
        with anyio.move_on_after(after):
            await terminal("cat <<X > long\n" + "a line of a long command\n" * 2000 + "X\nsleep 1000; touch made")
        told = await terminal("echo fine")
        assert told.text.endswith("fine\n")
        assert told.exit_code == 0
    assert not (tmp_path / "made").exists()


@pytest.mark.slow
async def test_closing_ends_everything_and_leaves_no_descriptor(tmp_path: Path) -> None:
    def descriptors() -> int:
        return len(os.listdir("/dev/fd"))

    async with open_terminal(tmp_path) as terminal:  # what is made once per process is made here
        await terminal("true")
    before = descriptors()
    for _ in range(3):
        async with open_terminal(tmp_path, quiet=0.5) as terminal:
            await terminal("echo $$ > pids; (sleep 1000 & echo $! >> pids)")
            await terminal("setsid bash -c 'echo $$ >> pids; exec sleep 1000' &")
            assert (await terminal("bash -c 'echo $$ >> pids; trap \"\" TERM HUP; sleep 1000; sleep 1000'")).running
            pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
            assert len(pids) == 4
            assert still_running(*pids) == pids
        assert still_running(*pids) == []
        assert descriptors() == before


async def test_an_error_in_the_body_leaves_as_itself_and_ends_the_shell(tmp_path: Path) -> None:
    pid = 0
    with pytest.raises(LookupError, match="mine"):
        async with open_terminal(tmp_path) as terminal:
            pid = int((await terminal("echo $$")).text)
            raise LookupError("mine")
    assert still_running(pid) == []


async def test_a_shell_that_takes_no_input_is_told_and_replaced(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, type_seconds=0.5) as terminal:
        pid = int((await terminal("echo $$")).text)
        await terminal("(sleep 0.2; kill -STOP $$; echo > stopped) & true")
        await line_in(tmp_path / "stopped")
        with pytest.raises(ToolError, match="not run"):
            # More than fits where a terminal keeps what nobody reads.
            await terminal("true " + "x" * 100_000)
        assert still_running(pid) == []
        assert (await terminal("echo new")).new_shell
