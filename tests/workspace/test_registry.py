"""Kinds of workspaces that an installed distribution declares."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agentcore.errors import WorkspaceError
from agentcore.workspace import LocalWorkspace, WorkspaceRegistry, WorkspaceSpec, record_workspace


def install(folder: Path, name: str, *lines: str) -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(["[agentcore.workspaces]", *lines, ""]))


def test_a_declared_kind_is_made_by_its_factory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(
        tmp_path, "friendly", "friendly.here = agentcore.workspace:LocalWorkspace", "friendly.gone = nowhere:at_all"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    registry = WorkspaceRegistry()
    made = registry.resolve(WorkspaceSpec(kind="friendly.here", params={"path": str(tmp_path)}))
    assert isinstance(made, LocalWorkspace)
    with pytest.raises(
        WorkspaceError, match=r"'friendly.gone' .*'nowhere:at_all', where it should be, can't be imported"
    ):
        registry.resolve(WorkspaceSpec(kind="friendly.gone"))


def test_a_kind_that_two_distributions_declare_is_nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "friendly_a", "friendly.twice = agentcore.workspace:LocalWorkspace")
    install(tmp_path, "friendly_b", "friendly.twice = elsewhere:Workspace")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(WorkspaceError, match=r"agentcore\.workspace:LocalWorkspace, elsewhere:Workspace"):
        WorkspaceRegistry().resolve(WorkspaceSpec(kind="friendly.twice"))
    assert "elsewhere" not in sys.modules


def test_custom_is_a_kind_of_nobody(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Choose another name"):
        WorkspaceRegistry().register("custom", LocalWorkspace)
    with pytest.raises(WorkspaceError, match="has no record"):
        WorkspaceRegistry().resolve(record_workspace(tmp_path))
