"""Trust in project files: by path and content, in a file of this user alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agentcore.mcp.trust import TrustedFiles
from agentcore.mcp.writing import write_private


@pytest.fixture
def trusted(tmp_path: Path) -> TrustedFiles:
    return TrustedFiles(str(tmp_path / "config" / "agentcore"))


@pytest.fixture
def project_file(tmp_path: Path) -> str:
    (tmp_path / ".mcp.json").write_text("{}")
    return str(tmp_path / ".mcp.json")


def test_a_file_is_trusted_as_it_was(trusted: TrustedFiles, project_file: str, tmp_path: Path) -> None:
    assert not trusted.contains(project_file, "1")
    trusted.add(project_file, "1")
    assert trusted.contains(project_file, "1")
    assert not trusted.contains(project_file, "2")
    assert not trusted.contains(f"{project_file}.other", "1")
    (tmp_path / "link").symlink_to(tmp_path)
    assert trusted.contains(f"{tmp_path}/link/.mcp.json", "1")
    kept = tmp_path / "config/agentcore/trusted-mcp-files.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o077 == 0


def test_another_file_keeps_the_first_and_forgets_those_that_are_gone(
    trusted: TrustedFiles, project_file: str, tmp_path: Path
) -> None:
    (tmp_path / "b").write_text("{}")
    (tmp_path / "gone").write_text("{}")
    for name in ("gone", "b"):
        trusted.add(str(tmp_path / name), "1")
    (tmp_path / "gone").unlink()
    trusted.add(project_file, "1")
    kept = json.loads((tmp_path / "config/agentcore/trusted-mcp-files.json").read_text())
    assert kept == {"files": {project_file: "1", str(tmp_path / "b"): "1"}}


@pytest.mark.parametrize("content", ["", "[]", "{", '{"files": []}', '{"files": {"/x": 1}}', "[" * 100_000, "\xff"])
def test_a_damaged_file_trusts_nothing_and_is_written_anew(
    trusted: TrustedFiles, project_file: str, tmp_path: Path, content: str
) -> None:
    kept = tmp_path / "config/agentcore/trusted-mcp-files.json"
    kept.parent.mkdir(parents=True)
    kept.write_text(content, "latin-1")
    assert not trusted.contains(project_file, "1")
    trusted.add(project_file, "1")
    assert trusted.contains(project_file, "1")


def test_a_private_file_replaces_what_a_link_leads_to_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/file").write_text("old")
    (tmp_path / "link").symlink_to("real/file")
    write_private(str(tmp_path / "link"), "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real/file").read_text() == "new"
    assert (tmp_path / "real/file").stat().st_mode & 0o777 == 0o600
    with pytest.raises(UnicodeEncodeError):
        write_private(str(tmp_path / "real/file"), "\ud800")
    assert (tmp_path / "real/file").read_text() == "new"
    assert os.listdir(tmp_path / "real") == ["file"]
