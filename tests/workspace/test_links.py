from __future__ import annotations

from pathlib import Path

import pytest

from agentcore.errors import PathError
from agentcore.workspace import LocalWorkspace, real_paths


async def test_links_are_followed_whether_or_not_the_paths_exist(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "real").mkdir()
    (root / "link").symlink_to("real")
    (root / "out").symlink_to("/usr/nothing/there")
    async with LocalWorkspace(root) as workspace:
        found = await real_paths(workspace, [f"{root}/link/new/file", f"{root}/out/x", f"{root}/real", "/"])
    assert found == [f"{root}/real/new/file", "/usr/nothing/there/x", f"{root}/real", "/"]


async def test_a_link_that_leads_back_to_itself_spoils_no_other_path(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    (root / "line\n").mkdir()
    async with LocalWorkspace(root) as workspace:
        loop, fine = await real_paths(workspace, [f"{root}/a", f"{root}/line\n"])
    assert isinstance(loop, PathError)
    assert "leads back to itself" in str(loop)
    assert fine == f"{root}/line\n"


@pytest.mark.slow
async def test_many_paths_are_looked_at(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    async with LocalWorkspace(root) as workspace:
        paths = [f"{root}/{number:0200}" for number in range(450)]
        assert await real_paths(workspace, paths) == paths
        assert await real_paths(workspace, []) == []
