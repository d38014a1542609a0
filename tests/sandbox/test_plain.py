from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from agentcore.errors import PathError, WorkspaceError, WorkspaceNotOpen
from agentcore.testing.workspace_contract import WorkspaceContract
from agentcore.testing.workspace_process_contract import refused
from agentcore.workspace import Workspace
from agentcore_sandbox.box import Progress
from agentcore_sandbox.plain import PlainBox
from agentcore_sandbox.workspace import BoxWorkspace
from boxes_plain import open_plain
from boxes_shared import share, take_over
from contract_smoke import SmokeContract


class _PlainBox:
    @pytest.fixture
    async def workspace(self, tmp_path: Path) -> AsyncGenerator[Workspace]:
        async with open_plain(tmp_path) as workspace:
            yield workspace


class TestSmoke(_PlainBox, SmokeContract):
    pass


@pytest.mark.slow
class TestPlainBox(_PlainBox, WorkspaceContract):
    pass


@pytest.mark.slow
async def test_floods_that_are_read_and_not_read_hinder_nobody(tmp_path: Path) -> None:
    async with open_plain(tmp_path) as workspace:
        with anyio.fail_after(60):
            async with workspace.open_process("yes") as unread, workspace.open_process("yes >&2; yes") as read:
                async with anyio.create_task_group() as tasks:

                    async def read_on() -> None:
                        while True:
                            await read.receive_stderr()

                    tasks.start_soon(read_on)
                    for number in range(20):
                        assert (await workspace.run(f"echo {number}")).stdout == f"{number}\n"
                        await workspace.write("file", b"x" * 1000)
                        assert len(await workspace.read("file")) == 1000
                    tasks.cancel_scope.cancel()
                await unread.terminate()
                assert await unread.wait() == 128 + 15


async def test_a_command_has_nothing_of_this_programs_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "secret")
    async with open_plain(tmp_path, env={"OF_THE_BOX": "1"}) as workspace:
        result = await workspace.run("env", env={"OF_THE_CALL": "2"})
    names = {line.partition("=")[0] for line in result.stdout.splitlines()}
    assert {"PATH", "HOME", "LANG", "TERM", "OF_THE_BOX", "OF_THE_CALL"} <= names
    assert "SOME_KEY" not in names


@pytest.mark.slow
async def test_a_later_opening_ends_what_an_earlier_one_runs_and_keeps_it_out(tmp_path: Path) -> None:
    async with open_plain(tmp_path) as earlier, open_plain(tmp_path) as later:
        await take_over(earlier, later)


async def test_two_conversations_share_an_open_box_and_its_next_helper(tmp_path: Path) -> None:
    async with open_plain(tmp_path) as workspace:
        await share(workspace)


async def test_progress_is_reported(tmp_path: Path) -> None:
    seen: list[Progress] = []

    async def note(progress: Progress) -> None:
        seen.append(progress)

    async with BoxWorkspace(PlainBox(tmp_path, state=tmp_path / "state"), on_progress=note) as workspace:
        assert workspace.record().kind == "plain"
    assert [progress.phase for progress in seen] == ["ready"]
    with pytest.raises(WorkspaceNotOpen):
        await workspace.read("x")


async def test_what_cannot_be_a_root_is_said(tmp_path: Path) -> None:
    workspace = BoxWorkspace(PlainBox(tmp_path / "gone", state=tmp_path / "state"))
    assert "gone" in str(await refused(WorkspaceError, workspace.__aenter__()))
    assert not workspace.is_open


async def test_a_machine_without_python_is_refused(tmp_path: Path) -> None:
    command = ("sh", "-c", "echo no python; exit 127")
    workspace = BoxWorkspace(PlainBox(tmp_path, state=tmp_path / "state", command=command))
    assert "no Python" in str(await refused(WorkspaceError, workspace.__aenter__()))


async def test_a_time_that_no_calendar_has_hides_no_folder(tmp_path: Path) -> None:
    async with open_plain(tmp_path) as workspace:
        await workspace.run("touch -d @-99999999999 old; touch new")
        assert [entry.name for entry in await workspace.list()] == ["new", "old"]
        assert (await refused(PathError, workspace.list("gone"))).reason == "missing"
