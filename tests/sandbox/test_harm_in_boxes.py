"""What a command may do to its own box: the box is used again, its files are there, and nothing of it is felt outside."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync

from agentcore.errors import PathError, WorkspaceError, WorkspaceLost
from agentcore_sandbox import BubblewrapWorkspace, DockerWorkspace
from agentcore_sandbox.workspace import OUT_OF_MEMORY, BoxWorkspace
from boxes_bubblewrap import can_make_control_groups, processes_in
from boxes_harm import BOMBS, FORKS, HELPER, INODES, Harm
from boxes_places import CONFINED, Kind, skip_trio

pytestmark = pytest.mark.slow

_MEMORY = "160m"
_LONGEST_SECONDS = 20
_FORK_SECONDS = 2


@pytest.fixture(params=CONFINED)
def confined(request: pytest.FixtureRequest, anyio_backend_name: str) -> Kind:
    kind: Kind = request.param
    skip_trio(kind, anyio_backend_name)
    return kind


@pytest.fixture
def folders(tmp_path: Path, confined: Kind) -> tuple[Path, Path]:
    """Return a project, and a folder outside of it with a secret."""
    project, outside = tmp_path / "project", tmp_path / "outside"
    for folder in (project, outside):
        folder.mkdir()
    (outside / "secret").write_text("secret\n")
    if os.getuid() == 0 and confined == "docker":  # which refuses root's folders
        os.chown(project, 1000, 1000)
    return project, outside


def make_box(kind: Kind, project: Path) -> BoxWorkspace:
    if kind == "bubblewrap":
        return BubblewrapWorkspace(project, memory=_MEMORY, pids=24, cpus=1, tmp_size="32m")
    labels = {"owner": f"tests {os.urandom(4).hex()}"}
    image = os.environ["TEST_IMAGE"]
    return DockerWorkspace(image, mount=project, memory=_MEMORY, pids=24, cpus=1, tmp_size="32m", labels=labels)


@asynccontextmanager
async def checked(kind: Kind, project: Path, outside: Path) -> AsyncGenerator[BoxWorkspace]:
    """Open a box, and look at what is outside when it was left."""
    async with make_box(kind, project) as workspace:
        await workspace.write("note", "kept")
        yield workspace
    assert sorted(each.name for each in outside.iterdir()) == ["secret"]
    assert (outside / "secret").read_text() == "secret\n"
    async with make_box(kind, project) as workspace:
        assert (await workspace.run("cat note")).stdout == "kept"
        # In bubblewrap this folder outlives the box. What a command left in its place is refused and named until it is removed.
        try:
            kept = await workspace.private_folder("conversation")
        except PathError as error:
            await workspace.run(f"rm {error.path}")
            kept = await workspace.private_folder("conversation")
        await workspace.write(f"{kept}/file", "x")
        await workspace.remove_private_folder("conversation")
    assert not (project / "escaped").exists()


@pytest.mark.parametrize("harm", [*HELPER, *BOMBS], ids=lambda harm: harm.name)
async def test_a_box_is_used_again_after(harm: Harm, confined: Kind, folders: tuple[Path, Path]) -> None:
    project, outside = folders
    async with checked(confined, project, outside) as workspace:
        state = str(Path(await workspace.private_folder("mine")).parents[1])
        # Inside a container the project has another path.
        values = {"{state}": state, "{outside}": str(outside), "{project}": workspace.root}
        script = harm.script
        for name, value in values.items():
            script = script.replace(name, value)
        with anyio.move_on_after(_LONGEST_SECONDS), suppress(WorkspaceLost):
            await workspace.run(["sh", "-c", script])
        with anyio.fail_after(120):
            with suppress(WorkspaceLost):
                await workspace.run("true")
            assert (await workspace.run("echo fine")).stdout == "fine\n"
            assert (await workspace.run(["pgrep", "-f", "sleep 1234|^python3 -$"])).stdout == ""
            assert await workspace.read("note") == b"kept"
            # With another folder in its place, this is refused or inside; `checked` looks at what is outside.
            with suppress(WorkspaceError):
                await workspace.write(f"{await workspace.private_folder('mine')}/file", "x")


async def test_a_fork_bomb_ends_with_its_box_at_the_latest(confined: Kind, folders: tuple[Path, Path]) -> None:
    project, outside = folders
    async with checked(confined, project, outside) as workspace:
        with anyio.move_on_after(_FORK_SECONDS), suppress(WorkspaceLost):
            await workspace.run(["sh", "-c", FORKS.script])
        with anyio.fail_after(60), suppress(WorkspaceLost):
            # Where processes have no room, files have.
            assert await workspace.read("note") == b"kept"
    assert await run_sync(processes_in, project) == []


@pytest.mark.skipif(
    not can_make_control_groups(), reason="needs control groups: run as root, or where systemd delegates them"
)
@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
async def test_files_without_number_fill_their_box_alone(
    folder: str, confined: Kind, folders: tuple[Path, Path]
) -> None:
    project, outside = folders
    async with checked(confined, project, outside) as workspace:
        with anyio.fail_after(120):
            result = await workspace.run(INODES.script.replace("{folder}", folder))
            if confined == "docker" and folder == "/tmp":
                assert result.stdout == "No space left on device\n"
                assert (await workspace.run("rm -r /tmp/many; echo fine >/tmp/file; cat /tmp/file")).stdout == "fine\n"
            else:
                # What it wrote stays, and is memory; so no command may have room, but the helper has.
                assert result.exit_code == 137
                assert await workspace.explain_kill() == OUT_OF_MEMORY
            assert await workspace.read("note") == b"kept"
            await workspace.write("other", "x")
