"""One real bash: what it keeps from command to command, what it is given, and what it tells."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentcore.errors import ToolError
from opened_tool import Terminal, open_terminal


async def test_a_command_of_any_length_arrives_whole(tmp_path: Path) -> None:
    lines = "".join(f"{number:5d} 'it' \"is\" $long \\ `x` é\n" for number in range(8_000))
    async with open_terminal(tmp_path) as terminal:
        told = await terminal(f"cat > long.txt <<'END'\n{lines}END\nwc -l < long.txt")
        assert told.text.strip() == "8000"
    assert (tmp_path / "long.txt").read_text() == lines


async def test_the_agent_s_own_keys_are_not_in_its_environment(
    monkeypatch: pytest.MonkeyPatch, terminal: Terminal
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-not-for-commands")
    monkeypatch.setenv("MY_SETTING", "for everybody")
    told = await terminal('echo "[$ANTHROPIC_API_KEY] [$MY_SETTING]"; env | grep -c not-for-commands')
    assert told.text == "[] [for everybody]\n0\n"


async def test_the_user_s_history_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".bash_history").write_text("mine\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    async with open_terminal(tmp_path) as terminal:
        await terminal("echo not for the history")
        await terminal("exit")
    assert (tmp_path / ".bash_history").read_text() == "mine\n"


async def test_what_comes_is_shown_while_the_command_runs(tmp_path: Path, terminal: Terminal) -> None:
    os.mkfifo(tmp_path / "go")
    assert (await terminal("echo first; (read x < go; echo second) &", timeout=60)).text.startswith("first\n")
    told = await terminal("echo > go; wait", timeout=60)
    assert "second" in told.text
    assert "first\n" in "".join(terminal.host.shown)
    assert "second" in "".join(terminal.host.shown)


@pytest.mark.parametrize("command", ["a\0b", '["ls", "-l"]', '{"command": "ls"}', "{'a': 1}"])
async def test_what_can_not_be_a_command_is_refused_with_advice(command: str, terminal: Terminal) -> None:
    with pytest.raises(ToolError, match="command"):
        await terminal(command)
    assert (await terminal("[ -d . ] && echo fine")).text == "fine\n"


async def test_a_shell_that_can_not_start_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    async with open_terminal(folder) as terminal:
        folder.rmdir()
        with pytest.raises(Exception, match="No bash started") as told:
            await terminal("echo")
        assert str(folder) in str(told.value)
        folder.mkdir()
        assert (await terminal("pwd")).text == f"{folder}\n"
