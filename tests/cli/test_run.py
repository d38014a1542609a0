"""`agentcore run` with a model behind a socket: plain HTTP, a provider on the loopback, a real project."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from agentcore.errors import AuthenticationError
from agentcore.llm import RetryPolicy
from agentcore.testing import call, calls, hang, serve_provider
from agentcore.usage import Usage

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

MODULE = "def double(number):\n    return number + number + 1\n"
TEST = (
    "import unittest\nfrom double import double\n\nclass T(unittest.TestCase):\n"
    "    def test_double(self):\n        self.assertEqual(double(2), 4)\n"
)
TESTS = [sys.executable, "-m", "unittest"]


@pytest.fixture
def repository(cli: Cli) -> Path:
    """A repository whose test fails."""
    if shutil.which("git") is None:
        pytest.skip("there is no git here")
    (cli.project / "double.py").write_text(MODULE)
    (cli.project / "test_double.py").write_text(TEST)
    for command in ("init -q", "add .", "-c user.name=t -c user.email=t@t commit -qm begin"):
        subprocess.run(["git", *command.split()], cwd=cli.project, check=True, env=cli.environment)
    return cli.project


async def test_a_task_from_standard_input_is_done_in_a_real_repository(cli: Cli, repository: Path) -> None:
    run_tests = call("terminal", command=" ".join(TESTS))
    edit = call("file_editor", command="str_replace", path="double.py", old_str=" + 1", new_str="")
    script = [
        calls(run_tests, text="First the tests.", usage=Usage(input_tokens=1000, output_tokens=10)),
        calls(edit, text="One too many."),
        calls(run_tests),
        call("finish", message="Mended."),
    ]
    async with serve_provider(script) as provider:
        env = {"AGENTCORE_MODEL": "mine", "AGENTCORE_BASE_URL": provider.base_url}
        ended = await cli.run("run", "-", "--json", stdin="Bring es in Ordnung, Bär.\n".encode(), env=env, fresh=True)
        asked = json.loads(provider.requests[0].content)
    assert ended.code == 0, ended.err
    names = {tool["function"]["name"] for tool in asked["tools"]}
    assert names == {"terminal", "file_editor", "glob", "grep", "task_tracker", "finish", "think"}
    assert asked["messages"][1]["content"] == "Bring es in Ordnung, Bär.\n"
    *events, result = ended.lines
    assert (result["kind"], result["status"], result["text"], result["steps"]) == ("result", "finished", "Mended.", 4)
    assert result["usage"]["input_tokens"] >= 1000
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    # With --json, people read on standard error.
    assert "First the tests." in ended.err
    assert "FAILED (failures=1)" in ended.err
    assert "2 -    return number + number + 1\n │ 2 +    return number + number" in ended.err
    assert "4 steps" in ended.err
    assert " tokens read, " in ended.err
    await anyio.run_process(TESTS, cwd=repository)
    changed = await anyio.run_process(["git", "status", "--porcelain", "-uno"], cwd=repository)
    assert changed.stdout == b" M double.py\n"
    assert (await cli.run("log", "verify")).code == 0


@pytest.mark.slow  # it imports litellm in a process of its own
@pytest.mark.skipif(find_spec("litellm") is None, reason="this model is reached through litellm: [litellm]")
async def test_a_model_that_only_litellm_reaches_is_reached_and_litellm_says_nothing(cli: Cli) -> None:
    async with serve_provider(["Done."]) as provider:
        env = {"AGENTCORE_API_KEY": "sk-test"}
        ended = await cli.run("run", "x", "-m", "nvidia_nim/mine", "--base-url", provider.base_url, env=env)
    assert (ended.code, ended.err) == (0, ""), ended.out
    assert "Done." in ended.out


async def test_ctrl_c_while_the_model_is_silent_gives_the_connection_up(cli: Cli) -> None:
    async with serve_provider([hang]) as provider:
        async with cli.on_terminal("run", "x", "-m", "mine", "--base-url", provider.base_url) as screen:
            with anyio.fail_after(60):
                while not provider.requests:
                    await anyio.sleep(0.02)
            await screen.types("\x03")
            await screen.shows("interrupted, and everything so far is kept")
            assert await screen.ends() == 4
        with anyio.fail_after(30):
            await provider.idle()


async def test_a_key_that_is_not_accepted_is_one_sentence(cli: Cli) -> None:
    async with serve_provider([AuthenticationError("Incorrect API key provided.")]) as provider:
        env = {"AGENTCORE_MODEL": "mine", "AGENTCORE_BASE_URL": provider.base_url, "AGENTCORE_API_KEY": "sk-wrong-key"}
        ended = await cli.run("run", "x", env=env)
    assert ended.code == 1
    assert ended.err.startswith("error: openai/mine: the provider did not accept the key")
    assert len(ended.err.splitlines()) == 1
    assert "sk-wrong-key" not in ended.out + ended.err + cli.log().read_text()


async def test_a_server_that_is_not_there_is_one_sentence_within_seconds(cli: Cli) -> None:
    ended = await cli.run("run", "x", "-m", "mine", "--base-url", "http://127.0.0.1:9/v1")
    assert ended.code == 1
    assert ended.err.startswith("error: openai/mine: no connection to http://127.0.0.1:9/v1")
    assert len(ended.err.splitlines()) == 1
    assert cli.log().read_text().count('"kind":"retry"') == RetryPolicy().refused_retries


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("-m", "anthropic/claude-sonnet-4-5"), "set the environment variable ANTHROPIC_API_KEY"),
        (("-m", "gpt-5"), "names no provider"),
        (("-m", "antropic/x"), "no provider 'antropic' (in 'antropic/x'): did you mean 'anthropic'"),
        (("-m", "nosuch/thing"), "no provider 'nosuch'"),
        (("-m", "mine", "--base-url", "http://localhost:1", "--max-cost", "1"), "knows what 'openai/mine' costs"),
        ((), "Which model?"),
        (("-m", "mine", "--base-url", "localhost:1"), "is no address"),
        (("-m", "mine", "--base-url", "http://localhost:1", "--id", "a/b"), "can't be a conversation id"),
    ],
)
async def test_what_can_not_work_is_refused_before_there_is_a_log(
    cli: Cli, arguments: tuple[str, ...], complaint: str
) -> None:
    ended = await cli.run("run", "x", *arguments)
    assert ended.code == 2
    assert ended.err.startswith("error: ")
    assert complaint in ended.err
    assert len(ended.err.splitlines()) == 1
    assert ended.out == ""
    assert cli.ids() == []
