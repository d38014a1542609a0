from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentcore.cli import demo

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


def test_the_demo_fixes_a_real_project_and_its_story_is_in_order(cli: Cli, tmp_path: Path) -> None:
    ended = cli.run("demo", env={"TMPDIR": str(tmp_path)})
    assert (ended.code, ended.err) == (0, ""), ended.out
    assert "AssertionError: 290 != 370" in ended.out  # the output of the real tests
    assert "+    return sum(item.cents * item.count for item in items)" in ended.out
    found = re.search(r"^project: +(\S+)$", ended.out, re.MULTILINE)
    assert found is not None
    subprocess.run([sys.executable, "-m", "unittest"], cwd=found[1], check=True, capture_output=True)
    assert str(cli.log().parent) in ended.out
    codes = [event["data"]["exit_code"] for event in cli.events() if event.get("data", {}).get("exit_code") is not None]
    assert codes == [0, 1, 0]
    assert cli.run("log", "verify").code == 0
    story = ended.out[ended.out.index("> ") : ended.out.index("\nfinished")]
    assert "\n\n\n" not in story
    paragraphs = [paragraph.splitlines() for paragraph in story.strip("\n").split("\n\n") if "│ " in paragraph]
    assert [lines[0].split(" $ ")[0].removesuffix(" basket.py") for lines in paragraphs] == [
        "[1] terminal", "[2] file_editor view", "terminal", "file_editor str_replace", "terminal",
    ]  # fmt: skip
    assert all(line[1:3] == "│ " for lines in paragraphs for line in lines[1:])


def test_a_second_demo_uses_the_same_folder_and_begins_anew(cli: Cli, tmp_path: Path) -> None:
    folders = {path.name for path in tmp_path.iterdir()}
    for _ in range(2):
        ended = cli.run("demo", env={"TMPDIR": str(tmp_path)})
        assert ended.code == 0, ended.out
        assert "AssertionError: 290 != 370" in ended.out
    assert {path.name for path in tmp_path.iterdir()} == {*folders, "home"}
    assert sorted(path.name for path in cli.home.iterdir()) == ["conversations", "demo"]


def test_the_demo_needs_neither_git_nor_a_key_nor_a_state_folder(cli: Cli, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "ls", "cat"):
        (tools / name).symlink_to(Path("/bin") / name)
    state = tmp_path / "state" / "deep"
    env = {"PATH": str(tools), "AGENTCORE_HOME": "", "XDG_STATE_HOME": str(state), "TMPDIR": str(tmp_path)}
    ended = cli.run("demo", env=env)
    assert ended.code == 0, ended.out + ended.err
    assert len(list((state / "agentcore" / "conversations").iterdir())) == 1


def test_a_demo_whose_tests_fail_at_the_end_is_a_failure(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failing = "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.fail('always')\n"
    monkeypatch.setitem(demo.FILES, "test_more.py", failing)
    ended = cli.run("demo", env={"TMPDIR": str(tmp_path)})
    assert ended.code == 1
    assert "The demo failed" in ended.out
    assert "tests pass when run again" not in ended.out


def test_an_encoding_without_box_characters_gets_ascii(cli: Cli) -> None:
    ended = cli.spawn("demo", env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    assert ended.code == 0, ended.err
    assert " | " in ended.out
    assert "│" not in ended.out


def test_colours_follow_the_terminal_and_the_environment(cli: Cli) -> None:
    cli.play("Done.")
    assert "\x1b" not in cli.run("log", "show").out
    assert "\x1b[1m" in cli.run("log", "show", env={"FORCE_COLOR": "1"}).out
    assert b"\x1b[32m" in cli.on_terminal("conversations")[1].raw
    plain = cli.on_terminal("conversations", env={"NO_COLOR": "1"})[1].raw.decode()
    assert set(re.findall(r"\x1b\[([0-9;]*)m", plain)) <= {"", "0", "1", "2", "3"}
    assert b"\x1b" not in cli.on_terminal("conversations", env={"TERM": "dumb"})[1].raw


def test_a_narrow_terminal_wraps_between_words(cli: Cli, tmp_path: Path) -> None:
    code, screen = cli.on_terminal("demo", columns=40, env={"TMPDIR": str(tmp_path)})
    assert code == 0
    assert "\n370 was expected, but the result is 290:\n" in screen.text
    assert "│ Adds up what a basket of goods costs.\n" in screen.text
    assert "> The tests of this project fail. Find\n> out why and fix it.\n" in screen.text
    at = screen.text.index("log:\n") + len("log:\n")
    assert screen.text[at:].replace("\n", "").startswith(str(cli.log().parent))


def test_a_reader_that_is_gone_ends_the_demo_quietly(cli: Cli) -> None:
    command = f"{sys.executable} -m agentcore demo | head -1; exit ${{PIPESTATUS[0]}}"
    ended = cli.spawn(program=["bash", "-c", command])
    assert (ended.code, ended.out, ended.err) == (141, "agentcore demo\n", "")
    # It may have ended before there was a log; an existing one is intact.
    assert cli.run("log", "verify").code in {0, 2}
