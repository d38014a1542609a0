"""A task on pipes, with a scripted model: what is printed where, and the exit codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

SHELL = 'call("terminal", command="echo out; echo err >&2")'


async def test_the_story_is_on_standard_output_and_nothing_is_on_standard_error(cli: Cli) -> None:
    ended = await cli.play(f'[calls({SHELL}, text="I look."), "Done."]', "--id", "the-id")
    assert (ended.code, ended.err) == (0, "")
    story = ended.out.split("\n\n")
    assert story[0] == "> Do it."
    assert story[1] == "I look."
    assert story[2] == "terminal $ echo out; echo err >&2\n │ out\n │ err\n │ exit code 0"
    assert story[3] == "Done."
    assert story[4].startswith("finished · 2 steps · ")
    assert story[4].endswith("read it: agentcore log show the-id\n")


async def test_json_is_all_there_is_on_standard_output(cli: Cli) -> None:
    loud = 'call("terminal", command="echo to the screen > /dev/stderr")'
    ended = await cli.play(f'[{loud}, "Done, naïvely."]', "--json", env={"PYTHONIOENCODING": "ascii"})
    *events, result = ended.lines
    logged = [{key: value for key, value in event.items() if key not in {"crc", "group"}} for event in cli.events()]
    assert events == logged
    assert (result["kind"], result["status"], result["exit_code"]) == ("result", "finished", 0)
    assert result["conversation_id"] == cli.ids()[0]
    assert result["text"] == "Done, naïvely."
    assert "terminal $ echo to the screen" in ended.err  # people read there


async def test_json_says_how_it_failed_too(cli: Cli) -> None:
    ended = await cli.play('[AuthenticationError("no key for you")]', "--json")
    assert ended.code == 1
    result = ended.lines[-1]
    assert (result["status"], result["exit_code"]) == ("error", 1)
    assert result["error"] == {"code": "AuthenticationError", "detail": "no key for you"}
    assert "error: no key for you\n" in ended.err


async def test_a_model_that_fails_is_one_sentence_on_standard_error(cli: Cli) -> None:
    ended = await cli.play('[AuthenticationError("no key for you")]')
    assert ended.code == 1
    assert ended.err == "error: no key for you\n"
    assert "failed · 0 steps" in ended.out
    assert f"go on: agentcore resume {cli.ids()[0]}" in ended.out


async def test_without_a_terminal_a_call_that_needs_a_yes_waits_and_it_is_said_how_to_go_on(cli: Cli) -> None:
    ended = await cli.play(f"[{SHELL}]", "--confirm", "--id", "w")
    assert ended.code == 3
    assert "waits for your yes or no to 1 call" in ended.out
    assert "agentcore resume w --approve" in ended.out
    assert "agentcore resume w --reject" in ended.out
    assert [event["kind"] for event in cli.events()].count("action_started") == 0


async def test_a_limit_that_is_reached_ends_with_6_and_names_its_flag(cli: Cli) -> None:
    ended = await cli.play(f"[{SHELL}, {SHELL}]", "--steps", "1", "--id", "s")
    assert ended.code == 6
    assert "stopped: The run has taken 1 step; its limit is 1." in ended.out
    assert "agentcore resume s --max-steps ..." in ended.out


async def test_an_agent_that_goes_in_circles_ends_with_5(cli: Cli) -> None:
    ended = await cli.play(f"[{', '.join([SHELL] * 6)}]")
    assert ended.code == 5
    assert "stuck: " in ended.out
    assert "agentcore resume" in ended.out


async def test_several_calls_at_once_are_told_apart(cli: Cli) -> None:
    view = 'call("file_editor", command="view", path="{}")'
    script = f'[calls({view.format("a.txt")}, {view.format("b.txt")}), "Done."]'
    (cli.project / "a.txt").write_text("in a\n")
    (cli.project / "b.txt").write_text("in b\n")
    ended = await cli.play(script)
    assert ended.code == 0
    assert "[1] file_editor view a.txt\n" in ended.out
    assert "[2] file_editor view b.txt\n" in ended.out
    (line_a,) = [line for line in ended.out.splitlines() if "in a" in line]
    (line_b,) = [line for line in ended.out.splitlines() if "in b" in line]
    assert line_a.startswith("1│ ")
    assert line_b.startswith("2│ ")


async def test_a_tool_can_not_take_the_terminal_over(cli: Cli) -> None:
    evil = r"""call("terminal", command="printf '\\033]0;owned\\007\\033[2Jx\\n'")"""
    ended = await cli.play(f"[{evil}, {chr(34)}Done \\x1b[2J.{chr(34)}]", "--verbose", env={"FORCE_COLOR": "1"})
    assert ended.code == 0
    assert "\x1b]" not in ended.out
    assert "\x1b[2J" not in ended.out
    assert "\x07" not in ended.out


async def test_verbose_shows_thinking_and_the_bookkeeping(cli: Cli) -> None:
    script = '[calls(call("think", thought="hmm"), thinking="deeply considered"), "Done."]'
    quiet, loud = await cli.play(script), await cli.play(script, "--verbose")
    assert "deeply considered" not in quiet.out
    assert "deeply considered" in loud.out
    assert "# usage scripted: " in loud.out


@pytest.mark.parametrize("what", ["folder", "file"])
async def test_a_workspace_that_can_not_be_is_refused_before_there_is_a_log(cli: Cli, what: str) -> None:
    (cli.project / "file").write_text("")
    environment = {"AGENTCORE_MODEL": "mine", "AGENTCORE_BASE_URL": "http://127.0.0.1:9"}
    ended = await cli.run("run", "x", "--workspace", what, env=environment)
    assert ended.code == 2
    assert ended.err.startswith("error: ")
    assert str(cli.project / what) in ended.err.replace("\n", "")
    assert cli.ids() == []


async def test_an_id_that_is_taken_is_refused(cli: Cli) -> None:
    await cli.play('["Done."]', "--id", "taken")
    environment = {"AGENTCORE_MODEL": "mine", "AGENTCORE_BASE_URL": "http://127.0.0.1:9"}
    ended = await cli.run("run", "x", "--id", "taken", env=environment)
    assert ended.code == 2
    assert "There is a conversation 'taken'" in ended.err
    assert len([event for event in cli.events("taken") if event["kind"] == "message"]) == 2


async def test_a_home_that_can_not_be_written_is_one_sentence(cli: Cli) -> None:
    cli.home.write_text("a file, where a folder has to be")
    environment = {"AGENTCORE_MODEL": "mine", "AGENTCORE_BASE_URL": "http://127.0.0.1:9"}
    for command in (("run", "x"), ("resume",), ("demo",)):
        ended = await cli.run(*command, env={**environment, "TMPDIR": str(cli.project)})
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith("error: Conversations can't be kept in ")
        assert f"{str(cli.home)!r} is no folder" in ended.err
        assert list(cli.project.iterdir()) == []  # the demo had not begun either


async def test_debug_shows_where_it_failed(cli: Cli) -> None:
    (cli.project / "file").write_text("")
    environment = {"AGENTCORE_MODEL": "mine", "AGENTCORE_BASE_URL": "http://127.0.0.1:9"}
    ended = await cli.run("run", "x", "-w", "file", "--debug", env=environment)
    assert "Traceback (most recent call last)" in ended.err
    assert "PathError" in ended.err
