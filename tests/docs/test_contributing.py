"""CONTRIBUTING.md names the sessions that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_session_of_nox_is_listed() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    sessions = re.findall(
        r"^@nox\.session.*\ndef (\w+)", (ROOT / "noxfile.py").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(re.findall(r"^\| `nox -s (\w+)`", page, re.MULTILINE)) == sorted(sessions)
