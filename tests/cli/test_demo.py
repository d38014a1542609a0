from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Ended


def project_of(ended: Ended) -> Path:
    found = re.search(r"^project: +(\S+)$", ended.out, re.MULTILINE)
    assert found is not None, ended.out
    return Path(found[1])


async def test_the_demo_mends_a_real_project(cli: Cli, tmp_path: Path) -> None:
    ended = await cli.run("demo", env={"TMPDIR": str(tmp_path)}, fresh=True)
    assert (ended.code, ended.err) == (0, ""), ended.out
    assert "The model is scripted" in ended.out
    assert "AssertionError: 290 != 370" in ended.out  # what the tests really said
    assert "-    return sum(item.cents for item in items)" in ended.out
    assert "+    return sum(item.cents * item.count for item in items)" in ended.out
    assert "--model" in ended.out
    project = project_of(ended)
    assert project.is_relative_to(tmp_path)
    # Somebody else runs the tests: they really pass now.
    await anyio.run_process([sys.executable, "-m", "unittest"], cwd=project)


async def test_the_demos_log_is_sound_and_can_be_read_as_it_says(cli: Cli) -> None:
    ended = await cli.run("demo")
    (conversation_id,) = cli.ids()
    assert str(cli.log().parent) in ended.out
    assert f"agentcore log show {conversation_id}\n" in ended.out
    assert (await cli.run("log", "verify", conversation_id)).code == 0
    shown = await cli.run("log", "show", conversation_id)
    assert shown.code == 0
    assert "terminal $ ls -l && cat README.md" in shown.out
    codes = [event["data"]["exit_code"] for event in cli.events() if event.get("data", {}).get("exit_code") is not None]
    assert codes == [0, 1, 0]


async def test_the_demo_needs_neither_git_nor_a_key_nor_a_state_folder(cli: Cli, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "ls", "cat"):
        (tools / name).symlink_to(Path("/bin") / name)
    environment = {"PATH": str(tools), "AGENTCORE_HOME": "", "XDG_STATE_HOME": str(tmp_path / "state" / "deep")}
    ended = await cli.run("demo", env=environment)
    assert ended.code == 0, ended.out + ended.err
    assert len(list((tmp_path / "state" / "deep" / "agentcore" / "conversations").iterdir())) == 1


async def test_a_demo_whose_tests_do_not_pass_at_the_end_is_no_success(cli: Cli, tmp_path: Path) -> None:
    # A test that nothing mends: the model says at the end that all pass, as it always does, and that is not believed.
    program = (
        "import agentcore.cli.demo as project, sys\n"
        "project.FILES = {**project.FILES, 'test_more.py': 'import unittest\\n"
        'class T(unittest.TestCase):\\n    def test_it(self):\\n        self.fail("always")\\n\'}\n'
        "sys.argv[1:] = ['demo']\n"
        "from agentcore.cli import main\n"
        "main()\n"
    )
    ended = await cli.run(program=[sys.executable, "-c", program])
    assert ended.code == 1
    assert "The demo went wrong" in ended.out
    assert "outside of the agent, the project's tests pass" not in ended.out


@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        pytest.param({"PYTHONIOENCODING": "ascii"}, marks=pytest.mark.slow),
        pytest.param({"PYTHONIOENCODING": "latin-1"}, marks=pytest.mark.slow),
    ],
    ids=["C locale", "ascii", "latin-1"],
)
async def test_an_encoding_that_lacks_characters_is_no_problem(cli: Cli, env: dict[str, str]) -> None:
    ended = await cli.run("demo", env=env)
    assert ended.code == 0, ended.err
    assert " | " in ended.out
    assert "│" not in ended.out


async def test_on_a_pipe_there_are_no_colours_unless_they_are_asked_for(cli: Cli) -> None:
    assert "\x1b" not in (await cli.run("demo")).out
    assert "\x1b[32m" in (await cli.run("demo", env={"FORCE_COLOR": "1"})).out


async def test_on_a_terminal_there_are_colours_unless_they_are_not_wanted(cli: Cli) -> None:
    async with cli.on_terminal("demo", env={"TERM": "xterm-256color"}) as screen:
        assert await screen.ends() == 0
        assert "\x1b[32m" in screen.raw
    async with cli.on_terminal("demo", env={"TERM": "xterm-256color", "NO_COLOR": "1"}) as screen:
        assert await screen.ends() == 0
        codes = {code for found in re.findall(r"\x1b\[([0-9;]*)m", screen.raw) for code in found.split(";")}
        assert codes <= {"", "0", "1", "2", "3"}  # bold, dim and italic are no colours
    async with cli.on_terminal("demo", env={"TERM": "dumb"}) as screen:
        assert await screen.ends() == 0
        assert "\x1b" not in screen.raw


async def test_a_narrow_terminal_wraps_words_and_folds_output(cli: Cli) -> None:
    async with cli.on_terminal("demo", columns=40) as screen:
        assert await screen.ends() == 0
    said = screen.text[screen.text.index("370 was expected") :]
    assert said.splitlines()[0] == "370 was expected and 290 came out: three"
    output = [line for line in screen.text.splitlines() if line.startswith(" │ ")]
    assert output
    assert "│ Adds up what a basket of goods costs.\n" in screen.text  # folded behind a word, not in it
    assert "> The tests of this project fail. Find\n> out why and mend it.\n" in screen.text
    at = screen.text.index("log:\n") + len("log:\n")
    assert screen.text[at:].replace("\n", "").startswith(str(cli.log().parent))


async def test_an_output_that_nobody_reads_any_more_ends_the_demo_quietly(cli: Cli) -> None:
    command = " ".join(cli.command("demo"))
    ended = await cli.run(program=["bash", "-c", f"{command} | head -1; exit ${{PIPESTATUS[0]}}"])
    assert ended.out == "agentcore demo\n"
    assert ended.err == ""
    assert ended.code == 141
    # It may have ended before there was a log; one that is there is sound.
    assert (await cli.run("log", "verify")).code in {0, 2}


async def test_a_calls_result_is_finished_before_the_next_words_are_said(cli: Cli) -> None:
    ended = await cli.run("demo")
    story = ended.out[ended.out.index("> ") : ended.out.index("\nfinished")]
    assert "\n\n\n" not in story
    paragraphs = story.strip("\n").split("\n\n")
    calls = [paragraph.splitlines() for paragraph in paragraphs if "│ " in paragraph]
    assert [call[0].split(" $ ")[0].removesuffix(" basket.py") for call in calls] == [
        "[1] terminal",
        "[2] file_editor view",
        "terminal",
        "file_editor str_replace",
        "terminal",
    ]
    for call in calls:
        assert all(line[1:3] == "│ " for line in call[1:]), call
    assert [call[-1] for call in calls if "terminal" in call[0]] == [
        "1│ exit code 0",
        " │ exit code 1",
        " │ exit code 0",
    ]


async def test_no_line_of_output_is_lost_or_misplaced_where_replies_follow_at_once(cli: Cli) -> None:
    replies = ", ".join(
        f'calls(call("terminal", command="seq {number} {number + 3}"), call("terminal", command="echo b{number}"), '
        f'text="Words {number} go here.")'
        for number in range(10, 30)
    )
    ended = await cli.play(f'[{replies}, "Done."]')
    assert ended.code == 0
    told = "".join(
        f"Words {number} go here.\n\n"
        f"[1] terminal $ seq {number} {number + 3}\n"
        + "".join(f"1│ {line}\n" for line in range(number, number + 4))
        + f"1│ exit code 0\n\n[2] terminal $ echo b{number}\n2│ b{number}\n2│ exit code 0\n\n"
        for number in range(10, 30)
    )
    assert f"> Do it.\n\n{told}Done.\n\nfinished" in ended.out
