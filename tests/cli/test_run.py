"""`agentcore run`: what it does besides printing. What it prints is in the transcripts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentcore.errors import AuthenticationError
from agentcore.llm import RetryPolicy
from agentcore.testing import ScriptLine, call, calls
from agentcore.usage import Usage
from programs import needs

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

TEST = (
    "import unittest\nfrom double import double\n\nclass T(unittest.TestCase):\n"
    "    def test_double(self):\n        self.assertEqual(double(2), 4)\n"
)
TESTS = [sys.executable, "-m", "unittest"]
NOWHERE = ("-m", "mine", "--base-url", "http://127.0.0.1:9/v1")


@pytest.fixture
def repository(cli: Cli) -> Path:
    """A repository whose test fails."""
    (cli.project / "double.py").write_text("def double(number):\n    return number + number + 1\n")
    (cli.project / "test_double.py").write_text(TEST)
    for command in ("init -q", "add .", "-c user.name=t -c user.email=t@t commit -qm begin"):
        subprocess.run(["git", *command.split()], cwd=cli.project, check=True, env=cli.environment)
    return cli.project


@needs("git")
def test_a_task_from_standard_input_is_done_in_a_real_repository(cli: Cli, repository: Path) -> None:
    run_tests = call("terminal", command=" ".join(TESTS))
    edit = call("file_editor", command="str_replace", path="double.py", old_str=" + 1", new_str="")
    with cli.serve(
        calls(run_tests, text="First the tests.", usage=Usage(input_tokens=1000, output_tokens=10)),
        calls(edit, text="One too many."),
        calls(run_tests),
        call("finish", message="Fixed."),
    ) as provider:
        env = {"AGENTCORE_MODEL": "mine", "AGENTCORE_BASE_URL": provider.base_url, "TMPDIR": str(cli.home.parent)}
        ended = cli.spawn("run", "-", "--json", stdin="Bring es in Ordnung, Bär.\n", env=env)
        asked = json.loads(provider.requests[0].content)
    assert ended.code == 0, ended.err
    names = {tool["function"]["name"] for tool in asked["tools"]}
    assert names == {
        "terminal",
        "file_editor",
        "glob",
        "grep",
        "task_tracker",
        "skill",
        "ask_user",
        "recall",
        "finish",
        "think",
    }
    assert asked["messages"][1]["content"] == "Bring es in Ordnung, Bär.\n"
    *events, result = ended.lines
    assert (result["kind"], result["status"], result["text"], result["steps"]) == ("result", "finished", "Fixed.", 4)
    assert result["usage"]["input_tokens"] >= 1000
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    # With --json, text for people is on standard error.
    for part in ("First the tests.", "FAILED (failures=1)", "│ 2 +    return number + number\n", "4 steps"):
        assert part in ended.err
    subprocess.run(TESTS, cwd=repository, check=True, capture_output=True)
    changed = subprocess.run(["git", "status", "--porcelain", "-uno"], cwd=repository, check=True, capture_output=True)
    assert changed.stdout == b" M double.py\n"


@pytest.mark.slow  # it imports litellm in a process of its own
@pytest.mark.skipif(find_spec("litellm") is None, reason="this model is reached through litellm: [litellm]")
def test_a_model_that_only_litellm_reaches_is_reached_and_litellm_prints_nothing(cli: Cli) -> None:
    with cli.serve("Done.") as provider:
        env = {"AGENTCORE_API_KEY": "sk-test"}
        ended = cli.spawn("run", "x", "-m", "nvidia_nim/mine", "--base-url", provider.base_url, env=env)
    assert (ended.code, ended.err) == (0, ""), ended.out
    assert "Done." in ended.out


def test_json_lines_are_the_log_and_the_result(cli: Cli) -> None:
    loud = call("terminal", command="echo to the screen > /dev/stderr")
    ended = cli.play(loud, "Done, naïvely.", flags=["--json"])
    *events, result = ended.lines
    assert events == [{key: each[key] for key in each.keys() - {"crc", "group"}} for each in cli.events()]
    assert (result["kind"], result["status"], result["exit_code"]) == ("result", "finished", 0)
    assert (result["conversation_id"], result["text"]) == (cli.ids()[0], "Done, naïvely.")
    assert "terminal $ echo to the screen" in ended.err


def test_json_lines_end_with_the_error_of_a_failed_run_and_no_key_is_printed_or_kept(cli: Cli) -> None:
    failing = AuthenticationError("Incorrect API key provided.")
    ended = cli.play(failing, flags=["--json"], env={"AGENTCORE_API_KEY": "sk-wrong-key"})
    result = ended.lines[-1]
    assert (ended.code, result["status"], result["exit_code"]) == (1, "error", 1)
    assert result["error"]["code"] == "AuthenticationError"
    assert "error: openai/mine: the provider did not accept the key" in ended.err
    assert "sk-wrong-key" not in ended.out + ended.err + cli.log().read_text()


def test_a_server_that_is_not_there_is_retried_briefly(cli: Cli) -> None:
    ended = cli.run("run", "x", *NOWHERE)
    assert ended.code == 1
    assert ended.err.startswith("error: openai/mine: no connection to http://127.0.0.1:9/v1")
    assert cli.log().read_text().count('"kind":"retry"') == RetryPolicy().refused_retries


def test_without_a_terminal_a_call_that_needs_approval_does_not_start(cli: Cli) -> None:
    ended = cli.play(call("terminal", command="touch touched"), flags=["--confirm", "always"])
    assert ended.code == 3
    assert "action_started" not in [event["kind"] for event in cli.events()]
    assert not (cli.project / "touched").exists()


def test_no_line_of_output_is_lost_or_misplaced_where_replies_follow_at_once(cli: Cli) -> None:
    def reply(number: int) -> ScriptLine:
        seq, echo = (call("terminal", command=command) for command in (f"seq {number} {number + 3}", f"echo b{number}"))
        return calls(seq, echo, text=f"Words {number} go here.")

    ended = cli.play(*map(reply, range(10, 30)), "Done.")
    expected = "".join(
        f"Words {number} go here.\n\n"
        f"[1] terminal $ seq {number} {number + 3}\n"
        + "".join(f"1│ {line}\n" for line in range(number, number + 4))
        + f"1│ exit code 0\n\n[2] terminal $ echo b{number}\n2│ b{number}\n2│ exit code 0\n\n"
        for number in range(10, 30)
    )
    # On a slow machine any call may take the second from which on its time is shown.
    shown = re.sub(r"exit code 0 after [\d.]+ s", "exit code 0", ended.out)
    assert f"> Do it.\n\n{expected}Done.\n\nfinished" in shown


PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


def test_system_prompt_tools_and_images_reach_the_model(cli: Cli) -> None:
    (cli.project / "prompt.md").write_text("You are terse.\n")
    (cli.project / "a.png").write_bytes(PNG)
    (cli.project / "b.png").write_bytes(PNG)
    flags = ["--system-prompt", "@prompt.md", "--tools", "readonly", "--image", "a.png", "--image", "b.png"]
    with cli.serve("Done.", "Done.") as provider:
        server = ("-m", "mine", "--base-url", provider.base_url)
        assert cli.run("run", "Look.", *server, *flags).code == 0
        assert cli.run("resume", cli.ids()[0], "Again.", "--image", "a.png", *server).code == 0
        first, second = (json.loads(request.content) for request in provider.requests)
    system, task = first["messages"]
    assert system["content"].startswith("You are terse.")
    assert [part["type"] for part in task["content"]] == ["text", "image_url", "image_url"]
    names = {"read_file", "read_many", "list_files", "glob", "grep", "skill", "ask_user", "recall", "finish", "think"}
    assert {tool["function"]["name"] for tool in first["tools"]} == names
    assert {tool["function"]["name"] for tool in second["tools"]} == names
    assert [part["type"] for part in second["messages"][-1]["content"]] == ["text", "image_url"]


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--image", "none.png"], "--image: cannot read 'none.png': No such file or directory."),
        (["--image", "text"], "--image: 'text' is "),
        (["--system-prompt", "@none.md"], "--system-prompt: cannot read 'none.md': No such file or directory."),
        (["--system-prompt", "@picture"], "--system-prompt: 'picture' is not UTF-8 text."),
        (["--system-prompt", " "], "The system prompt is empty."),
    ],
)
def test_files_that_cannot_be_sent_are_refused_before_anything_is(cli: Cli, flags: list[str], complaint: str) -> None:
    (cli.project / "text").write_text("words")
    (cli.project / "picture").write_bytes(PNG)
    ended = cli.run("run", "x", *NOWHERE, *flags)
    assert (ended.code, ended.out, cli.ids()) == (2, "", [])
    assert complaint in " ".join(ended.err.split())


def test_an_image_needs_a_message(cli: Cli) -> None:
    cli.play("Done.")
    ended = cli.run("resume", "--image", "a.png", *NOWHERE)
    assert ended.code == 2
    assert "An image needs a message" in ended.err


def test_verbose_shows_reasoning_and_bookkeeping_and_a_tool_cannot_control_the_terminal(cli: Cli) -> None:
    evil = call("terminal", command=r"printf '\033]0;owned\007\033[2Jx\n'")
    script = (calls(call("think", thought="hmm"), thinking="deeply considered"), evil, "Done \x1b[2J.")
    quiet, loud = cli.play(*script), cli.play(*script, flags=["--verbose"], env={"FORCE_COLOR": "1"})
    assert "deeply considered" not in quiet.out
    assert "deeply considered" in loud.out
    assert "usage" in loud.out
    assert [part for part in ("\x1b]", "\x1b[2J", "\x07") if part in quiet.out + loud.out] == []


def test_an_id_that_is_taken_is_refused(cli: Cli) -> None:
    cli.play("Done.", flags=["--id", "taken"])
    before = cli.log().read_bytes()
    ended = cli.run("run", "x", "--id", "taken", *NOWHERE)
    assert ended.code == 2
    assert "conversation 'taken'" in ended.err
    assert cli.log().read_bytes() == before


def test_a_home_that_cannot_be_written_is_one_sentence(cli: Cli) -> None:
    cli.home.write_text("a file, where a folder has to be")
    for command in (("run", "x", *NOWHERE), ("resume",), ("demo",)):
        ended = cli.run(*command, env={"TMPDIR": str(cli.project)})
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith("error: Cannot keep conversations in ")
        assert f"{str(cli.home)!r} is not a folder" in ended.err
        assert list(cli.project.iterdir()) == []  # the demo had not started either


@pytest.mark.slow
def test_debug_prints_a_traceback(cli: Cli) -> None:
    ended = cli.spawn("run", "x", "-w", "nowhere", "--debug", *NOWHERE)
    assert "Traceback (most recent call last)" in ended.err
    assert "PathError" in ended.err


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full on this system")
def test_an_output_that_is_full_is_one_sentence_and_the_conversation_is_saved(cli: Cli) -> None:
    with cli.serve("Done.") as provider:
        command = f"{sys.executable} -m agentcore run x -m mine --base-url {provider.base_url} --id kept > /dev/full"
        ended = cli.spawn(program=["bash", "-c", command])
    assert ended.code == 1
    shown = " ".join(ended.err.split())
    assert "error: Cannot write the output: No space left on device. Conversation kept is saved. Continue: " in shown
    assert "resume kept" in shown
    assert cli.run("log", "verify", "kept").code == 0
    listed = cli.spawn(program=["bash", "-c", f"{sys.executable} -m agentcore conversations > /dev/full"])
    assert (listed.code, listed.err) == (1, "error: Cannot write the output: No space left on device.\n")
