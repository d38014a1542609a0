"""What is left of a bubblewrap box when something of it is killed, and boxes of another user than the tests'."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import anyio
import psutil
import pytest
from anyio.abc import TaskStatus
from anyio.to_thread import run_sync

from agentcore.errors import WorkspaceLost
from agentcore.testing.workspace_process_contract import refused
from agentcore_sandbox.bubblewrap import BubblewrapWorkspace
from boxes_bubblewrap import control_groups, needs_bubblewrap, processes_in
from boxes_shared import share

pytestmark = needs_bubblewrap

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


async def wait_until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not await run_sync(condition):
            await anyio.sleep(0.02)


def boxes() -> list[psutil.Process]:
    return [each for each in psutil.Process().children() if each.name() == "bwrap"]


def kill_one(victim: str) -> None:
    (outer,) = boxes()
    (first,) = outer.children()
    (helper,) = first.children()
    {"bwrap": outer, "first": first, "helper": helper}[victim].send_signal(signal.SIGKILL)


def helpers(folder: Path) -> set[int]:
    """Return the parents of what runs in a folder, where there are any."""
    found: set[int] = set()
    for each in processes_in(folder):
        with suppress(psutil.NoSuchProcess):
            found.add(psutil.Process(each).ppid())
    return found - {0}


@pytest.mark.slow
async def test_nothing_is_left_of_many_commands(tmp_path: Path) -> None:
    async with BubblewrapWorkspace(tmp_path) as workspace:
        await workspace.run("setsid -f sleep 1000; (setsid sleep 1000 &)")
        async with anyio.create_task_group() as tasks:

            async def hold(*, task_status: TaskStatus[None]) -> None:
                with anyio.move_on_after(30):
                    async with workspace.open_process("echo up; setsid -f sleep 1000; exec sleep 1000") as process:
                        await process.receive()
                        task_status.started()
                        await process.wait()

            await tasks.start(hold)
            assert await run_sync(processes_in, tmp_path)
            tasks.cancel_scope.cancel()
    assert await run_sync(processes_in, tmp_path) == []
    assert await run_sync(control_groups) == []


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["bwrap", "first", "helper"])
async def test_when_something_of_it_is_killed_all_is_gone_and_the_next_call_has_a_new_one(
    tmp_path: Path, victim: str
) -> None:
    async with BubblewrapWorkspace(tmp_path) as workspace:
        async with workspace.open_process("echo up; setsid -f sleep 1000; exec sleep 1000") as process:
            await process.receive()
            left = await run_sync(processes_in, tmp_path)
            await run_sync(kill_one, victim)
            error = await refused(WorkspaceLost, process.wait())
        assert error.reason == "exited"
        await wait_until(lambda: not any(psutil.pid_exists(each) for each in left))
        assert (await workspace.run("echo again")).stdout == "again\n"
    assert await run_sync(processes_in, tmp_path) == []
    assert await run_sync(control_groups) == []


_HOLDS_A_BOX = """
import sys
import anyio
from agentcore_sandbox.bubblewrap import BubblewrapWorkspace

async def main(folder):
    async with BubblewrapWorkspace(folder) as workspace:
        async with workspace.open_process("setsid -f sleep 1000; echo up; read; kill -STOP $PPID; exec sleep 1000") as process:
            await process.receive()
            await process.send(b"\\n")
            await anyio.sleep_forever()

anyio.run(main, sys.argv[1], backend=sys.argv[2])
"""


@pytest.mark.slow
async def test_a_box_ends_with_a_program_that_is_killed_also_if_its_helper_hangs(
    tmp_path: Path, anyio_backend_name: str
) -> None:
    arguments = [sys.executable, "-c", _HOLDS_A_BOX, str(tmp_path), anyio_backend_name]
    async with await anyio.open_process(arguments, env=_with_paths()) as program:
        # The helper, which cannot end anything now.
        await wait_until(
            lambda: any(psutil.Process(each).status() == psutil.STATUS_STOPPED for each in helpers(tmp_path))
        )
        left = await run_sync(processes_in, tmp_path)
        assert left
        program.kill()
    await wait_until(lambda: not any(psutil.pid_exists(each) for each in left))


@pytest.mark.slow
async def test_a_start_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    for milliseconds in (0, 1, 3, 10, 20, 30, 50, 80, 120):
        with anyio.move_on_after(milliseconds / 1000):
            async with BubblewrapWorkspace(tmp_path):
                pass
    assert await run_sync(processes_in, tmp_path) == []
    assert await run_sync(control_groups) == []
    assert await run_sync(boxes) == []


_AS_ANOTHER_USER = """
import ctypes, os, sys
import anyio
from agentcore_sandbox.bubblewrap import BubblewrapWorkspace
from agentcore_sandbox.bubblewrap.limits import Limits

async def main(folder):
    async with BubblewrapWorkspace(folder, memory="256m", pids=40) as workspace:
        async def show(command):
            result = await workspace.run(command)
            print(command.split()[0], result.exit_code, result.stdout.strip(), result.stderr.strip()[-80:].replace(chr(10), " "))
        await workspace.write("file", "x")
        await show("whoami")
        await show("stat -c %u:%a file")
        await show("grep -h -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status")
        await show("python3 -c 'x = bytearray(400 << 20)'")
        await show("unshare -U true")
        await show(f"ls {os.path.dirname(folder)}")
        print(*workspace.spec.loosened if hasattr(workspace, "spec") else workspace._box.spec.loosened)

for user in (0, 12345):
    folder = f"{sys.argv[1]}/{user}"
    os.mkdir(folder)
    os.chmod(folder, 0o755)
    os.chown(folder, user, user)
    if user:
        # Everything is imported by now: the tests' Python may be where only root may look.
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        os.environ.update(HOME="/nonexistent", TMPDIR=sys.argv[1])
        ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
    print("user", os.getuid())
    for backend in ("asyncio", "trio"):
        anyio.run(main, folder, backend=backend)
"""


@pytest.mark.slow
@needs_root
def test_another_user_without_any_right_has_the_same_box() -> None:
    # Where another user may look, too.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o777)
        arguments = [sys.executable, "-c", _AS_ANOTHER_USER, folder]
        ran = subprocess.run(arguments, capture_output=True, text=True, env=_with_paths(), check=False)
        owner = (Path(folder) / "12345" / "file").stat().st_uid
    assert ran.returncode == 0, ran.stderr
    _, _, shown = ran.stdout.partition("user 12345\n")
    lines = shown.splitlines()
    assert lines[: len(lines) // 2] == lines[len(lines) // 2 :]
    assert shown.count("whoami 0 agent") == 2
    assert shown.count("stat 0 1000:") == 2
    assert "CapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2" in shown
    assert "MemoryError" in shown
    assert "unshare 1" in shown
    assert "ls 0 12345 \n" in shown
    assert "The memory is limited for each process" in shown
    assert owner == 12345


_WITHOUT_NAMESPACES = """
import sys
from pathlib import Path
import anyio
from agentcore_sandbox.bubblewrap import BubblewrapWorkspace

async def main():
    async with BubblewrapWorkspace(sys.argv[1]):
        print("entered")

Path("/proc/sys/user/max_user_namespaces").write_text("0")
try:
    anyio.run(main)
except Exception as error:
    print(error)
"""


@pytest.mark.slow
def test_where_user_namespaces_are_switched_off_the_error_says_which_setting(tmp_path: Path) -> None:
    # In a namespace of its own, whose setting is not the machine's.
    arguments = ["unshare", "--user", "--map-root-user", sys.executable, "-c", _WITHOUT_NAMESPACES, str(tmp_path)]
    ran = subprocess.run(arguments, capture_output=True, text=True, env=_with_paths(), check=False)
    assert "sysctl user.max_user_namespaces" in ran.stdout, ran.stderr
    assert processes_in(tmp_path) == []


def _with_paths() -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.mark.slow
async def test_two_conversations_share_an_open_box_and_its_next_helper(tmp_path: Path) -> None:
    async with BubblewrapWorkspace(tmp_path) as workspace:
        await share(workspace)


async def test_boxes_of_two_conversations_over_one_folder_do_not_hinder_one_another(tmp_path: Path) -> None:
    async with BubblewrapWorkspace(tmp_path) as one, BubblewrapWorkspace(tmp_path) as other:
        await one.fence(5, "a")
        await other.fence(1, "b")
        for workspace in (one, other):
            assert (await workspace.run("echo fine")).stdout == "fine\n"
        # An earlier opening is kept out, though nothing in its box can be reached from another one.
        await other.fence(6, "a")
        assert (await refused(WorkspaceLost, one.run("true"))).reason == "fenced"
