"""Bubblewrap boxes: the contract of workspaces, their options, and their limits."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from agentcore.errors import PathError, WorkspaceError
from agentcore.testing.workspace_contract import WorkspaceContract
from agentcore.testing.workspace_process_contract import refused
from agentcore.workspace import Workspace, WorkspaceRegistry, WorkspaceSpec, explain_exit
from agentcore_sandbox.box import Progress
from agentcore_sandbox.bubblewrap import BubblewrapWorkspace
from agentcore_sandbox.bubblewrap.workspace import restore
from agentcore_sandbox.network.policy import Allow
from agentcore_sandbox.workspace import OUT_OF_MEMORY
from boxes_bubblewrap import can_make_control_groups, needs_bubblewrap
from contract_smoke import SmokeContract

pytestmark = needs_bubblewrap

needs_control_groups = pytest.mark.skipif(
    not can_make_control_groups(),
    reason="needs control groups for memory and pids: run as root, or where systemd delegates them",
)


class _BubblewrapWorkspace:
    @pytest.fixture
    async def workspace(self, tmp_path: Path) -> AsyncGenerator[Workspace]:
        async with BubblewrapWorkspace(tmp_path) as workspace:
            yield workspace


class TestSmoke(_BubblewrapWorkspace, SmokeContract):
    pass


@pytest.mark.slow
class TestBubblewrapWorkspace(_BubblewrapWorkspace, WorkspaceContract):
    pass


async def output(workspace: Workspace, command: str) -> str:
    """Run a command, and return its output without the last line feed."""
    result = await workspace.run(command)
    assert result.exit_code == 0, result
    return result.stdout.removesuffix("\n")


async def test_the_folder_has_its_own_path_inside_and_its_files_belong_to_this_user(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("from here")
    async with BubblewrapWorkspace(tmp_path) as workspace:
        assert workspace.root == str(tmp_path)
        assert (
            await output(workspace, "pwd; cat file; echo; echo from there >new; stat -c %u new")
            == f"{tmp_path}\nfrom here\n1000"
        )
    assert (tmp_path / "new").read_text() == "from there\n"
    assert (tmp_path / "new").stat().st_uid == os.geteuid()


async def test_nothing_of_this_machine_is_there_but_programs(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "beside").write_text("private")
    async with BubblewrapWorkspace(tmp_path / "project") as workspace:
        assert await output(workspace, f"ls {tmp_path}") == "project"
        home = Path.home()
        assert await output(workspace, f"ls -A ~ {home} 2>/dev/null | grep -v :; ls /home; echo $HOME; whoami") == (
            "user\n/home/user\nagent"
        )
        assert set((await output(workspace, "ls /")).split()) - {"lib32", "lib64", "libx32"} <= {
            "bin", "dev", "etc", "home", "lib", "proc", "sbin", "tmp", "usr", tmp_path.parts[1],
        }  # fmt: skip
        assert await output(workspace, "cut -d: -f1 /etc/passwd") == "agent\nnobody"
        assert (await workspace.run("ls /etc/shadow /etc/ssh /etc/ssl/private /run /var /sys /r?ot")).stdout == ""


async def test_commands_get_nothing_of_this_programs_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THIS_PROGRAM", "secret")
    async with BubblewrapWorkspace(tmp_path, env={"FOR_ALL": "value"}) as workspace:
        assert await output(workspace, "echo $FOR_ALL $OF_THIS_PROGRAM $LANG") == "value C.UTF-8"
        environments = await output(workspace, "cat /proc/[0-9]*/environ | tr '\\0' '\\n'")
        assert "secret" not in environments
        # The first process inside is bubblewrap, whose arguments and variables can be read.
        assert "value" not in await output(workspace, "cat /proc/1/cmdline /proc/1/environ | tr '\\0' '\\n'")


async def test_it_says_how_far_it_is(tmp_path: Path) -> None:
    seen: list[Progress] = []

    async def report(progress: Progress) -> None:
        seen.append(progress)

    async with BubblewrapWorkspace(tmp_path, on_progress=report):
        assert [each.phase for each in seen][-1] == "ready"


async def test_what_is_to_be_read_can_be_read_only(tmp_path: Path) -> None:
    for name in ("project", "data"):
        (tmp_path / name).mkdir()
    (tmp_path / "data" / "file").write_text("shown")
    async with BubblewrapWorkspace(tmp_path / "project", read_only=[tmp_path / "data"]) as workspace:
        assert await output(workspace, f"cat {tmp_path}/data/file") == "shown"
        assert "Read-only" in (await workspace.run(f"echo x >{tmp_path}/data/file")).stderr
    assert (tmp_path / "data" / "file").read_text() == "shown"


async def test_a_tmp_that_is_full_is_an_error_inside_only(tmp_path: Path) -> None:
    async with BubblewrapWorkspace(tmp_path, tmp_size="8m") as workspace:
        for folder in ("/tmp", "~", "/dev/shm"):
            result = await workspace.run(f"head -c 100m /dev/zero >{folder}/large")
            assert "No space left" in result.stderr, folder
        assert (await workspace.run("touch /new /usr/new /dev/new /etc/new")).stderr.count("Read-only") == 4


@needs_control_groups
async def test_a_command_that_takes_all_memory_is_killed_and_the_workspace_lives_on(tmp_path: Path) -> None:
    async with BubblewrapWorkspace(tmp_path, memory="200m") as workspace:
        assert await explain_exit(workspace, 137) is None
        result = await workspace.run(["python3", "-c", "x = bytearray(300 << 20)"])
        assert result.exit_code == 137
        explained = [await explain_exit(workspace, 137), await explain_exit(workspace, 137)]
        assert explained == [OUT_OF_MEMORY, None]
        # All of them together, and what lies in memory as files.
        result = await workspace.run("head -c 300m /dev/zero >/tmp/large; head -c 300m /dev/zero >~/large")
        assert result.stderr.count("No space left") == 2
        result = await workspace.run(["python3", "-c", "x = bytearray(150 << 20)"])
        assert result.exit_code == 137
        assert await output(workspace, "echo fine") == "fine"


_FORKS = """
import os, signal
try:
    while os.fork():
        pass
    signal.pause()
except BlockingIOError:
    print("full")
    signal.pause()
"""


@needs_control_groups
async def test_at_the_limit_of_processes_files_and_signals_work(tmp_path: Path) -> None:
    async with BubblewrapWorkspace(tmp_path, pids=40) as workspace:
        with anyio.fail_after(60):
            async with workspace.open_process(["python3", "-u", "-c", _FORKS]) as process:
                heard = b""
                while b"full" not in heard:
                    heard += await process.receive()
                await workspace.write("file", "x")
                assert await workspace.read("file") == b"x"
                assert [entry.name for entry in await workspace.list()] == ["file"]
                await process.terminate()
            assert await output(workspace, "echo again") == "again"


@needs_control_groups
async def test_processors_are_limited(tmp_path: Path) -> None:
    async with BubblewrapWorkspace(tmp_path, cpus=0.5) as workspace:
        used = await output(
            workspace,
            "python3 -c 'import time\nt = time.time()\nwhile time.time() < t + 1: pass\nprint(time.process_time())'",
        )
        assert float(used) < 0.8


async def test_a_command_leaves_no_core_and_has_a_bounded_number_of_files(tmp_path: Path) -> None:
    async with BubblewrapWorkspace(tmp_path) as workspace:
        assert await output(workspace, "ulimit -c; test $(ulimit -n) -le 16384 && echo bounded") == "0\nbounded"
        assert (await workspace.run("kill -SEGV $$")).exit_code == 128 + 11
        assert await output(workspace, "ls -A") == ""


async def test_with_the_machines_network_the_record_says_so(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        look = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}"
        async with BubblewrapWorkspace(tmp_path) as workspace:
            assert (await workspace.run(look)).exit_code != 0
            assert await output(workspace, "cat /proc/net/dev | grep -c :") == "1"
        async with BubblewrapWorkspace(tmp_path, network="full") as workspace:
            assert (await workspace.run(look)).exit_code == 0
            assert workspace.record().params["network"] == "full"


async def test_with_allowed_hosts_there_is_no_way_but_the_proxy(tmp_path: Path) -> None:
    async with BubblewrapWorkspace(tmp_path, network=Allow("example.invalid")) as workspace:
        assert (
            await output(workspace, "cat /proc/net/dev | grep -c :; ls /etc/resolv.conf 2>/dev/null | wc -l") == "1\n0"
        )
        look = "import urllib.request as r\ntry: r.urlopen('http://10.0.0.1/')\nexcept OSError as e: print(e.code, e.read().decode())"
        refusal = await output(workspace, f'python3 -c "{look}"')
        assert refusal.startswith("403 ")
        assert "10.0.0.1" in refusal
        assert workspace.record().params["network"] == {"hosts": ["example.invalid"], "ports": [443, 80]}


async def test_a_recorded_workspace_is_made_again(tmp_path: Path) -> None:
    registry = WorkspaceRegistry()
    registry.register("bubblewrap", restore)
    async with BubblewrapWorkspace(tmp_path, memory="300m", pids=100, tmp_size="10m") as workspace:
        spec = workspace.record()
        await workspace.write(f"{await workspace.private_folder('kept')}/file", "aside")
    assert spec.kind == "bubblewrap"
    assert spec.params["path"] == str(tmp_path)
    async with registry.resolve(spec) as again:
        assert again.root == str(tmp_path)
        assert await again.read(f"{await again.private_folder('kept')}/file") == b"aside"
        assert isinstance(again, BubblewrapWorkspace)
        assert again.record() == spec


@pytest.mark.parametrize(
    ("params", "shown"),
    [
        ({"network": "full"}, "the network"),
        ({"network": {"hosts": ["example.com"], "ports": [443]}}, "the network"),
        ({"read_only": ["/etc/ssh"]}, "/etc/ssh to read"),
        ({"memory": "64g"}, "more memory"),
        ({"tmp_size": "64g"}, "a larger /tmp"),
        ({"pids": 100_000}, "more processes"),
        ({"env": ["TOKEN"]}, "TOKEN"),
    ],
)
def test_a_log_makes_nothing_looser(params: dict[str, object], shown: str) -> None:
    registry = WorkspaceRegistry()
    registry.register("bubblewrap", restore)
    spec = WorkspaceSpec.model_validate({"kind": "bubblewrap", "params": {"path": "/srv/project", **params}})
    with pytest.raises(WorkspaceError, match=shown):
        registry.resolve(spec)


async def test_no_folder_that_holds_more_than_a_project_is_given_to_a_box(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "homes" / "me"
    home.mkdir(parents=True)
    (home / ".local/state/agentcore/conversations").mkdir(parents=True)
    (tmp_path / "link").symlink_to(home)
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for path, why in (
        ("/", "the whole machine"),
        (home, "is the home"),
        (tmp_path / "link", "is the home"),
        (home.parent, "holds the home"),
        (home / ".local", "agentcore's own files"),
        (home / ".local/state/agentcore/conversations", "agentcore's own files"),
        ("/usr", "the system"),
        ("/etc", "the system"),
        ("/proc/self", "the system"),
        ("/var", "other programs"),
    ):
        error = await refused(PathError, BubblewrapWorkspace(path).__aenter__())
        assert why in str(error), path
        assert "Pass the folder of the project alone." in str(error)
    (home / "project").mkdir()
    async with BubblewrapWorkspace(home / "project") as workspace:
        for path in (home, "/", "relative", "/dev", tmp_path / "gone"):
            other = BubblewrapWorkspace(workspace.root, read_only=[path])
            await refused(WorkspaceError, other.__aenter__())
            assert not other.is_open


async def test_what_is_no_folder_cannot_be_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.chdir(tmp_path)  # the path of a socket may not be long
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        for name, reason in (("gone", "missing"), ("file", "not_a_folder"), ("socket", "not_a_folder")):
            error = await refused(PathError, BubblewrapWorkspace(tmp_path / name).__aenter__())
            assert error.reason == reason
    assert "socket" in str(error)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a folder away")
async def test_root_is_not_given_a_folder_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    os.chown(tmp_path / "project", 12345, 12345)
    error = await refused(PathError, BubblewrapWorkspace(tmp_path / "project").__aenter__())
    assert "belongs to user 12345" in str(error)


async def test_without_bubblewrap_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "apt install bubblewrap" in str(await refused(WorkspaceError, BubblewrapWorkspace(tmp_path).__aenter__()))
    old = tmp_path / "bwrap"
    old.write_text("#!/bin/sh\necho bubblewrap 0.6.1\n")
    old.chmod(0o755)
    assert "'bubblewrap 0.6.1' is too old" in str(
        await refused(WorkspaceError, BubblewrapWorkspace(tmp_path).__aenter__())
    )
    old.write_text("#!/bin/sh\n[ $1 = --version ] && exec echo bubblewrap 0.8.0\necho no luck today >&2\nexit 1\n")
    assert "no luck today" in str(await refused(WorkspaceError, BubblewrapWorkspace(tmp_path).__aenter__()))


def test_wrong_arguments_are_refused_at_once() -> None:
    for wrong in (
        {"memory": "lots"},
        {"memory": "1k"},
        {"tmp_size": "-1"},
        {"pids": 2},
        {"tmp_size": "2g"},
        {"network": "host"},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            BubblewrapWorkspace(**wrong)  # pyright: ignore[reportArgumentType] that is the point
    for wrong in (
        {"cpus": 0},
        {"read_only": "/usr"},
        {"env": {"A": 1}},
        {"path": ""},
        {"image": "x"},
    ):
        with pytest.raises(TypeError):
            BubblewrapWorkspace(**wrong)  # pyright: ignore[reportArgumentType, reportCallIssue] that is the point
