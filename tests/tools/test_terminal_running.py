"""A command that goes on: waiting for it, typing into it, and what is told of it when it ends unseen."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from agentcore.errors import ToolError
from agentcore.stuck import STILL_RUNNING
from agentcore_tools.terminal import shell
from agentcore_tools.terminal.protocol import ack_line
from opened_tool import Terminal, line_in, open_terminal


async def test_a_silent_command_is_told_to_be_running_and_goes_on(tmp_path: Path, hasty: Terminal) -> None:
    os.mkfifo(tmp_path / "go")
    told = await hasty("echo first; read line < go; echo got $line; (exit 3)")
    assert (told.text, told.running, told.timed_out, told.exit_code) == ("first\n", True, "quiet", None)
    assert told.to_data()[STILL_RUNNING] is True
    assert not told.is_error
    (tmp_path / "go").write_text("it\n")
    ended = await hasty(timeout=60)
    assert (ended.text, ended.exit_code, ended.running) == ("got it\n", 3, False)
    assert ended.to_data()[STILL_RUNNING] is False


async def test_a_command_that_keeps_writing_is_waited_for(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, quiet=1.5) as terminal:
        told = await terminal("for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.25; done")
        assert told.text == "1\n2\n3\n4\n5\n6\n7\n8\n"
        assert told.exit_code == 0


async def test_a_timeout_ends_the_wait_and_not_the_command(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, quiet=0.01) as terminal:
        told = await terminal("while :; do echo again; sleep 0.05; done", timeout=1)
        assert (told.running, told.timed_out) == (True, "limit")
        assert "again\n" in told.text
        assert (await terminal(timeout=0)).running


async def test_a_timeout_takes_the_place_of_the_wait_for_silence(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, quiet=0.05) as terminal:
        told = await terminal("sleep 0.5; echo done", timeout=60)
        assert (told.text, told.running) == ("done\n", False)


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


async def test_another_command_is_not_run_and_the_output_so_far_is_told(tmp_path: Path, hasty: Terminal) -> None:
    await hasty("echo one; cat")
    told = await hasty("touch made")
    assert (told.problem, told.running, told.is_error) == ("still_running", True, True)
    assert told.to_data()[STILL_RUNNING] is True
    assert not (tmp_path / "made").exists()
    (content,) = told.to_content()
    assert "was not run" in str(content)


async def test_text_is_typed_with_enter_behind_it(hasty: Terminal) -> None:
    await hasty("read -p 'name? ' name; read -p 'age? ' age; echo \"<$name> <$age>\"")
    assert (await hasty("Ada L.", is_input=True, timeout=1)).text == "age? "
    told = await hasty("36", is_input=True, timeout=60)
    assert (told.text, told.exit_code) == ("<Ada L.> <36>\n", 0)


async def test_several_lines_are_typed_one_after_the_other(hasty: Terminal) -> None:
    await hasty("read a; read b; echo $b-$a")
    assert (await hasty("x\ny\n", is_input=True, timeout=60)).text == "y-x\n"


async def test_the_end_of_the_input_is_a_key(tmp_path: Path, hasty: Terminal) -> None:
    await hasty("cat > typed.txt; echo end")
    await hasty("a line", is_input=True, timeout=0)
    assert (await hasty("C-d", is_input=True, timeout=60)).text == "end\n"
    assert (tmp_path / "typed.txt").read_text() == "a line\n"


@pytest.mark.parametrize("key", ["C-c", "C-C", "c-c", "^C", "Ctrl-C", "ctrl+c"])
async def test_a_command_is_interrupted_by_its_key_and_the_shell_lives_on(key: str, hasty: Terminal) -> None:
    await hasty("A=kept")
    await hasty("sleep 1000; echo not this")
    told = await hasty(key, is_input=True, timeout=60)
    assert (told.exit_code, told.text.strip()) == (130, "")
    assert (await hasty("echo $A")).text == "kept\n"


async def test_a_key_without_is_input_is_typed_all_the_same_where_something_runs(hasty: Terminal) -> None:
    await hasty("sleep 1000")
    assert (await hasty("C-c", timeout=60)).exit_code == 130
    assert (await hasty("C-c", timeout=60)).exit_code == 127


async def test_a_stopped_job_gives_the_shell_back(hasty: Terminal) -> None:
    await hasty("cat")
    told = await hasty("C-z", is_input=True, timeout=60)
    assert told.exit_code == 148
    assert "Stopped" in told.text
    assert "cat" in (await hasty("jobs")).text


@pytest.mark.parametrize(
    ("key", "bytes_"),
    [
        ("UP", "1b 5b 41"),
        ("TAB", "09"),
        ("ESC", "1b"),
        ("BS", "7f"),
        ("ENTER", "0d"),
        ("C-a", "01"),
        ("PGDN", "1b 5b 36 7e"),
    ],
)
async def test_keys_are_what_a_terminal_sends(key: str, bytes_: str, hasty: Terminal) -> None:
    count = len(bytes_.split())
    await hasty(f"stty raw; echo ready; head -c {count} | od -An -tx1")
    assert (await hasty(key, is_input=True, timeout=60)).text.strip() == bytes_


@pytest.mark.parametrize(("command", "is_input"), [("", False), ("yes", True), ("C-c", True), (" \n", False)])
async def test_there_is_nothing_to_wait_for_or_to_type_into_when_nothing_runs(
    command: str, is_input: bool, terminal: Terminal
) -> None:
    before = await terminal(command, is_input=is_input)
    await terminal("true")
    after = await terminal(command, is_input=is_input)
    assert [each.problem for each in (before, after)] == ["nothing_running"] * 2
    assert before.is_error
    assert not before.running


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


async def test_input_that_comes_too_late_is_not_run_as_a_command(hasty: Terminal) -> None:
    # Nothing reads the lines, so they wait in the terminal when the command ends.
    await hasty("sleep 1.5")
    for line in ("touch one", "touch two", "C-d", "UP"):
        await hasty(line, is_input=True, timeout=0)
    ended = await hasty(timeout=60)
    assert ended.exit_code == 0
    told = await hasty("echo alive; ls")
    assert told.text == "alive\n"
    assert not told.new_shell


async def test_what_the_background_writes_later_is_told_with_the_next_command(
    tmp_path: Path, terminal: Terminal
) -> None:
    os.mkfifo(tmp_path / "go")
    await terminal("(read x < go; echo from behind; echo > said) &")
    (tmp_path / "go").write_text("\n")
    await line_in(tmp_path / "said")
    texts = [(await terminal("echo in front")).text, (await terminal("wait; echo end")).text]
    assert "from behind\n" in "".join(texts)
    assert "in front\n" in texts[0]


async def test_reset_ends_what_runs_and_starts_anew(tmp_path: Path, hasty: Terminal) -> None:
    await hasty("mkdir sub; cd sub; A=1; trap '' TERM HUP INT; echo going on; sleep 1000")
    told = await hasty(reset=True)
    assert told.new_shell
    assert (told.exit_code, told.running, told.is_error) == (None, False, False)
    fresh = await hasty("echo [$A]; pwd")
    assert fresh.text == f"[]\n{tmp_path}\n"
    assert not fresh.new_shell


async def test_reset_with_a_command_runs_it_in_the_new_shell(hasty: Terminal) -> None:
    await hasty("A=1; cat")
    told = await hasty("echo [$A]", reset=True)
    assert (told.text, told.new_shell, told.exit_code) == ("[]\n", True, 0)
    assert "new shell" in str(told.to_content())


async def test_reset_with_input_is_refused(terminal: Terminal) -> None:
    with pytest.raises(ToolError, match="is_input"):
        await terminal("x", reset=True, is_input=True)


async def test_two_calls_at_once_take_turns(terminal: Terminal) -> None:
    texts: list[str] = []

    async def run(word: str) -> None:
        texts.append((await terminal(f"echo {word}; sleep 0.1; echo {word}")).text)

    async with anyio.create_task_group() as tasks:
        for word in ("a", "b", "c"):
            tasks.start_soon(run, word)
    assert sorted(texts) == ["a\na\n", "b\nb\n", "c\nc\n"]
