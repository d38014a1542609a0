"""Much output, and output that holds secrets."""

from __future__ import annotations

import os
import re
from collections import deque
from pathlib import Path

import anyio
import psutil
import pytest

from agentcore.errors import SecretError, ToolError, WorkspaceError
from agentcore.secrets import SecretRegistry
from agentcore.tools import OUTPUT_LIMIT, Spool
from opened_tool import KeepingHost, Terminal, open_terminal

MEGABYTE = 1 << 20
LONG = "AGENTCORE_LONG_RUNS" in os.environ
"""Whether there is time for what takes minutes."""


def megabytes_of(process: psutil.Process) -> float:
    return process.memory_info().rss / MEGABYTE


@pytest.mark.parametrize(
    "megabytes",
    [
        8,
        pytest.param(100, marks=pytest.mark.slow),
        pytest.param(
            1024, marks=[pytest.mark.slow, pytest.mark.skipif(not LONG, reason="AGENTCORE_LONG_RUNS is not set")]
        ),
    ],
)
async def test_a_flood_is_kept_on_disk_in_bounded_memory_and_shown_from_both_ends(
    tmp_path: Path, megabytes: int
) -> None:
    process = psutil.Process()
    row = "0123456789" * 40
    with anyio.fail_after(1200):
        async with open_terminal(tmp_path, seconds=1200, keep_bytes=4 * MEGABYTE) as terminal:
            await terminal("true")
            before = megabytes_of(process)
            told = await terminal(f"echo the beginning; yes {row} | head -c {megabytes}M; echo; echo the end; (exit 3)")
            assert megabytes_of(process) - before < 12
        assert told.exit_code == 3
        assert len(told.text) < OUTPUT_LIMIT
        assert told.text.startswith("the beginning\n0123456789")
        assert told.text.endswith("\nthe end\n")
        (content,) = told.to_content()
        assert len(str(content)) < OUTPUT_LIMIT
        left_out = re.search(r"\[([0-9,]+) characters \(([0-9,]+) line ends\) omitted", told.text)
        assert left_out is not None
        shown = len(told.text) - len(
            f"\n{left_out[0]}. The beginning of the output is in {told.full_output_path}; the rest was not kept.]\n"
        )
        written = megabytes * MEGABYTE + len("the beginning\n\nthe end\n")
        assert int(left_out[1].replace(",", "")) + shown == written


async def test_of_what_is_on_disk_the_beginning_is_kept_up_to_the_bound_and_that_is_told(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, keep_bytes=1_000_000) as terminal:
        told = await terminal("seq 300000")
        assert told.full_output_path is not None
        assert f"The beginning of the output is in {told.full_output_path}; the rest was not kept.]" in told.text
        assert told.text.endswith("\n299999\n300000\n")
        kept = (await terminal.workspace.read(told.full_output_path)).decode()
        beginning, _, note = kept.rpartition("\n[The output went on")
        assert len(beginning) == 1_000_000
        assert "".join(f"{number}\n" for number in range(1, 300_001)).startswith(beginning)
        assert note


async def test_output_is_on_disk_while_the_command_runs(tmp_path: Path, hasty: Terminal) -> None:
    os.mkfifo(tmp_path / "go")
    told = await hasty("seq 20000; read x < go; seq 20001 40000; read x < go; echo end")
    assert told.running
    assert told.full_output_path is not None
    first = (await hasty.workspace.read(told.full_output_path)).decode()
    assert "".join(f"{number}\n" for number in range(1, 20_001)).startswith(first)
    assert len(first) > 100_000
    (tmp_path / "go").write_text("\n")
    assert (await hasty()).running
    (tmp_path / "go").write_text("\n")
    last = await hasty(timeout=60)
    whole = (await hasty.workspace.read(told.full_output_path)).decode()
    assert whole == "".join(f"{number}\n" for number in range(1, 40_001)) + "end\n"
    assert last.exit_code == 0


async def test_what_was_written_over_is_on_disk_as_it_ended(terminal: Terminal) -> None:
    told = await terminal(r"for i in {1..100}; do printf '%3d%%\r' $i; done; echo; seq 20000; printf 'no end'")
    assert told.full_output_path is not None
    whole = (await terminal.workspace.read(told.full_output_path)).decode()
    assert whole == "100%\n" + "".join(f"{number}\n" for number in range(1, 20_001)) + "no end"


async def test_the_output_of_a_shell_that_ended_is_on_disk(terminal: Terminal) -> None:
    told = await terminal("seq 20000; exit 3")
    assert told.shell_ended
    assert told.full_output_path is not None
    whole = (await terminal.workspace.read(told.full_output_path)).decode()
    assert whole.startswith("".join(f"{number}\n" for number in range(1, 20_001)))


async def test_a_line_without_an_end_is_kept_in_bounded_memory(terminal: Terminal) -> None:
    process = psutil.Process()
    await terminal("true")
    before = megabytes_of(process)
    told = await terminal("head -c 16M /dev/zero | tr '\\0' x; echo end")
    assert megabytes_of(process) - before < 12
    assert told.text.endswith("xend\n")


async def test_of_what_is_longer_than_is_shown_all_can_be_read(tmp_path: Path, terminal: Terminal) -> None:
    told = await terminal("seq 20000")
    assert told.full_output_path is not None
    assert told.text.startswith("1\n2\n")
    assert told.text.endswith("19999\n20000\n")
    assert (await terminal(f"sed -n 10000,10002p {told.full_output_path}")).text == "10000\n10001\n10002\n"
    assert not told.full_output_path.startswith(str(tmp_path))


class FullHost(KeepingHost):
    async def open_spool(self, name: str, limit: int) -> Spool:
        raise WorkspaceError("there is no room")


async def test_an_output_that_can_not_be_kept_is_told_from_both_ends(terminal: Terminal) -> None:
    terminal.host = FullHost(terminal.workspace, SecretRegistry())
    told = await terminal("seq 20000")
    assert told.full_output_path is None
    assert told.text.startswith("1\n2\n")
    assert told.text.endswith("19999\n20000\n")
    assert "omitted. They were not kept.]" in told.text


async def test_what_just_fits_is_shown_whole(terminal: Terminal) -> None:
    told = await terminal("head -c 27999 /dev/zero | tr '\\0' x; echo")
    assert told.full_output_path is None
    assert told.text == "x" * 27999 + "\n"


async def test_no_half_of_a_secret_is_left_where_the_output_is_cut(tmp_path: Path) -> None:
    secret = "correct-horse-battery-staple-" * 10
    async with open_terminal(tmp_path, secrets={"TOKEN": secret}) as terminal:
        told = await terminal("for i in $(seq 200); do printf '%s' \"$TOKEN\"; seq 50; done")
        assert told.full_output_path is not None
        assert "horse" not in told.text
        assert "<secret:TOKEN>1\n2\n" in told.text
        assert b"horse" not in await terminal.workspace.read(told.full_output_path)


async def test_a_secret_that_is_torn_apart_by_what_is_left_out_is_shown_nowhere(tmp_path: Path) -> None:
    secret = "".join(f"line {number} of the key\n" for number in range(200))
    async with open_terminal(tmp_path, secrets={"KEY": secret}) as terminal:
        told = await terminal('for i in {1..300}; do printf %s "$KEY"; done')
        assert told.full_output_path is not None
        assert "of the key" not in told.text
        assert " omitted. Full output: " in told.text
        assert b"of the key" not in await terminal.workspace.read(told.full_output_path)


async def test_a_secret_that_no_environment_can_hold_is_refused(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, secrets={"TOKEN": "correct\0horse"}) as terminal:
        with pytest.raises(ToolError, match="TOKEN"):
            await terminal("echo $TOKEN")


async def test_a_secret_is_in_no_history(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, secrets={"TOKEN": "correct-horse"}) as terminal:
        await terminal("set -o history; HISTFILE=$PWD/history; true")
        await terminal("echo ${#TOKEN}")
        told = await terminal("history | grep -c horse; history -a; cat history 2>/dev/null | grep -c horse")
        assert told.text == "0\n0\n"


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


async def test_of_a_flood_people_see_both_ends_and_how_much_is_missing(tmp_path: Path) -> None:
    async with open_terminal(tmp_path) as terminal:
        terminal.host.shown = deque()
        await terminal("seq 1 30000")
        shown = "".join(terminal.host.shown).replace("\r", "")
    missing = re.findall(r"characters \(([0-9,]+) line ends\) omitted", shown)
    assert shown.startswith("1\n2\n")
    assert shown.endswith("\n29999\n30000\n")
    lines = len(re.sub(r"\n?\[[0-9,]+ characters .*\]\n", "", shown).split("\n")) - 1
    assert lines + sum(int(number.replace(",", "")) for number in missing) == pytest.approx(
        30_000, abs=2 * len(missing)
    )
