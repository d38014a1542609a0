"""Much output, and output that holds secrets."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from agentcore.errors import SecretError, WorkspaceError
from agentcore.secrets import SecretRegistry
from agentcore.tools import OUTPUT_LIMIT
from opened_tool import KeepingHost, open_terminal

FLOOD = 32 << 20
"""Bytes: more than may be kept of them, by a good deal."""


async def test_a_flood_is_kept_in_bounded_memory_and_shown_from_both_ends(tmp_path: Path) -> None:
    process = psutil.Process()
    async with open_terminal(tmp_path) as terminal:
        await terminal("true")
        before = process.memory_info().rss
        row = "0123456789" * 40
        told = await terminal(f"echo the beginning; yes {row} | head -c {FLOOD}; echo; echo the end; (exit 3)")
        assert process.memory_info().rss - before < FLOOD * 3 // 4
        assert told.exit_code == 3
        assert len(told.text) < OUTPUT_LIMIT
        assert told.text.startswith("the beginning\n0123456789")
        assert told.text.endswith("\nthe end\n")
        assert told.whole_at is not None
        assert told.whole_at in told.text
        whole = (await terminal.workspace.read(told.whole_at)).decode()
        assert whole.startswith("the beginning\n")
        assert whole.endswith("\nthe end\n")
        assert 1_900_000 < len(whole) < 2_300_000
        assert "were not kept]" in whole
        (content,) = told.to_content()
        assert len(str(content)) < OUTPUT_LIMIT


async def test_a_line_without_an_end_is_kept_in_bounded_memory(tmp_path: Path) -> None:
    process = psutil.Process()
    async with open_terminal(tmp_path) as terminal:
        await terminal("true")
        before = process.memory_info().rss
        told = await terminal(f"head -c {FLOOD} /dev/zero | tr '\\0' x; echo end")
        assert process.memory_info().rss - before < FLOOD * 3 // 4
        assert told.text.endswith("xend\n")


async def test_of_what_is_longer_than_is_shown_all_can_be_read(tmp_path: Path) -> None:
    async with open_terminal(tmp_path) as terminal:
        told = await terminal("seq 20000")
        assert told.whole_at is not None
        assert told.text.startswith("1\n2\n")
        assert told.text.endswith("19999\n20000\n")
        assert (await terminal(f"sed -n 10000,10002p {told.whole_at}")).text == "10000\n10001\n10002\n"
        assert not told.whole_at.startswith(str(tmp_path))


class FullHost(KeepingHost):
    async def spool(self, name: str, data: bytes) -> str:
        raise WorkspaceError("there is no room")


async def test_an_output_that_can_not_be_kept_is_left_to_the_conversation_to_cut(tmp_path: Path) -> None:
    async with open_terminal(tmp_path) as terminal:
        terminal.host = FullHost(terminal.workspace, SecretRegistry())
        told = await terminal("seq 20000")
        assert told.whole_at is None
        assert told.text.count("\n") == 20000


async def test_what_just_fits_is_shown_whole(tmp_path: Path) -> None:
    async with open_terminal(tmp_path) as terminal:
        told = await terminal("head -c 27999 /dev/zero | tr '\\0' x; echo")
        assert told.whole_at is None
        assert told.text == "x" * 27999 + "\n"


async def test_no_half_of_a_secret_is_left_where_the_output_is_cut(tmp_path: Path) -> None:
    secret = "correct-horse-battery-staple-" * 10
    async with open_terminal(tmp_path, secrets={"TOKEN": secret}) as terminal:
        told = await terminal("for i in $(seq 200); do printf '%s' \"$TOKEN\"; seq 50; done")
        assert told.whole_at is not None
        assert "horse" not in told.text
        assert "<secret:TOKEN>1\n2\n" in told.text
        assert b"horse" not in await terminal.workspace.read(told.whole_at)


async def test_a_secret_is_there_for_the_command_that_names_it_and_gone_afterwards(tmp_path: Path) -> None:
    async with open_terminal(
        tmp_path, secrets={"API_TOKEN": "correct horse\n'$x' é", "OTHER": "another one"}
    ) as terminal:
        told = await terminal(
            'echo "$API_TOKEN"; : "$API_TOKEN"; env | grep -c another; sh -c \'echo child: ${#API_TOKEN}\''
        )
        assert told.text == "correct horse\n'$x' é\n0\nchild: 21\n"
        told = await terminal("env | grep -c horse; set | grep -c horse; declare -p | grep -c horse")
        assert told.text == "0\n0\n0\n"
        assert (await terminal('echo "[$OTHER]"')).text == "[another one]\n"


async def test_a_name_inside_another_word_is_not_that_name(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, secrets={"TOKEN": "correct horse"}) as terminal:
        assert (await terminal("echo $MY_TOKEN $TOKENS; env | grep -c horse")).text == "\n0\n"
        assert (await terminal("python3 -c 'import os; print(os.environ[\"TOKEN\"])'")).text == "correct horse\n"


async def test_a_variable_of_the_same_name_is_as_it_was_after_the_command(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, secrets={"API_TOKEN": "correct horse"}) as terminal:
        await terminal("export ''API_''TOKEN=mine; declare ''API_TOKE''N=mine")
        for command in (
            "echo $API_TOKEN",
            "echo $API_TOKEN; echo ${none:?}",
            "f() { echo $API_TOKEN; return 3; }; f",
            "set -o posix; echo $API_TOKEN",
        ):
            assert (await terminal(command)).text.startswith("correct horse\n")
            assert (await terminal("env | grep API_TOKE")).text == "API_TOKEN=mine\n"


async def test_a_secret_is_gone_after_an_interrupted_command_too(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, quiet=0.3, secrets={"TOKEN": "correct horse"}) as terminal:
        assert (await terminal("echo ${#TOKEN}; sleep 1000")).running
        assert (await terminal("C-c", is_input=True, timeout=60)).exit_code == 130
        assert (await terminal("env | grep -c horse; set | grep -c horse")).text == "0\n0\n"


async def test_a_secret_that_can_not_be_had_is_told_and_nothing_is_run(tmp_path: Path) -> None:
    def locked() -> str:
        raise PermissionError("locked")

    async with open_terminal(tmp_path, secrets={"VAULT": locked}) as terminal:
        with pytest.raises(SecretError, match="VAULT"):
            await terminal("touch made; echo $VAULT")
        assert not (tmp_path / "made").exists()
        assert (await terminal("echo fine")).text == "fine\n"


async def test_a_secret_is_typed_where_nobody_can_list_it(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, secrets={"TOKEN": "correct-horse"}) as terminal:
        told = await terminal(
            "[ -n \"$TOKEN\" ] && cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c '[c]orrect.horse'"
        )
        assert told.text == "0\n"
