from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

SOURCES = Path(__file__).parents[2] / "src"
COMMANDS = ["demo", "run", "resume", "conversations", "log", "log show", "log export", "log verify", "log repair"]


async def test_help_names_every_command(cli: Cli) -> None:
    ended = await cli.run("--help", fresh=True)
    assert (ended.code, ended.err) == (0, "")
    for command in COMMANDS:
        assert f"  {command.split()[0]} " in ended.out


@pytest.mark.parametrize("command", COMMANDS)
async def test_every_command_has_a_help_of_its_own(cli: Cli, command: str) -> None:
    ended = await cli.run(*command.split(), "--help", env={"COLUMNS": "80"})
    assert (ended.code, ended.err) == (0, "")
    assert f"agentcore {command} " in ended.out
    assert max(map(len, ended.out.splitlines())) <= 80
    assert "…" not in ended.out
    assert "..." not in ended.out.replace("COMMAND [ARGS]...", "")


async def test_help_loads_nothing_heavy(cli: Cli) -> None:
    program = (
        "import sys\n"
        "from agentcore.cli import main\n"
        "sys.argv[1:] = ['run', '--help']\n"
        "try: main()\n"
        "finally: print(set(sys.modules), file=sys.stderr)\n"
    )
    ended = await cli.run(program=[sys.executable, "-c", program])
    loaded = ast.literal_eval(ended.err)
    assert "typer" in loaded
    assert {name.partition(".")[0] for name in loaded} & {"litellm", "anyio", "openai", "httpx", "structlog"} == set()
    # Of the runtime nothing: neither its events nor its conversation.
    assert {name for name in loaded if name.startswith("agentcore")} == {
        "agentcore",
        "agentcore._collecting",
        "agentcore.cli",
        "agentcore.cli.app",
        "agentcore.errors",
    }


async def test_the_version_is_that_of_the_distribution(cli: Cli) -> None:
    ended = await cli.run("--version", fresh=True)
    try:
        expected = importlib.metadata.version("agentcore-runtime")
    except importlib.metadata.PackageNotFoundError:
        expected = "(from its sources, not installed)"
    assert (ended.code, ended.out) == (0, f"agentcore {expected}\n")


async def test_windows_is_refused_in_one_sentence(cli: Cli) -> None:
    program = "from agentcore.cli import main; import sys; sys.platform = 'win32'; main()"
    ended = await cli.run(program=[sys.executable, "-c", program])
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error: agentcore does not run on Windows")
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nonsense",),
        ("run",),
        ("run", "x", "--max-cost", "lots"),
        ("run", "x", "--max-cost", "nan"),
        ("run", "x", "--max-steps", "0"),
        ("run", "x", "--max-steps", "many"),
        ("log", "repair"),
    ],
)
async def test_what_can_not_be_understood_ends_with_2_and_says_why(cli: Cli, arguments: tuple[str, ...]) -> None:
    ended = await cli.run(*arguments)
    assert ended.code == 2
    assert "Traceback" not in ended.err
    assert "Usage: agentcore" in ended.out + ended.err


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("run", ["AGENTCORE_MODEL", "AGENTCORE_HOME", "AGENTCORE_BASE_URL", "AGENTCORE_API_KEY", "ANTHROPIC_API_KEY"]),
        ("resume", ["words with a blank in them are a message"]),
        ("log show", ["changed last"]),
        ("log export", ["changed last"]),
        ("log verify", ["changed last"]),
    ],
)
async def test_help_says_what_is_not_typed(cli: Cli, command: str, said: list[str]) -> None:
    ended = await cli.run(*command.split(), "--help")
    words = " ".join(ended.out.split())
    assert [each for each in said if each not in words] == []


async def test_yes_and_no_at_once_is_refused(cli: Cli) -> None:
    ended = await cli.run("resume", "--approve", "--reject", "no")
    assert ended.code == 2
    assert "not both" in ended.err


def test_one_file_of_the_command_line_reads_the_environment() -> None:
    readers = [
        path.name
        for path in sorted((SOURCES / "agentcore" / "cli").glob("*.py"))
        if re.search(r"\b(environ|getenv)\b", path.read_text("utf-8"))
    ]
    assert readers == ["settings.py"]


def test_no_file_of_the_command_line_is_long() -> None:
    lines = {
        path.name: len(path.read_text("utf-8").splitlines()) for path in (SOURCES / "agentcore" / "cli").glob("*.py")
    }
    assert {name for name, count in lines.items() if count > 400} == set()
