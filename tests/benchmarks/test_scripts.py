"""Each benchmark runs to its end and says what it found as JSON. What the figures are is no test's business."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from programs import run_here

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "benchmarks").glob("[!_]*.py"))


Run = Callable[..., str]
"""Runs a Python file in the project's folder, and gives what it printed."""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Give what runs Python."""
    monkeypatch.chdir(ROOT)

    def output(file: Path, *arguments: object) -> str:
        code = run_here(monkeypatch, file, *map(str, arguments))
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return captured.out

    return output


QUICK = {"step"}
"""What runs at every change; all do the same with what they measure."""


@pytest.mark.parametrize(
    "script",
    [pytest.param(path, marks=[pytest.mark.slow] * (path.stem not in QUICK)) for path in SCRIPTS],
    ids=lambda path: path.stem,
)
def test_a_script_prints_one_json_object_with_figures_and_bars(script: Path, run: Run) -> None:
    said: dict[str, Any] = json.loads(run(script, "--tiny"))

    assert said["benchmark"] == script.stem
    assert said["tiny"] is True
    assert said["machine"]["cores"] >= 1
    assert said["figures"]
    for name, figure in said["figures"].items():
        assert isinstance(figure, float | int | list), name
    for bar in said["bars"]:
        assert said["figures"][bar["figure"]] == bar["is"]
        assert bar["met"] is (bar["is"] <= bar["at_most"])  # which one depends on the machine


@pytest.mark.parametrize(("figure", "met"), [(2.99, True), (3.0, True), (3.004, True), (3.006, False)])
def test_a_bar_is_met_by_the_figure_that_is_shown(figure: float, met: bool) -> None:
    found = runpy.run_path(str(ROOT / "benchmarks" / "_report.py"))["Report"]("What does it cost?")

    found.hold("cpu_ratio", figure, at_most=3)

    (bar,) = found.bars
    assert found.figures["cpu_ratio"] == bar["is"]
    assert bar["met"] is met is (bar["is"] <= 3)


@pytest.mark.slow
@pytest.mark.parametrize(("what", "figures"), [("time", {"wall", "cpu", "threads"}), ("rss", {"idle", "live"})])
def test_many_conversations_are_measured_by_themselves(tmp_path: Path, what: str, figures: set[str], run: Run) -> None:
    said: dict[str, float] = json.loads(run(ROOT / "benchmarks" / "many.py", "--here", what, "memory", "2", tmp_path))

    assert said.keys() == figures


@pytest.mark.slow
def test_one_command_runs_those_that_are_named_and_keeps_their_lines(tmp_path: Path, run: Run) -> None:
    out = tmp_path / "figures.jsonl"

    printed = run(ROOT / "benchmarks" / "__main__.py", "append", "watch", "--tiny", "--out", out)

    assert [json.loads(line)["benchmark"] for line in printed.splitlines()] == ["append", "watch"]
    assert out.read_text(encoding="utf-8") == printed


def test_there_is_a_script_for_each_question_of_the_documentation() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")

    assert {path.stem for path in SCRIPTS} == {
        "append",
        "context",
        "house",
        "gemini_call",
        "import_cost",
        "long_history",
        "many",
        "mcp",
        "mcp_calls",
        "model_call",
        "open_log",
        "sandbox",
        "serve",
        "stalls",
        "step",
        "terminal",
        "tools",
        "watch",
        "workspace",
    }
    for script in SCRIPTS:
        assert f"`{script.stem}`" in page
