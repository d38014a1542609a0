"""What the table of test_terminal.py can't say: ends that come unseen, calls at once, sessions, and shells that can't start."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from agentcore.errors import ToolError
from agentcore_tools.terminal import shell
from agentcore_tools.terminal.protocol import ack_line
from living import still_running
from opened_tool import Terminal, line_in, open_terminal


async def test_a_command_that_keeps_writing_is_waited_for(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, quiet=1.5) as terminal:
        told = await terminal("for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.25; done")
        assert told.text == "1\n2\n3\n4\n5\n6\n7\n8\n"
        assert told.exit_code == 0


async def test_a_command_that_writes_without_a_pause_is_answered_when_its_time_is_over(tmp_path: Path) -> None:
    async with open_terminal(tmp_path) as terminal:
        with anyio.fail_after(30):
            told = await terminal("yes", timeout=0.3)
            assert (told.running, told.timed_out) == (True, "limit")
            assert not (await terminal("C-c", is_input=True)).running


async def test_what_is_told_bit_by_bit_is_the_whole_put_together(tmp_path: Path, hasty: Terminal) -> None:
    os.mkfifo(tmp_path / "go")
    command = 'exec 3<> go; for i in 1 2 3; do printf "row $i: "; read -u 3 x; echo $x; done; printf end'
    text = (await hasty(command)).text
    with (tmp_path / "go").open("w") as go, anyio.fail_after(30):
        for word, end in (("a", "row 1: "), ("b", "row 2: "), ("c", "row 3: "), ("", "end")):
            # Each time it may be silent for longer than is waited.
            while not text.endswith(end):
                text += (await hasty()).text
            go.write(f"{word}\n")
            go.flush()
    assert text == "row 1: a\nrow 2: b\nrow 3: c\nend"


async def test_an_end_between_two_looks_is_told_by_the_second(tmp_path: Path, hasty: Terminal) -> None:
    os.mkfifo(tmp_path / "go")
    await hasty("read x < go; echo late; echo > ended; (exit 4)")
    (tmp_path / "go").write_text("\n")
    await line_in(tmp_path / "ended")
    told = await hasty(timeout=60)
    assert (told.text, told.exit_code) == ("late\n", 4)
    assert (await hasty()).problem == "nothing_running"


async def test_input_for_a_command_that_has_ended_is_not_typed_and_the_end_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    async with open_terminal(tmp_path, quiet=0.2, input_quiet=0.1) as terminal:
        await terminal("read x < go; echo late; (exit 4)")
        assert (await terminal("early", is_input=True)).running
        (tmp_path / "go").write_text("\n")
        with anyio.fail_after(20):
            while (told := await terminal("touch typed", is_input=True)).running:
                pass
        assert told.exit_code == 4
        assert not (tmp_path / "typed").exists()


async def test_input_that_was_under_way_when_its_command_ended_is_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The moment in which the shell has said that the command is over, and nobody has heard it yet.
    def late(nonce: int) -> bytes:
        return b"touch typed\ntouch typed; half a " + ack_line(nonce)

    monkeypatch.setattr(shell, "ack_line", late)
    async with open_terminal(tmp_path, quiet=0.2) as terminal:
        for _ in range(3):
            told = await terminal("echo one; (exit 4)", timeout=60)
            assert (told.text, told.exit_code) == ("one\n", 4)
        told = await terminal("stty echo; echo two", timeout=60)
        assert (told.text, told.exit_code) == ("two\n", 0)
        assert (await terminal("echo three", timeout=60)).text == "three\n"
    assert not (tmp_path / "typed").exists()


async def test_a_shell_that_hears_something_else_than_an_answer_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [b"\x00", b"\x03", b"\x04", b"\x04\x04\x04\x04", b"\x1c\x1a"]
    codes: list[int | None] = []

    def another(nonce: int) -> bytes:
        return answers.pop() if answers else ack_line(nonce)

    async def do_three(terminal: Terminal) -> None:
        for number in range(3):
            told = await terminal(f"echo {number}; (exit 4)", timeout=60)
            assert told.text.rstrip("\n") == str(number)
            codes.append(told.exit_code)

    # At once, because each waits for two seconds.
    async with AsyncExitStack() as opened:
        terminals = [await opened.enter_async_context(open_terminal(tmp_path)) for _ in answers]
        for terminal in terminals:
            await terminal("true")
        monkeypatch.setattr(shell, "ack_line", another)
        async with anyio.create_task_group() as tasks:
            for terminal in terminals:
                tasks.start_soon(do_three, terminal)
    # One of them is interrupted.
    assert Counter(codes) == {4: 14, 130: 1}


async def test_input_that_is_not_taken_is_told(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, quiet=0.2, type_seconds=0.5) as terminal:
        await terminal("stty raw; sleep 1000")
        with pytest.raises(ToolError, match="does not read"):
            await terminal("x" * 200_000, is_input=True)
        assert (await terminal(reset=True)).new_shell


async def test_an_end_between_two_commands_is_told_with_the_second(tmp_path: Path, hasty: Terminal) -> None:
    os.mkfifo(tmp_path / "go")
    await hasty("read x < go; echo late; (exit 4)")
    (tmp_path / "go").write_text("\n")
    with anyio.fail_after(20):
        # It has ended when another command is not refused any more.
        while (told := await hasty("echo next")).problem == "still_running":
            pass
    assert told.exit_code == 0
    assert "exit code 4" in told.text
    assert told.text.endswith("[From this command:]\nnext\n")


async def test_two_calls_at_once_take_turns(terminal: Terminal) -> None:
    texts: list[str] = []

    async def run(word: str) -> None:
        texts.append((await terminal(f"echo {word}; sleep 0.1; echo {word}")).text)

    async with anyio.create_task_group() as tasks:
        for word in ("a", "b", "c"):
            tasks.start_soon(run, word)
    assert sorted(texts) == ["a\na\n", "b\nb\n", "c\nc\n"]


async def test_a_command_of_any_length_arrives_whole(tmp_path: Path) -> None:
    lines = "".join(f"{number:5d} 'it' \"is\" $long \\ `x` é\n" for number in range(8_000))
    async with open_terminal(tmp_path) as terminal:
        told = await terminal(f"cat > long.txt <<'END'\n{lines}END\nwc -l < long.txt")
        assert told.text.strip() == "8000"
    assert (tmp_path / "long.txt").read_text() == lines


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


async def test_what_can_not_be_a_command_is_refused_with_advice(terminal: Terminal) -> None:
    with pytest.raises(ToolError, match="is_input"):
        await terminal("x", reset=True, is_input=True)
    for command in ("set -o vi", "set -o emacs; ls", "a\0b", '["ls", "-l"]', '{"command": "ls"}', "{'a': 1}"):
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


async def test_calls_in_different_sessions_run_at_once(tmp_path: Path, terminal: Terminal) -> None:
    os.mkfifo(tmp_path / "there")
    os.mkfifo(tmp_path / "back")
    async with anyio.create_task_group() as tasks:
        # Each waits for the other.
        tasks.start_soon(lambda: terminal("echo a > there; read x < back; echo $x", session="a"))
        tasks.start_soon(lambda: terminal("read x < there; echo b > back; echo $x", session="b"))


async def test_cancelling_a_call_ends_what_runs_in_its_session_alone(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, quiet=0.3) as terminal:
        await terminal("echo $BASHPID > one; exec sleep 1000", session="one")
        one, two = int(await line_in(tmp_path / "one")), 0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: terminal("bash -c 'echo $$ > two; exec sleep 1000'", session="two", timeout=600))
            two = int(await line_in(tmp_path / "two"))
            tasks.cancel_scope.cancel()
        assert still_running(one, two) == [one]
    assert still_running(one, two) == []


async def test_there_are_so_many_sessions_and_one_that_has_ended_makes_room(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, sessions=2) as terminal:
        await terminal("A=1")
        await terminal("true", session="two")
        with pytest.raises(ToolError, match="'default', 'two'"):
            await terminal("true", session="three")
        assert (await terminal("exit 0", session="two", timeout=60)).shell_ended
        assert (await terminal("echo three", session="three")).text == "three\n"
        with pytest.raises(ToolError, match="2 sessions are open"):
            await terminal("true", session="two")
        assert (await terminal("echo $A")).text == "1\n"


async def test_a_session_that_was_looked_at_is_none_and_one_with_a_command_is_closed_by_a_reset(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, quiet=0.3, sessions=1) as terminal:
        assert (await terminal("", session="zero")).problem == "nothing_running"
        await terminal("sleep 1000", session="one")
        assert (await terminal("exit 0", session="one", reset=True, timeout=60)).shell_ended
        assert (await terminal("echo two", session="two")).text == "two\n"
