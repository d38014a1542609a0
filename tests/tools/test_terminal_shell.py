"""One real bash: what it keeps from command to command, what it is given, and what it tells."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentcore.errors import ToolError
from opened_tool import Terminal, open_terminal


async def test_directory_variables_functions_and_aliases_stay(tmp_path: Path, terminal: Terminal) -> None:
    await terminal("mkdir -p sub; cd sub; export A=1; B=2; f() { echo f$A$B; }; alias greet='echo hello'")
    told = await terminal("pwd; f; greet; env | grep '^[AB]='")
    assert told.text == f"{tmp_path}/sub\nf12\nhello\nA=1\n"
    assert told.cwd == f"{tmp_path}/sub"


async def test_the_answer_says_exit_code_directory_and_python(tmp_path: Path, terminal: Terminal) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    await terminal(f"PATH={tmp_path}/bin:$PATH")
    (content,) = (await terminal("echo out; false")).to_content()
    assert content == f"out\n[exit code 1, of the last of 2 commands; in {tmp_path}; python is {python}]"
    (silent,) = (await terminal("true")).to_content()
    assert isinstance(silent, str)
    assert silent.startswith("(no output)\n[exit code 0;")


async def test_that_there_were_several_commands_is_told_with_the_end_of_the_last(terminal: Terminal) -> None:
    told = await terminal("false\nread\necho done", timeout=0.2)
    assert (told.running, told.commands) == (True, 1)
    told = await terminal("x", is_input=True)
    assert (told.exit_code, told.commands) == (0, 3)
    assert str(*told.to_content()).startswith("done\n[exit code 0, of the last of 3 commands; in ")
    assert (await terminal("echo one")).commands == 1


# Each is run in the same shell, and the command after it works as if nothing had been before it. Of a text that is None, bash's
# own words, there is some.
TABLE: tuple[tuple[str, str | None, int], ...] = (
    ("for i in 1 2; do\n  echo $i\ndone", "1\n2\n", 0),
    ("cat <<X\na $((1+1))\n  b\nX\necho c", "a 2\n  b\nc\n", 0),
    ("cat <<'X'\n$a\\n'\nX", "$a\\n'\n", 0),
    ("echo one \\\n  two", "one two\n", 0),
    ("echo 'a\nb'; echo \"c\n\nd\"", "a\nb\nc\n\nd\n", 0),
    ("f() {\n  echo in f\n}\nf", "in f\n", 0),
    ('echo "a!b" !! !x', "a!b !! !x\n", 0),
    ("echo 'grün 你好 🙂'", "grün 你好 🙂\n", 0),
    ("printf '%s' $'\\t|\\x01|' | od -An -c | tr -s ' '", " \\t | 001 |\n", 0),
    ("printf '%s' '\x01\x03\x04\x0f\x15\x16\x1a\x7f' | od -An -tx1", " 01 03 04 0f 15 16 1a 7f\n", 0),
    ("# a comment", "", 0),
    ("echo a; # a comment", "a\n", 0),
    ("echo `echo \\`echo nested\\`` '$x' \"\\$y\" \\\\", "nested $x $y \\\n", 0),
    ("echo {a,b}{1..3}; [[ abc == a* ]] && echo matches", "a1 a2 a3 b1 b2 b3\nmatches\n", 0),
    ("printf a", "a", 0),
    ("printf '%s' \"$-\" | tr -d 'a-gj-lo-zA-Z'", "him", 0),
    ("true", "", 0),
    ("echo b >&2; echo c", "b\nc\n", 0),
    ("echo before; (exit 7)", "before\n", 7),
    ("-n", None, 127),
    ("if true", None, 2),
    ("echo 'never closed", None, 2),
    ('echo "$(', None, 1),
    ("echo )", None, 2),
    ("{", None, 2),
    ("cat <<X\nnever closed", None, 0),
)


async def test_a_command_means_what_it_means_to_bash_and_the_next_one_works(terminal: Terminal) -> None:
    for command, text, code in TABLE:
        told = await terminal(command)
        assert (told.exit_code, told.is_error, told.running) == (code, code != 0, False), command
        assert told.text if text is None else told.text == text, command
        assert (await terminal("echo $?")).text == f"{code}\n", command
        assert (await terminal("echo fine")).text == "fine\n", command


async def test_a_command_of_any_length_arrives_whole(tmp_path: Path) -> None:
    lines = "".join(f"{number:5d} 'it' \"is\" $long \\ `x` é\n" for number in range(8_000))
    async with open_terminal(tmp_path) as terminal:
        told = await terminal(f"cat > long.txt <<'END'\n{lines}END\nwc -l < long.txt")
        assert told.text.strip() == "8000"
    assert (tmp_path / "long.txt").read_text() == lines


async def test_nothing_stops_to_show_a_page_at_a_time(terminal: Terminal) -> None:
    await terminal("git init -q . && git symbolic-ref HEAD refs/heads/main")
    commit = r"commit refs/heads/main\ncommitter n <a@b.c> %d +0000\ndata <<END\nnumber %d\nEND\n"
    await terminal(f"for i in $(seq 300); do printf '{commit}' $i $i; done | git fast-import --quiet")
    told = await terminal("git log --format=%s")
    assert told.text.startswith("number 300\n")
    assert told.text.endswith("number 1\n")


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
