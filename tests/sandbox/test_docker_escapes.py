"""Named attempts to get out of a container. What a command may do in the project's folder is no escape."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from agentcore_sandbox import DockerWorkspace
from boxes_docker import find_image, left_behind, remove_all
from boxes_escapes import ATTEMPTS, SHOWS, filled

IMAGE = find_image()


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Docker is on asyncio only."""
    return "asyncio"


@pytest.fixture
async def owner() -> AsyncIterator[str]:
    """Return an owner of boxes for one test; nothing of them may be left at its end."""
    owner = f"tests {os.urandom(4).hex()}"
    yield owner
    left = await left_behind(owner)
    await remove_all(owner)
    assert left == []


async def test_no_attempt_gets_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: str) -> None:
    monkeypatch.setenv("OF_THIS_PROGRAM", "secret")
    project, outside = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("secret\n")
    os.chown(project, 1000, 1000)
    escaped: list[str] = []
    async with await anyio.open_process(["sleep", "1000"]) as beside:
        try:
            async with DockerWorkspace(IMAGE, mount=project, labels={"owner": owner}) as workspace:
                for attempt in ATTEMPTS:
                    if not attempt.in_docker:
                        continue
                    script = filled(attempt, outside, project, beside.pid)
                    result = await workspace.run(["sh", "-c", script])
                    if SHOWS in result.stdout or "secret" in result.stdout:
                        escaped.append(f"{attempt.name}: {result.stdout}")
            assert escaped == []
            assert beside.returncode is None
        finally:
            beside.kill()
    assert sorted(each.name for each in outside.iterdir()) == ["secret"]
    assert (outside / "secret").read_text() == "secret\n"
    assert (outside / "secret").stat().st_nlink == 1
