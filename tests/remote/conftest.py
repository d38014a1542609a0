"""What each test of the remote side begins with: a folder of its own to work in, and nothing done."""

from __future__ import annotations

from pathlib import Path

import pytest

from talks import ran


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran.clear()
