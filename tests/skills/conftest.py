"""A project and a home with skills, and what opens them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from agentcore.context import SourceContext
from agentcore.secrets import SecretRegistry
from agentcore.skills import OpenSkills, Skills
from agentcore.workspace import LocalWorkspace

SECRET = "correct-horse-battery"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


Write = Callable[..., Path]


@pytest.fixture
def write(project: Path) -> Write:
    """Write a SKILL.md: its name, its text, and further lines of the frontmatter."""

    def write_skill(
        name: str, body: str = "Do it.", *lines: str, under: str = ".agents/skills", at: Path | None = None
    ) -> Path:
        path = (at or project) / under / name / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        head = "\n".join([f"name: {name}", f"description: Use for {name}.", *lines])
        path.write_text(f"---\n{head}\n---\n{body}\n")
        return path

    return write_skill


@asynccontextmanager
async def opened(folder: Path, **settings: bool) -> AsyncGenerator[OpenSkills]:
    """Open the skills of a project."""
    registry = SecretRegistry({"TOKEN": SECRET})
    async with LocalWorkspace(folder) as workspace:
        yield await Skills(**settings).open(SourceContext(workspace=workspace, mask=registry.mask))


@pytest.fixture
def open_skills(project: Path) -> Callable[..., AbstractAsyncContextManager[OpenSkills]]:
    def open_them(**settings: bool) -> AbstractAsyncContextManager[OpenSkills]:
        return opened(project, **settings)

    return open_them
