"""Checkpoints of files: saved, ruined, and brought back byte for byte."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agentcore import LocalWorkspace
from agentcore.workspace.checkpoints import restore_files, save_files
from random_trees import make_tree, ruin_tree, seen_in

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


@pytest.mark.parametrize("seed", range(6))
async def test_a_ruined_tree_comes_back_byte_for_byte(
    seed: int, workspace: LocalWorkspace, root: Path, tmp_path: Path
) -> None:
    outside = _decoy(tmp_path)
    await _survives(seed, workspace, root, outside)
    assert seen_in(outside) == {b"/a": ("file", 0o644, b"decoy"), b"/lib": ("file", 0o644, b"decoy")}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6, 50))
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
