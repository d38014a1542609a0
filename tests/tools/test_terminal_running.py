"""A command that goes on: waiting for it, typing into it, and what is told of it when it ends unseen."""

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
from opened_tool import Terminal, line_in, open_terminal


async def test_a_command_that_keeps_writing_is_waited_for(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, quiet=1.5) as terminal:
        told = await terminal("for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.25; done")
        assert told.text == "1\n2\n3\n4\n5\n6\n7\n8\n"
        assert told.exit_code == 0


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
