"""Each benchmark runs to its end and says what it found as JSON. What the figures are is no test's business."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

import anyio
import pytest

from warm_python import WarmPython

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "benchmarks").glob("[!_]*.py"))


class Run(Protocol):
    """Runs Python in the project's folder, and gives what it printed."""

    def __call__(self, *command: str | Path) -> str: ...


@pytest.fixture
def run(warm: WarmPython, surroundings: dict[str, str]) -> Run:
    """Give what runs Python."""

    async def ended(*command: str) -> str:
        with anyio.fail_after(120):
            done = await warm.run(command, env=surroundings, cwd=ROOT)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    return lambda *command: anyio.run(ended, *map(str, command))


# What these do, they do in many processes.
IN_MANY_PROCESSES = {"import_cost", "many", "model_call"}


@pytest.mark.parametrize(
    "script",
    [pytest.param(path, marks=[pytest.mark.slow] * (path.stem in IN_MANY_PROCESSES)) for path in SCRIPTS],
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
        assert bar["met"] is (bar["is"] <= bar["at_most"])


@pytest.mark.parametrize("what", ["time", "rss"])
def test_many_conversations_are_measured_in_a_process_of_their_own(tmp_path: Path, what: str, run: Run) -> None:
    said: dict[str, float] = json.loads(run(ROOT / "benchmarks" / "many.py", "--here", what, "memory", "2", tmp_path))

    assert said.keys() == ({"wall", "cpu", "threads"} if what == "time" else {"idle", "live"})
    assert said["wall" if what == "time" else "live"] > 0


def test_one_command_runs_those_that_are_named_and_keeps_their_lines(tmp_path: Path, run: Run) -> None:
    out = tmp_path / "figures.jsonl"

    printed = run("-m", "benchmarks", "append", "watch", "--tiny", "--out", out)

    assert [json.loads(line)["benchmark"] for line in printed.splitlines()] == ["append", "watch"]
    assert out.read_text(encoding="utf-8") == printed


def test_there_is_a_script_for_each_question_of_the_documentation() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")

    assert {path.stem for path in SCRIPTS} == {
        "append",
        "house",
        "gemini_call",
        "import_cost",
        "many",
        "model_call",
        "open_log",
        "stalls",
        "step",
        "terminal",
        "tools",
        "watch",
        "workspace",
    }
    for script in SCRIPTS:
        assert f"`{script.stem}`" in page
