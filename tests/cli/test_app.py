from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from agentcore.cli import app

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

SOURCES = Path(__file__).parents[2] / "src" / "agentcore" / "cli"


def test_help_loads_nothing_heavy(cli: Cli) -> None:
    program = (
        "import sys\n"
        "from agentcore.cli import main\n"
        "sys.argv[1:] = ['run', '--help']\n"
        "try: main()\n"
        "finally: print(set(sys.modules), file=sys.stderr)\n"
    )
    loaded = ast.literal_eval(cli.spawn(program=[sys.executable, "-c", program]).err)
    assert "typer" in loaded
    assert {name.partition(".")[0] for name in loaded} & {"litellm", "anyio", "openai", "httpx", "structlog"} == set()
    # Of the runtime nothing: neither its events nor its conversation.
    assert {name for name in loaded if name.startswith("agentcore")} == {
        "agentcore",
        "agentcore.cli",
        "agentcore.cli.app",
        "agentcore.cli.start",
        "agentcore.errors",
    }


def test_the_version_is_that_of_the_distribution(cli: Cli) -> None:
    try:
        expected = importlib.metadata.version("agentcore-runtime")
    except importlib.metadata.PackageNotFoundError:
        expected = "(from its sources, not installed)"
    ended = cli.run("--version")
    assert (ended.code, ended.out) == (0, f"agentcore {expected}\n")


def test_windows_is_refused_in_one_sentence(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "sys", SimpleNamespace(platform="win32", exit=sys.exit))
    ended = cli.run()
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error: agentcore does not run on Windows")
    assert len(ended.err.splitlines()) == 1


def test_one_file_of_the_command_line_reads_the_environment() -> None:
    readers = [
        path.name
        for path in sorted(SOURCES.glob("*.py"))
        if re.search(r"\b(environ|getenv)\b", path.read_text("utf-8"))
    ]
    assert readers == ["settings.py"]
