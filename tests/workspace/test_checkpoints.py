"""Checkpoints of files: saved, ruined, and brought back byte for byte."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from agentcore import LocalWorkspace
from agentcore.errors import WorkspaceError
from agentcore.workspace import checkpoint_files
from agentcore.workspace.checkpoints import restore_files, save_files
from random_trees import make_tree, ruin_tree, seen_in

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git: apt-get install git")

_FOLDER = "checkpoints-test"


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncGenerator[LocalWorkspace]:
    (tmp_path / "project").mkdir()
    async with LocalWorkspace(tmp_path / "project") as opened:
        yield opened
        await opened.remove_private_folder(_FOLDER)


@pytest.fixture
def root(workspace: LocalWorkspace) -> Path:
    return Path(workspace.root)


async def _survives(seed: int, workspace: LocalWorkspace, root: Path, outside: Path) -> None:
    chance = random.Random(seed)
    make_tree(root, chance)
    before = seen_in(root)
    saved = await save_files(workspace, _FOLDER)
    assert saved.left_out == ()
    assert seen_in(root) == before
    ruin_tree(root, outside, chance)
    ignored = seen_in(root, ignored=True)
    await restore_files(workspace, _FOLDER, saved.id)
    assert seen_in(root) == before, seed
    assert seen_in(root, ignored=True) == ignored
    assert (await restore_files(workspace, _FOLDER, saved.id)).written == 0
    assert (await save_files(workspace, _FOLDER)).id == saved.id


@pytest.mark.parametrize("seed", range(2))
async def test_a_ruined_tree_comes_back_byte_for_byte(
    seed: int, workspace: LocalWorkspace, root: Path, tmp_path: Path
) -> None:
    outside = _decoy(tmp_path)
    await _survives(seed, workspace, root, outside)
    assert seen_in(outside) == {b"/a": ("file", 0o644, b"decoy"), b"/lib": ("file", 0o644, b"decoy")}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 50))
async def test_many_ruined_trees_come_back(seed: int, workspace: LocalWorkspace, root: Path, tmp_path: Path) -> None:
    outside = _decoy(tmp_path)
    await _survives(seed, workspace, root, outside)
    assert seen_in(outside) == {b"/a": ("file", 0o644, b"decoy"), b"/lib": ("file", 0o644, b"decoy")}


def _decoy(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("a", "lib"):
        (outside / name).write_bytes(b"decoy")
        (outside / name).chmod(0o644)
    return outside


async def test_what_is_left_out_is_named_and_stays(workspace: LocalWorkspace, root: Path) -> None:
    with (root / "video\n.mp4").open("wb") as file:
        file.truncate(100_000_001)
    (root / ".GIT").write_bytes(b"no")
    (root / "a").write_bytes(b"1")
    saved = await save_files(workspace, _FOLDER)
    named = {each.path: each.reason for each in saved.left_out}
    assert named == {"video\n.mp4": "larger than 100 MB", ".GIT": "git refuses the name"}
    assert saved.files == 1
    (root / "video\n.mp4").write_bytes(b"short by now")
    await restore_files(workspace, _FOLDER, saved.id)
    assert (root / "video\n.mp4").read_bytes() == b"short by now"


async def test_files_of_repositories_inside_are_saved_and_no_git_folder_is_touched(
    workspace: LocalWorkspace, root: Path
) -> None:
    for folder in (root, root / "inner"):
        folder.mkdir(exist_ok=True)
        _git("init", "-q", str(folder))
        (folder / "f").write_bytes(b"1")
    (root / ".gitignore").write_bytes(b"forced\n")
    (root / "forced").write_bytes(b"kept by the project though it is ignored")
    _git("-C", str(root), "add", "-f", "forced")
    before = _git_folders(root)
    saved = await save_files(workspace, _FOLDER)
    for name in ("f", "inner/f", "forced"):
        (root / name).write_bytes(b"2")
    await restore_files(workspace, _FOLDER, saved.id)
    assert [(root / name).read_bytes()[:4] for name in ("f", "inner/f", "forced")] == [b"1", b"1", b"kept"]
    assert _git_folders(root) == before


async def test_what_was_ignored_stays_where_the_rules_are_gone(workspace: LocalWorkspace, root: Path) -> None:
    (root / ".gitignore").write_bytes(b".env\nbuild/\n")
    (root / ".env").write_bytes(b"KEY=1")
    (root / "build").mkdir()
    (root / "build" / "x").write_bytes(b"x")
    saved = await save_files(workspace, _FOLDER)
    (root / ".gitignore").unlink()
    (root / "new").write_bytes(b"new")
    await restore_files(workspace, _FOLDER, saved.id)
    assert sorted(os.listdir(root)) == [".env", ".gitignore", "build"]
    assert (root / "build" / "x").read_bytes() == b"x"


@pytest.mark.slow
async def test_a_folder_of_a_larger_repository_has_its_rules(workspace: LocalWorkspace, root: Path) -> None:
    _git("init", "-q", str(root.parent))
    (root.parent / ".gitignore").write_bytes(b"*.tmp\n")
    (root / "a.tmp").write_bytes(b"x")
    (root / "a").write_bytes(b"x")
    assert (await save_files(workspace, _FOLDER)).files == 1
    (root.parent / ".gitignore").write_bytes(b"project/\n")
    assert (await save_files(workspace, _FOLDER)).files == 2  # the folder itself is ignored there, and it counts


async def test_what_is_not_there_is_said(workspace: LocalWorkspace) -> None:
    with pytest.raises(WorkspaceError, match="its store has no checkpoint 1234"):
        await restore_files(workspace, _FOLDER, "1234")


def _git_folders(root: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(root.rglob("*")) if ".git" in p.parts and p.is_file()}


def _git(*words: str) -> None:
    subprocess.run(["git", *words], check=True)


@pytest.mark.slow
async def test_a_pipe_in_place_of_rules_does_not_hold_a_restore_up(workspace: LocalWorkspace, root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub/.gitignore").write_text("*.log\n")
    saved = await save_files(workspace, _FOLDER)
    (root / "sub/.gitignore").unlink()
    os.mkfifo(root / "sub/.gitignore")
    os.mkfifo(root / ".gitignore")
    with anyio.fail_after(60):
        await restore_files(workspace, _FOLDER, saved.id)
    assert (root / "sub/.gitignore").read_text() == "*.log\n"
    assert not (root / ".gitignore").exists()


@pytest.mark.parametrize("place", [".gitignore", "sub/.gitignore", "../.gitignore", "sub/.git/HEAD"])
async def test_a_pipe_that_git_would_wait_for_is_refused_by_name(
    place: str, workspace: LocalWorkspace, root: Path
) -> None:
    _git("init", "-q", str(root.parent))
    _git("init", "-q", str(root / "sub"))
    (root / place).unlink(missing_ok=True)
    os.mkfifo(root / place)
    name = place.removeprefix("../")
    with anyio.fail_after(60), pytest.raises(WorkspaceError, match=f"{name} is not a regular file. Remove it."):
        await save_files(workspace, _FOLDER)


@pytest.mark.parametrize("name", ["config", "index"])
async def test_a_repository_with_a_pipe_does_not_hold_a_save_up(
    name: str, workspace: LocalWorkspace, root: Path
) -> None:
    _git("init", "-q", str(root / "inner"))
    (root / "inner/file").write_text("text")
    (root / "inner/.git" / name).unlink(missing_ok=True)
    os.mkfifo(root / "inner/.git" / name)
    with anyio.fail_after(20):
        assert (await save_files(workspace, _FOLDER)).files == 1


async def test_saves_at_once_into_one_store_wait_for_each_other(workspace: LocalWorkspace, root: Path) -> None:
    for number in range(300):
        (root / f"file {number}").write_text(str(number))
    saved: list[str] = []

    async def save() -> None:
        saved.append((await save_files(workspace, _FOLDER)).id)

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(save)
    assert len(saved) == 4
    assert len(set(saved)) == 1


def test_a_store_in_use_is_waited_for_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_files, "_LOCK_SECONDS", 0.1)
    first = checkpoint_files.Git(str(tmp_path / "store"), None)
    with pytest.raises(checkpoint_files.Refused, match="another program has worked"):
        checkpoint_files.Git(str(tmp_path / "store"), None)
    os.close(first.lock)
    os.close(checkpoint_files.Git(str(tmp_path / "store"), None).lock)
