from __future__ import annotations

import ast
import importlib.metadata
import json
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
        "agentcore.cli.conversations_app",
        "agentcore.cli.keys_app",
        "agentcore.cli.log_app",
        "agentcore.cli.mcp_app",
        "agentcore.cli.options",
        "agentcore.cli.sandbox_app",
        "agentcore.cli.serve_app",
        "agentcore.cli.skills_app",
        "agentcore.cli.start",
        "agentcore.errors",
    }


def test_a_task_may_be_several_words(cli: Cli) -> None:
    with cli.serve("Done.", "Done.") as provider:
        assert cli.run("run", "fix", "the", "test", "-m", "mine", "--base-url", provider.base_url).code == 0
        (conversation,) = cli.ids()
        assert cli.run("resume", conversation, "and", "the", "docs", "--base-url", provider.base_url).code == 0
        asked = json.loads(provider.requests[-1].content)["messages"]
    assert [each["content"] for each in asked if each["role"] == "user"] == ["fix the test", "and the docs"]
    ended = cli.run("resume", "and", "the", "changelog")
    assert ended.code == 2
    assert f"agentcore resume {conversation} 'and the changelog'" in ended.err


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        (["fix it"], "agentcore run 'fix it'"),
        (["fix", "the", "test", "-m", "mine"], "agentcore run fix the test -m mine"),
        (["runn", "fix", "it"], "Did you mean 'run'?"),
    ],
)
def test_what_is_no_command_suggests_one(cli: Cli, typed: list[str], suggested: str) -> None:
    ended = cli.run(*typed)
    assert ended.code == 2
    assert ended.err.rstrip().endswith(suggested)


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
