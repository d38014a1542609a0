"""Every program in `examples/` is run, as a reader would run it: in a folder and with a home of its own, warnings being errors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from programs import run_here
from rounds import some_quick

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted([*(ROOT / "examples").glob("*.py"), *(ROOT / "examples").glob("*/run.py")])


@pytest.mark.parametrize("example", some_quick(EXAMPLES, 3), ids=lambda path: str(path.relative_to(ROOT / "examples")))
def test_the_example_runs(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The reader's own settings and keys must not decide whether a program runs.
    for name in set(os.environ) - {"PATH", "LANG", "PYTHONPATH"}:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert run_here(monkeypatch, example) == 0


def test_there_are_examples() -> None:
    assert EXAMPLES
