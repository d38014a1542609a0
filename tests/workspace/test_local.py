from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskStatus

from agentcore.errors import PathError, UnsupportedPlatform, WorkspaceError, WorkspaceNotOpen
from agentcore.testing.workspace_contract import WorkspaceContract
from agentcore.testing.workspace_process_contract import refused
from agentcore.workspace import LocalWorkspace, Workspace, git


class TestLocalWorkspace(WorkspaceContract):
    @pytest.fixture
    async def workspace(self, tmp_path: Path) -> AsyncGenerator[Workspace]:
        async with LocalWorkspace(tmp_path) as workspace:
            yield workspace


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git: apt-get install git")
async def test_git_that_waits_for_a_pipe_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "project").mkdir()
    async with LocalWorkspace(tmp_path / "project", env={"TMPDIR": str(tmp_path / "tmp")}) as workspace:
        await workspace.run("git init -q; mkfifo .gitignore")
        monkeypatch.setattr(git, "_GIT_SECONDS", 2)
        with anyio.fail_after(60):
            message = str(await refused(WorkspaceError, workspace.git_changes()))
        assert "within 2 s" in message
        assert os.listdir(tmp_path / "tmp") == []
        with anyio.move_on_after(2):
            await workspace.git_diff()
        assert os.listdir(tmp_path / "tmp") == []


async def test_a_relative_path_begins_at_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path)
    async with LocalWorkspace("project") as workspace:
        assert workspace.root == str(tmp_path / "project")
        assert (await workspace.run("pwd")).stdout == f"{tmp_path}/project\n"


async def test_the_root_has_no_links_in_it(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "link").symlink_to("project")
    async with LocalWorkspace(tmp_path / "link") as workspace:
        assert workspace.root == str(tmp_path / "project")


async def test_what_is_no_folder_cannot_be_entered(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for name, reason in (("gone", "missing"), ("file", "not_a_folder"), ("file/below", "not_a_folder")):
        workspace = LocalWorkspace(tmp_path / name)
        error = await refused(PathError, workspace.__aenter__())
        assert error.reason == reason
        assert name in str(error)
        assert not workspace.is_open


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look into every folder")
async def test_a_folder_that_may_not_be_looked_into_cannot_be_entered(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0)
    try:
        assert (await refused(PathError, LocalWorkspace(tmp_path).__aenter__())).reason == "denied"
    finally:
        os.chmod(tmp_path, 0o700)


async def test_outside_of_its_context_nothing_can_be_done(tmp_path: Path) -> None:
    workspace = LocalWorkspace(tmp_path)
    with pytest.raises(WorkspaceNotOpen):
        _ = workspace.root
    calls = (
        lambda: workspace.run("true"),
        lambda: workspace.read("x"),
        lambda: workspace.write("x", b""),
        lambda: workspace.append("x", b""),
        workspace.list,
        lambda: workspace.stat("x"),
        lambda: workspace.upload("x", "x"),
        lambda: workspace.download("x", "x"),
        workspace.git_changes,
        lambda: workspace.git_diff("x"),
        lambda: workspace.private_folder("x"),
        lambda: workspace.remove_private_folder("x"),
        lambda: workspace.open_process("true").__aenter__(),
    )
    for call in calls:
        assert str(tmp_path) in str(await refused(WorkspaceNotOpen, call()))
    async with workspace:
        pass
    for call in calls:
        await refused(WorkspaceNotOpen, call())


async def test_it_can_be_entered_again_after_it_was_left(tmp_path: Path) -> None:
    workspace = LocalWorkspace(tmp_path)
    for _ in range(2):
        async with workspace:
            assert (await workspace.run("echo here")).stdout == "here\n"
        assert not workspace.is_open


async def test_leaving_ends_processes_whose_contexts_are_open_elsewhere(tmp_path: Path) -> None:
    codes: list[int] = []
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks, LocalWorkspace(tmp_path) as workspace:

            async def hold(*, task_status: TaskStatus[None]) -> None:
                async with workspace.open_process("echo up; exec sleep 1000") as process:
                    await process.receive()
                    task_status.started()
                    codes.append(await process.wait())

            for _ in range(3):
                await tasks.start(hold)
    assert codes == [128 + 15] * 3


@pytest.mark.slow
async def test_nothing_is_left_of_many_commands(
    tmp_path: Path, processes_here: Callable[[], Awaitable[list[int]]]
) -> None:
    async with LocalWorkspace(tmp_path) as workspace:

        async def use() -> None:
            await workspace.run("echo out; sleep 1000 & setsid sleep 1000 &")
            with anyio.move_on_after(0.05):
                await workspace.run("setsid sleep 1000 & sleep 1000")
            for terminal in (False, True):
                async with workspace.open_process(["sleep", "1000"], pty=terminal):
                    pass
            await refused(PathError, workspace.run("true", cwd="gone"))
            await refused(WorkspaceError, workspace.run("true", env={"LARGE": "x" * 200_000}))
            await refused(PathError, workspace.read("gone"))

        with anyio.fail_after(60):
            await use()
            before = open_descriptors()
            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(use)
            assert open_descriptors() == before
    assert await processes_here() == []


async def test_without_bash_the_error_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with LocalWorkspace(tmp_path) as workspace:
        monkeypatch.setenv("PATH", str(tmp_path))
        assert "bash" in str(await refused(WorkspaceError, workspace.run("true")))


async def test_an_environment_that_is_too_large_is_an_error_that_shows_the_command(tmp_path: Path) -> None:
    async with LocalWorkspace(tmp_path) as workspace:
        error = await refused(WorkspaceError, workspace.run("echo " + "long " * 1000, env={"LARGE": "x" * 200_000}))
        assert "'echo long long" in str(error)
        assert len(str(error)) < 600
        assert "no program" in str(await refused(WorkspaceError, workspace.run([])))
        assert "null byte" in str(await refused(WorkspaceError, workspace.run("echo \0")))


@pytest.mark.parametrize(
    "secret",
    [
        "ghp_0123456789",
        "'a pass phrase'",
        '"a \\"pass phrase"',
        "a\\ pass\\ phrase",
        "--key='a pass phrase'",
        "'never closed",
    ],
)
@pytest.mark.parametrize("spacing", [33, pytest.param(4, marks=pytest.mark.slow)])
async def test_a_long_command_is_shown_without_a_part_of_a_word(tmp_path: Path, secret: str, spacing: int) -> None:
    too_large = {"LARGE": "x" * 200_000}
    async with LocalWorkspace(tmp_path) as workspace:
        for before in range(140, 206, spacing):
            commands = [f"echo {'x' * before} {secret} {'y ' * 300}", ["echo", "x" * before, secret, *["y"] * 300]]
            for command in commands:
                text = str(await refused(WorkspaceError, workspace.run(command, env=too_large)))
                quoted = repr(secret) if isinstance(command, list) else repr(secret)[1:-1]
                assert quoted in text or "phrase" not in text
                assert quoted in text or "ghp" not in text
                assert len(text) < 600


async def test_a_script_that_does_not_say_what_runs_it_is_run_as_in_a_shell(tmp_path: Path) -> None:
    async with LocalWorkspace(tmp_path) as workspace:
        await workspace.write("script", "echo ran $1\n")
        assert (await workspace.run(["./script", "x"])).exit_code == 126
        (tmp_path / "script").chmod(0o755)
        assert (await workspace.run(["./script", "x"])).stdout == "ran x\n"


def test_on_windows_it_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(UnsupportedPlatform, match="Windows"):
        LocalWorkspace()


def open_descriptors() -> int:
    gc.collect()
    return len(os.listdir("/dev/fd"))
