"""The part of the contract of workspaces that is about processes one talks to."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Sequence
from typing import TypeVar

import anyio

from agentcore.errors import PathError, WorkspaceError
from agentcore.workspace import Process, Workspace

E = TypeVar("E", bound=Exception)

_ALIVE = """
for pid; do
    if [ -e /proc/self/stat ]; then
        stat='' && read -r stat <"/proc/$pid/stat"
        case ${stat##*) } in [!ZX]*) echo "$pid" ;; esac
    elif kill -0 "$pid"; then
        echo "$pid"
    fi
done 2>/dev/null
"""
_SHELL = ["bash", "--norc", "--noprofile", "-i"]
_PROMPT = {"PS1": "ready> ", "TERM": "dumb"}


async def refused(expected: type[E], answer: Awaitable[object]) -> E:
    """Await what has to raise, and give what it raised."""
    try:
        await answer
    except expected as error:
        return error
    raise AssertionError(f"no {expected.__name__} was raised")


async def wait_for_lines(workspace: Workspace, path: str, count: int) -> list[str]:
    """Wait until a file has so many lines, and give them."""
    while True:
        entry = await workspace.stat(path)
        lines = (await workspace.read(path)).decode().splitlines() if entry else []
        if len(lines) >= count:
            return lines
        await anyio.sleep(0.02)


async def still_alive(workspace: Workspace, pids: Sequence[str]) -> list[str]:
    """Return those that run. One that has ended and was not collected yet does not."""
    return (await workspace.run(["bash", "-c", _ALIVE, "bash", *pids])).stdout.split()


class _Reader:
    """Reads on until something was shown."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._seen = b""

    async def until(self, wanted: bytes) -> bytes:
        """Return the output up to there; the next call begins after it."""
        while wanted not in self._seen:
            self._seen += await self._process.receive()
        before, _, self._seen = self._seen.partition(wanted)
        return before


class ProcessContract:
    """The contract of processes in all workspaces; a part of `WorkspaceContract`."""

    async def test_a_process_is_talked_to_through_its_pipes(self, workspace: Workspace) -> None:
        with anyio.fail_after(30):
            async with workspace.open_process(
                'while read -r line; do echo "<$line>"; done; echo end >&2; exit 6'
            ) as process:
                reader = _Reader(process)
                assert process.returncode is None
                for word in (b"one", b"two"):
                    await process.send(word + b"\n")
                    await reader.until(b"<" + word + b">\n")
                await process.send_eof()
                assert await process.wait() == 6
                assert process.returncode == 6
                assert await process.receive_stderr() == b"end\n"
                await refused(anyio.EndOfStream, process.receive())
                await refused(anyio.EndOfStream, process.receive_stderr())

    async def test_sending_waits_for_a_process_that_reads_late(self, workspace: Workspace) -> None:
        data = bytes(range(256)) * 8192
        received = bytearray()

        async with workspace.open_process("until [ -e go ]; do sleep 0.02; done; cat") as process:

            async def send() -> None:
                await process.send(data)
                await process.send_eof()

            with anyio.fail_after(30):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(send)
                    await anyio.wait_all_tasks_blocked()
                    await workspace.write("go", b"")
                    while len(received) < len(data):
                        received += await process.receive()
        assert received == data

    async def test_everybody_who_waits_for_a_process_is_told_its_exit_code(self, workspace: Workspace) -> None:
        codes: list[int] = []

        async def wait(process: Process) -> None:
            codes.append(await process.wait())

        with anyio.fail_after(30):
            async with workspace.open_process("read -r line; exit 9") as process:
                async with anyio.create_task_group() as tasks:
                    for _ in range(3):
                        tasks.start_soon(wait, process)
                    await anyio.wait_all_tasks_blocked()
                    await process.send(b"\n")
                await wait(process)
        assert codes == [9, 9, 9, 9]

    async def test_after_its_context_a_process_takes_and_gives_nothing(self, workspace: Workspace) -> None:
        with anyio.fail_after(30):
            async with workspace.open_process("cat") as process:
                pass
            await refused(anyio.ClosedResourceError, process.receive())
            await refused(anyio.ClosedResourceError, process.send(b"x"))
            assert await process.wait() == process.returncode
            await process.terminate()
            await process.signal(signal.SIGTERM)

    async def test_leaving_ends_what_is_left_even_if_it_takes_no_notice(self, workspace: Workspace) -> None:
        stubborn = "trap '' TERM HUP; echo $$ >>pids; setsid bash -c 'echo $$ >>pids; exec sleep 1000' & while :; do sleep 0.1; done"
        for terminal in (False, True):
            with anyio.fail_after(30):
                await workspace.write("pids", b"")
                async with workspace.open_process(stubborn, pty=terminal):
                    pids = await wait_for_lines(workspace, "pids", 2)
                assert await still_alive(workspace, pids) == []

    async def test_a_process_that_takes_no_notice_of_sigterm_is_killed(self, workspace: Workspace) -> None:
        with anyio.fail_after(30):
            async with workspace.open_process("trap '' TERM; echo up; while :; do sleep 0.1; done") as process:
                await _Reader(process).until(b"up\n")
                await process.terminate()
                assert await process.wait() == 128 + 9

    async def test_a_process_has_time_to_end_well(self, workspace: Workspace) -> None:
        with anyio.fail_after(30):
            async with workspace.open_process(
                "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done"
            ) as process:
                reader = _Reader(process)
                await reader.until(b"up\n")
                assert await process.interrupt()
                await reader.until(b"bye\n")
                assert await process.wait() == 3

    async def test_who_left_the_group_has_time_to_end_well_too(self, workspace: Workspace) -> None:
        polite = "trap 'echo bye >>goodbye; exit' TERM; echo $$ >>pids; while :; do sleep 0.01; done"
        await workspace.write("polite", polite)
        with anyio.fail_after(30):
            async with workspace.open_process("setsid bash polite & sleep 1000") as process:
                await wait_for_lines(workspace, "pids", 1)
                await process.terminate()
        assert await workspace.read("goodbye") == b"bye\n"

    async def test_without_a_terminal_there_is_none(self, workspace: Workspace) -> None:
        assert (await workspace.run("test -t 0 || test -t 1 || test -t 2; echo $?")).stdout == "1\n"
        async with workspace.open_process("cat") as process:
            await refused(WorkspaceError, process.resize(100, 40))

    async def test_a_terminal_has_a_size_that_can_be_changed(self, workspace: Workspace) -> None:
        watching = (
            "trap 'stty size' WINCH; test -t 0 && test -t 1 && test -t 2 && stty size; while :; do sleep 0.05; done"
        )
        with anyio.fail_after(30):
            async with workspace.open_process(watching, pty=True, size=(101, 31)) as process:
                reader = _Reader(process)
                await reader.until(b"31 101\r\n")
                await process.resize(132, 50)
                await reader.until(b"50 132\r\n")
                await refused(anyio.EndOfStream, process.receive_stderr())

    async def test_a_terminal_ends_with_its_process(self, workspace: Workspace) -> None:
        with anyio.fail_after(30):
            async with workspace.open_process("echo shown; echo too >&2; exit 4", pty=True) as process:
                shown = b""
                try:
                    while True:
                        shown += await process.receive()
                except anyio.EndOfStream:
                    pass
                assert shown == b"shown\r\ntoo\r\n"
                assert await process.wait() == 4
            async with workspace.open_process("cat; echo end", pty=True) as process:
                await process.send_eof()
                await _Reader(process).until(b"end\r\n")
                assert await process.wait() == 0

    async def test_a_program_that_is_no_shell_has_its_terminal_too(self, workspace: Workspace) -> None:
        with anyio.fail_after(30):
            async with workspace.open_process(["sh", "-c", "echo own >/dev/tty; exec sleep 1000"], pty=True) as process:
                await _Reader(process).until(b"own\r\n")
                await process.send(b"\x03")
                assert await process.wait() == 128 + signal.SIGINT

    async def test_ctrl_c_reaches_the_foreground_and_not_the_shell(self, workspace: Workspace) -> None:
        with anyio.fail_after(30):
            async with workspace.open_process(_SHELL, pty=True, env=_PROMPT) as process:
                reader = _Reader(process)
                for attempt in (b"1", b"2"):
                    await process.send(b"sh -c 'echo go%s; exec sleep 1000'\n" % attempt)
                    await reader.until(b"\ngo%s\r\n" % attempt)
                    if attempt == b"1":
                        await process.send(b"\x03")
                    else:
                        await process.signal(signal.SIGINT)
                    await process.send(b"echo code $?\n")
                    await reader.until(b"\ncode 130\r\n")
                assert process.returncode is None

    async def test_interrupting_ends_a_job_that_takes_no_notice_and_spares_the_shell(
        self, workspace: Workspace
    ) -> None:
        stubborn = """
            trap '' INT TERM HUP
            setsid bash -c 'echo $$ >>pids; exec sleep 1000' &
            echo $$ >>pids
            while :; do sleep 0.1; done
        """
        await workspace.write("stubborn", stubborn)
        with anyio.fail_after(30):
            async with workspace.open_process(_SHELL, pty=True, env=_PROMPT) as process:
                reader = _Reader(process)
                await process.send(b"sleep 1000 & echo $! >older\n")
                older = await wait_for_lines(workspace, "older", 1)
                await process.send(b"bash stubborn\n")
                pids = await wait_for_lines(workspace, "pids", 2)
                assert await process.interrupt()
                assert await still_alive(workspace, pids + older) == older
                await process.send(b"echo still $((40 + 2))\n")
                await reader.until(b"\nstill 42\r\n")

    async def test_interrupting_ends_a_shells_loop(self, workspace: Workspace) -> None:
        with anyio.fail_after(30):
            async with workspace.open_process(_SHELL, pty=True, env=_PROMPT) as process:
                reader = _Reader(process)
                await process.send(b"while :; do sh -c 'echo ro''und; sleep 1000'; done\n")
                await reader.until(b"\nround\r\n")
                assert await process.interrupt()
                await process.send(b"echo still $((40 + 2))\n")
                await reader.until(b"\nstill 42\r\n")
                # A job that has to be killed does not end the loop with it.
                await process.send(
                    b"while :; do (trap '' INT TERM; echo stub''born; while :; do sleep 0.1; done); done\n"
                )
                await reader.until(b"\nstubborn\r\n")
                assert await process.interrupt()
                await process.send(b"echo still $((40 + 1))\n")
                await reader.until(b"\nstill 41\r\n")
                # Of what the shell does itself it can't be told whether it ended; so that is for its output to say.
                await process.send(b"echo in the lo''op; while :; do :; done\n")
                await reader.until(b"\nin the loop\r\n")
                assert not await process.interrupt()
                await process.send(b"echo still $((40 + 3))\n")
                await reader.until(b"\nstill 43\r\n")

    async def test_interrupting_gives_up_what_stands_behind_a_job_whatever_it_takes_to_end_that(
        self, workspace: Workspace
    ) -> None:
        for ignored in ("", "INT", "INT TERM"):
            await workspace.write("job", f"trap '' {ignored or 'USR1'}; echo be''gun; while :; do sleep 0.1; done")
            with anyio.fail_after(30):
                async with workspace.open_process(_SHELL, pty=True, env=_PROMPT) as process:
                    reader = _Reader(process)
                    for line in (b"bash job; echo >behind\n", b"bash job || (echo >behind)\n"):
                        await process.send(line)
                        await reader.until(b"\nbegun\r\n")
                        assert await process.interrupt()
                        await process.send(b"echo still $((40 + 2))\n")
                        await reader.until(b"\nstill 42\r\n")
                        assert (await workspace.run("ls")).stdout == "job\n"

    async def test_interrupting_can_end_all_that_was_started_lately(self, workspace: Workspace) -> None:
        line = b"setsid -f bash -c 'echo $$ >>pids; exec sleep 1000'; sleep 1000 & echo $! >>pids; sh -c 'echo $$ >>pids; sleep 1000'\n"
        with anyio.fail_after(30):
            async with workspace.open_process(_SHELL, pty=True, env=_PROMPT) as process:
                began = anyio.current_time()
                await process.send(line)
                pids = await wait_for_lines(workspace, "pids", 3)
                assert await process.interrupt(started_within=anyio.current_time() - began + 1)
                assert await still_alive(workspace, pids) == []
                await process.send(b"echo still $((40 + 2))\n")
                await _Reader(process).until(b"\nstill 42\r\n")

    async def test_a_process_in_a_folder_that_is_not_there_is_not_started(self, workspace: Workspace) -> None:
        async def start() -> None:
            async with workspace.open_process("true", cwd="not/there"):
                pass

        assert (await refused(PathError, start())).reason == "missing"
