"""Much output, and output that holds secrets."""

from __future__ import annotations

import os
import re
from collections import deque
from pathlib import Path
from typing import cast

import anyio
import psutil
import pytest

from agentcore.errors import SecretError, ToolError, WorkspaceError
from agentcore.secrets import SecretRegistry
from agentcore.tools import OUTPUT_LIMIT, Spool
from opened_tool import KeepingHost, Terminal, open_terminal
from rounds import rounds, some_quick

MEGABYTE = 1 << 20
LONG = "AGENTCORE_LONG_RUNS" in os.environ
"""Whether there is time for what takes minutes."""


def megabytes_of(process: psutil.Process) -> float:
    return process.memory_info().rss / MEGABYTE


@pytest.mark.parametrize(
    "megabytes",
    [
        8,
        pytest.param(rounds(100), marks=pytest.mark.slow),
        pytest.param(
            rounds(1024),
            marks=[pytest.mark.slow, pytest.mark.skipif(not LONG, reason="AGENTCORE_LONG_RUNS is not set")],
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
    os.mkfifo(tmp_path / "on")
    told = await hasty("seq 20000; read x < go; seq 20001 40000; read x < on; echo end")
    assert told.running
    assert told.full_output_path is not None
    first = (await hasty.workspace.read(told.full_output_path)).decode()
    assert "".join(f"{number}\n" for number in range(1, 20_001)).startswith(first)
    assert len(first) > 100_000
    (tmp_path / "go").write_text("\n")
    assert (await hasty()).running
    (tmp_path / "on").write_text("\n")
    last = await hasty(timeout=60)
    whole = (await hasty.workspace.read(told.full_output_path)).decode()
    assert whole == "".join(f"{number}\n" for number in range(1, 40_001)) + "end\n"
    assert last.exit_code == 0


@pytest.mark.slow
async def test_a_line_without_an_end_is_kept_in_bounded_memory(terminal: Terminal) -> None:
    process = psutil.Process()
    await terminal("true")
    before = megabytes_of(process)
    told = await terminal("head -c 16M /dev/zero | tr '\\0' x; echo end")
    assert megabytes_of(process) - before < 12
    assert told.text.endswith("xend\n")


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


NUMBERS = "".join(f"{number}\n" for number in range(1, 20_001))


@pytest.mark.parametrize(
    ("command", "whole"),
    some_quick(
        [
            ("seq 20000", NUMBERS),
            (
                r"for i in {1..100}; do printf '%3d%%\r' $i; done; echo; seq 20000; printf 'no end'",
                f"100%\n{NUMBERS}no end",
            ),
            ("seq 20000; exit 3", f"{NUMBERS}exit\n"),
            ("head -c 28001 /dev/zero | tr '\\0' x", "x" * 28_001),
            ("head -c 28000 /dev/zero | tr '\\0' x", None),
        ],
        5,
    ),
)
async def test_of_what_is_longer_than_is_shown_all_is_on_disk(
    tmp_path: Path, command: str, whole: str | None, terminal: Terminal
) -> None:
    told = await terminal(command)
    if whole is None:
        assert (told.text, told.full_output_path) == ("x" * 28_000, None)
        return
    assert told.full_output_path is not None
    assert not told.full_output_path.startswith(str(tmp_path))
    assert (await terminal.workspace.read(told.full_output_path)).decode().removesuffix("exit\n") == whole.removesuffix(
        "exit\n"
    )
    head, notice, tail = re.split(r"\n(\[[0-9,]+ characters .* omitted\. Full output: .*\])\n", told.text)
    assert told.full_output_path in notice
    assert head
    assert whole.startswith(head)
    assert tail.removesuffix("exit\n")[-6:] == whole.removesuffix("exit\n")[-6:]


class FullHost(KeepingHost):
    async def open_spool(self, name: str, limit: int) -> Spool:
        raise WorkspaceError("there is no room")


async def test_an_output_that_can_not_be_kept_is_told_from_both_ends(terminal: Terminal) -> None:
    terminal.host = FullHost(terminal.workspace, SecretRegistry())
    told = await terminal("seq 20000")
    assert told.full_output_path is None
    assert (told.text[:4], told.text[-12:]) == ("1\n2\n", "19999\n20000\n")
    assert "omitted. They were not kept.]" in told.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("secret", "command", "shown"),
    [
        (
            "correct-horse-battery-" * 13,
            "for i in $(seq 200); do printf '%s' \"$KEY\"; seq 50; done",
            "<secret:KEY>1\n2\n",
        ),
        ("a horse in a line\n" * 200, 'for i in {1..300}; do printf %s "$KEY"; done', " omitted. Full output: "),
    ],
)
async def test_no_half_of_a_secret_is_left_where_the_output_is_cut(
    tmp_path: Path, secret: str, command: str, shown: str
) -> None:
    async with open_terminal(tmp_path, secrets={"KEY": secret}) as terminal:
        told = await terminal(command)
        assert told.full_output_path is not None
        assert shown in told.text
        assert "horse" not in told.text
        assert b"horse" not in await terminal.workspace.read(told.full_output_path)


TOKEN = "ujOeHwdFcAefAZhnM6Jy8c1rihtYlKNxHddmQAtK"


class CountingSpool:
    """A spool that says when it has been appended so many characters."""

    def __init__(self, spool: Spool, count: int) -> None:
        self._spool = spool
        self._left = count
        self.reached = anyio.Event()

    def __getattr__(self, name: str) -> object:
        return getattr(self._spool, name)

    async def append(self, text: str) -> None:
        self._left -= len(text)
        if self._left <= 0:
            self.reached.set()
        await self._spool.append(text)


class SlowHost(KeepingHost):
    """Is busy with the first piece until nearly all of a flood has come."""

    spool_of_flood: CountingSpool | None = None

    async def open_spool(self, name: str, limit: int) -> Spool:
        self.spool_of_flood = CountingSpool(await super().open_spool(name, limit), 855_000)
        return cast("Spool", self.spool_of_flood)

    async def progress(self, action_id: str, text: str) -> None:
        if not self.shown:
            with anyio.fail_after(60):
                while self.spool_of_flood is None:
                    await anyio.sleep(0.005)
                # What was written is not yet what has come: a box has much of it on the way.
                await self.spool_of_flood.reached.wait()
        await super().progress(action_id, text)


@pytest.mark.parametrize("lead", some_quick(range(0, 60, 7), 4))
async def test_no_half_of_a_secret_is_left_where_a_flood_is_cut_for_people(tmp_path: Path, lead: int) -> None:
    secrets = SecretRegistry({"TOKEN": TOKEN})
    # More than twice what a terminal keeps for people without a gap: so there is one in the first piece or in the second.
    (tmp_path / "env.log").write_text("=" * lead + f"export TOKEN={TOKEN}\n" * 16_000)
    async with open_terminal(tmp_path, secrets={"TOKEN": TOKEN}) as terminal:
        host = terminal.host = SlowHost(terminal.workspace, secrets)
        host.shown = deque()
        await terminal("echo start; cat env.log")
        shown = secrets.mask("".join(host.shown))
    assert " omitted. " in shown
    assert shown.startswith("start\n")
    assert shown.endswith("export TOKEN=<secret:TOKEN>\n")
    assert not [at for at in range(len(TOKEN) - 3) if TOKEN[at : at + 4] in shown]


@pytest.mark.parametrize(
    ("secret", "cut"),
    some_quick(
        [
            (TOKEN, 20),
            (TOKEN, 1),
            ("".join(f"{number} sheep in a row\n" for number in range(8)), 70),
            # More rows than there are on the screen, and a row that is given out in parts.
            ("".join(f"{number} sheep in a row\n" for number in range(200)), 3000),
            ("".join(f"{number} sheep " for number in range(3_000)), 30_000),
        ],
        5,
    ),
)
async def test_a_secret_that_goes_on_after_an_answer_is_whole_in_the_next(
    tmp_path: Path, secret: str, cut: int
) -> None:
    for name in ("go", "on"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "one").write_text("=" * 50_000 + "\nkey: " + secret[:cut])
    (tmp_path / "two").write_text(secret[cut:])
    async with open_terminal(tmp_path, quiet=0.3, secrets={"KEY": secret}) as terminal:
        terminal.host.shown = deque()
        first = await terminal("cat one; read x < go; cat two; read x < on; echo end")
        assert first.running
        assert first.text.endswith("=\nkey: ")
        assert "".join(terminal.host.shown).endswith("=\nkey: ")
        assert (await terminal()).text == ""
        terminal.host.shown.clear()
        (tmp_path / "go").write_text("\n")
        second = await terminal()
        assert second.text == secret or second.text.startswith("<secret:KEY>")
        assert "".join(terminal.host.shown) == secret
        (tmp_path / "on").write_text("\n")
        assert (await terminal(timeout=60)).text == "end\n"


async def test_the_beginning_of_a_secret_comes_when_the_command_ends_or_writes_over_it(tmp_path: Path) -> None:
    for name in ("go", "on"):
        os.mkfifo(tmp_path / name)
    async with open_terminal(tmp_path, quiet=0.3, secrets={"KEY": TOKEN}) as terminal:
        command = f"printf 'a\n{TOKEN[:9]}'; read x < go; printf '\r%s' {TOKEN}; read x < on; printf ' {TOKEN[:9]}'"
        assert (await terminal(command)).text == "a\n"
        (tmp_path / "go").write_text("\n")
        assert (await terminal()).text == TOKEN
        (tmp_path / "on").write_text("\n")
        last = await terminal(timeout=60)
        assert (last.text, last.exit_code) == (f" {TOKEN[:9]}", 0)


async def test_a_secret_that_can_not_be_had_or_given_is_told_and_nothing_is_run(tmp_path: Path) -> None:
    def locked() -> str:
        raise PermissionError("locked")

    async with open_terminal(tmp_path, secrets={"VAULT": locked, "NUL": "correct\0horse"}) as terminal:
        with pytest.raises(SecretError, match="VAULT"):
            await terminal("touch made; echo $VAULT")
        with pytest.raises(ToolError, match="NUL"):
            await terminal("touch made; echo $NUL")
        assert (await terminal("ls; echo fine")).text == "fine\n"
