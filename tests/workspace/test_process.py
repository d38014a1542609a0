from __future__ import annotations

import asyncio  # noqa: TID251 - one test cancels as only asyncio does
import errno
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import psutil
import pytest

import agentcore
from agentcore.testing import cancel_everywhere
from agentcore.testing.workspace_process_contract import refused, still_alive, wait_for_lines
from agentcore.workspace import LocalWorkspace, process_table
from agentcore.workspace.launch import LaunchSpec, PendingProcess, environment
from agentcore.workspace.process_table import ProcessInfo, read_from_proc

Here = Callable[[], Awaitable[list[int]]]
# So that programs that are started in other folders find what is tested.
_FOUND = [str(Path(agentcore.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, _FOUND))}
TREE = "echo $$ >>pids; setsid bash -c 'echo $$ >>pids; exec sleep 1000' & sleep 1000"


async def run_command(workspace: LocalWorkspace) -> None:
    await workspace.run("setsid sleep 1000 & cat; echo done")


async def talk_to_shell(workspace: LocalWorkspace) -> None:
    shell = ["bash", "--norc", "--noprofile", "-i"]
    async with workspace.open_process(shell, pty=True, env={"TERM": "dumb"}) as process:
        await process.send(b"setsid -f sleep 1000; sh -c 'echo go''ing; sleep 1000'\n")
        shown = b""
        while b"\ngoing" not in shown:
            shown += await process.receive()
        await process.interrupt()
        await process.resize(100, 40)


@pytest.mark.slow
@pytest.mark.parametrize("act", [run_command, talk_to_shell])
async def test_cancelled_at_every_checkpoint_nothing_is_left_of(
    act: Callable[[LocalWorkspace], Awaitable[None]], tmp_path: Path, processes_here: Here
) -> None:
    async with LocalWorkspace(tmp_path) as workspace:
        await workspace.run("true")
        before = len(os.listdir("/dev/fd"))
        with anyio.fail_after(120):
            for attempt in cancel_everywhere():
                await attempt(act, workspace)
                assert await processes_here() == []
        assert len(os.listdir("/dev/fd")) == before


@pytest.mark.slow
async def test_cancelled_at_any_moment_a_command_leaves_nothing(tmp_path: Path, processes_here: Here) -> None:
    async with LocalWorkspace(tmp_path) as workspace:
        await workspace.run("true")
        for moment in range(25):
            with anyio.fail_after(30):
                with anyio.move_on_after(moment / 1250) as scope:
                    await workspace.run(TREE)
                assert scope.cancelled_caught
            assert await processes_here() == []


@pytest.mark.slow
async def test_cancelled_by_asyncio_itself_a_command_leaves_nothing(
    tmp_path: Path, anyio_backend_name: str, processes_here: Here
) -> None:
    if anyio_backend_name != "asyncio":
        pytest.skip("this is how asyncio cancels, scopes or not")
    async with LocalWorkspace(tmp_path) as workspace:
        for moment in range(25):
            task = asyncio.create_task(workspace.run(TREE))
            with anyio.move_on_after(moment / 1250):
                await anyio.sleep_forever()
            task.cancel()
            with pytest.raises(asyncio.CancelledError), anyio.fail_after(30):
                await task
            with anyio.fail_after(30):
                # A process whose start was under way is ended by the thread that started it.
                while await processes_here():
                    await anyio.sleep(0.01)


async def test_where_the_system_has_no_pidfd_a_thread_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_pid: int, _flags: int = 0) -> int:
        raise OSError(errno.ENOSYS, "not here")

    monkeypatch.setattr(os, "pidfd_open", missing)
    async with LocalWorkspace(tmp_path) as workspace:
        pids: list[str] = []
        with anyio.fail_after(30):
            assert (await workspace.run("sleep 0.05; exit 3")).exit_code == 3
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(workspace.run, TREE)
                    pids = await wait_for_lines(workspace, "pids", 2)
                    scope.cancel()
            assert await still_alive(workspace, pids) == []


async def test_without_waitid_a_process_is_collected_when_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on macOS before Python 3.13, which has neither."""
    monkeypatch.delattr(os, "waitid")
    monkeypatch.delattr(os, "pidfd_open")
    async with LocalWorkspace(tmp_path) as workspace:
        with anyio.fail_after(30):
            assert (await workspace.run("sleep 1000 & exit 3")).exit_code == 3
            assert (await workspace.run("kill -KILL $$")).exit_code == 137
            async with workspace.open_process(TREE) as process:
                pids = await wait_for_lines(workspace, "pids", 2)
                assert process.returncode is None
            assert process.returncode == 128 + 15
            assert await still_alive(workspace, pids) == []


async def test_nobody_reading_is_told_to_who_sends(tmp_path: Path) -> None:
    async with LocalWorkspace(tmp_path) as workspace:
        with anyio.fail_after(30):
            async with workspace.open_process("exec 0<&-; echo closed; exec sleep 1000") as process:
                await process.receive()
                await refused(anyio.BrokenResourceError, process.send(b"x"))
                await process.send_eof()
                await process.send_eof()
                await refused(anyio.ClosedResourceError, process.send(b"x"))


async def test_who_waits_for_output_is_woken_when_the_context_is_left(tmp_path: Path) -> None:
    ended: list[str] = []
    async with LocalWorkspace(tmp_path) as workspace:

        async def receive(answer: Awaitable[bytes]) -> None:
            try:
                await answer
            except (anyio.EndOfStream, anyio.ClosedResourceError) as error:
                ended.append(type(error).__name__)

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks, workspace.open_process(["sleep", "1000"]) as process:
                answer = process.receive()
                tasks.start_soon(receive, answer)
                await anyio.wait_all_tasks_blocked()
    assert len(ended) == 1


async def test_who_waits_for_output_is_woken_though_somebody_else_holds_the_pipe(tmp_path: Path) -> None:
    async with LocalWorkspace(tmp_path) as workspace:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                async with workspace.open_process(["sleep", "1000"]) as process:
                    held = os.open(f"/proc/{process.pid}/fd/1", os.O_WRONLY)
                    waiting = process.receive()
                    tasks.start_soon(refused, anyio.ClosedResourceError, waiting)
                    await anyio.wait_all_tasks_blocked()
                os.close(held)


def test_a_start_that_nobody_waits_for_any_more_is_undone(tmp_path: Path) -> None:
    order = LaunchSpec(
        TREE, str(tmp_path), environment(True, mark="abandoned", terminal=False), "abandoned", terminal=None
    )
    early, late = PendingProcess(order), PendingProcess(order)
    early.abandon()
    early.work()
    assert not (tmp_path / "pids").exists()
    late.work()
    while not (tmp_path / "pids").exists() or len((tmp_path / "pids").read_text().splitlines()) < 2:
        pass
    late.abandon()
    assert [pid for pid, each in read_from_proc().items() if b"abandoned" in each.marks] == []


async def test_two_at_once_may_not_read_one_stream(tmp_path: Path) -> None:
    async with (
        LocalWorkspace(tmp_path) as workspace,
        workspace.open_process(["sleep", "1000"]) as process,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(process.receive)
        await anyio.wait_all_tasks_blocked()
        await refused(anyio.BusyResourceError, process.receive())
        tasks.cancel_scope.cancel()


async def test_a_terminal_reads_a_long_command_too(tmp_path: Path) -> None:
    text = "x" * 150_000
    async with LocalWorkspace(tmp_path) as workspace:
        with anyio.fail_after(30):
            async with workspace.open_process(
                f"text={text}; echo ${{#text}}; tty -s && ls /dev/fd | wc -l", pty=True
            ) as process:
                shown = b""
                while shown.count(b"\n") < 2:
                    shown += await process.receive()
    # Three streams, the folder that is listed, and no file that the command came in.
    assert shown.split() == [b"150000", b"4"]


async def test_a_missing_program_is_told_on_its_terminal(tmp_path: Path) -> None:
    async with LocalWorkspace(tmp_path) as workspace:
        with anyio.fail_after(30):
            async with workspace.open_process(["no-such-program"], pty=True) as process:
                assert b"no-such-program: not found" in await process.receive()
                assert await process.wait() == 127


async def test_a_stopped_process_is_ended_too(tmp_path: Path) -> None:
    async with LocalWorkspace(tmp_path) as workspace:
        with anyio.fail_after(30):
            async with workspace.open_process("trap 'exit 5' TERM; echo up; kill -STOP $$; sleep 1000") as process:
                await process.receive()
                await process.terminate()
                assert await process.wait() == 5


def test_commands_hear_ctrl_c_though_this_program_was_started_in_the_background(tmp_path: Path) -> None:
    program = """
        import anyio
        from agentcore.workspace import LocalWorkspace

        async def main():
            async with LocalWorkspace() as workspace:
                print((await workspace.run("trap 'echo heard' INT; kill -INT $$")).stdout, end="")

        anyio.run(main)
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    # As a shell without job control starts it.
    line = f"trap '' INT QUIT; exec {sys.executable} program.py"
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("heard\n", "")


@pytest.mark.slow
async def test_commands_are_found_though_another_agent_started_them(tmp_path: Path) -> None:
    """One workspace inside another: what the inner one marks keeps the mark of the outer."""
    inner = """
        import anyio
        from agentcore.workspace import LocalWorkspace

        async def main():
            async with LocalWorkspace() as workspace:
                await workspace.run("setsid bash -c '(echo $BASHPID >>pids; exec sleep 1000) &' & sleep 1000")

        anyio.run(main)
    """
    await anyio.Path(tmp_path / "inner.py").write_text(textwrap.dedent(inner))
    with anyio.fail_after(60):
        async with LocalWorkspace(tmp_path, env=ENVIRONMENT) as workspace:
            async with workspace.open_process([sys.executable, "inner.py"]) as process:
                pids = await wait_for_lines(workspace, "pids", 1)
                # So that it can't tidy up itself, nor what guards it, and only the mark is left to go by.
                for guard in psutil.Process(process.pid).children():
                    if "agentcore-guard" in guard.cmdline():
                        guard.kill()
                os.kill(process.pid, signal.SIGKILL)
                await process.wait()
                assert await still_alive(workspace, pids) == pids
            assert await still_alive(workspace, pids) == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system itself tells")
@pytest.mark.parametrize("others", ["", "sleep 1000 & "])
async def test_a_process_whose_mark_can_not_be_read_yet_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: str
) -> None:
    """As while it becomes another program, which takes long where the machine is busy."""
    read, read_all = process_table._content, process_table.read_processes  # pyright: ignore[reportPrivateUsage]
    unreadable: list[str] = []

    def content(path: str) -> bytes:
        if path in unreadable:
            return b""
        return read(path)

    def counted() -> dict[int, ProcessInfo]:
        seen = read_all()
        # From the second look on it can be.
        unreadable.clear()
        return seen

    monkeypatch.setattr(process_table, "_content", content)
    monkeypatch.setattr(process_table, "_PATIENCE", 0.0)
    monkeypatch.setattr(process_table, "read_processes", counted)
    with anyio.fail_after(30):
        async with LocalWorkspace(tmp_path) as workspace:
            # Only the mark is left to go by: the parent of the first has ended, and it leads a session of its own.
            command = f"{others}(setsid bash -c 'echo $$ >>pids; exec sleep 1000' &)"
            async with workspace.open_process(command) as process:
                pids = await wait_for_lines(workspace, "pids", 1)
                await process.wait()
                unreadable += [f"/proc/{pid}/environ" for pid in pids]
            assert await still_alive(workspace, pids) == []
