"""What people see of a command while it runs."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from agentcore_tools.terminal.screen import LiveTail, Screen
from opened_tool import open_terminal


def taken(*pieces: str, limit: int = 20) -> str:
    live = LiveTail(limit)
    for piece in pieces:
        live.add(piece)
    return live.take()


def test_what_was_written_is_given_once_and_as_it_came() -> None:
    live = LiveTail()
    live.add("one\r\n\x1b[31mtw\0o")
    assert live.take() == "one\r\n\x1b[31mtwo"
    assert live.take() == ""


def test_of_too_much_the_beginning_and_the_end_are_shown_and_what_is_missing_is_counted() -> None:
    numbered = [f"line {number}\n" for number in range(100)]
    assert taken(*numbered) == "line 0\nline 1\n[97 lines came too fast to be shown]\nline 99\n"


def test_lines_that_are_cut_are_counted_once() -> None:
    # The first piece ends, and the last begins, in the middle of a line: "a..." is shown in part, "...d" is missing.
    assert taken("0\naaaaaaaaaa", "aa\nb\nc\ndd", "dddd\nend\neeeee") == (
        "0\naaaaaaaaaa\n[3 lines came too fast to be shown]\nend\neeeee"
    )


def test_a_line_without_an_end_is_shown_in_part() -> None:
    assert taken("x" * 12, "y" * 12, "z" * 12) == f"{'x' * 12} [...] {'z' * 12}"
    assert taken("x\n" * 6, "y\n" * 6, "z" * 12) == "x\n" * 6 + "[6 lines came too fast to be shown]\n" + "z" * 12


async def test_nothing_of_a_flood_goes_missing_unsaid(tmp_path: Path) -> None:
    async with open_terminal(tmp_path) as terminal:
        terminal.host.shown = deque()
        await terminal("seq 1 30000")
        shown = "".join(terminal.host.shown).replace("\r", "").splitlines()
    assert shown[0] == "1"
    assert shown[-1] == "30000"
    lines = 0
    for line in shown:
        missing = line.startswith("[")
        lines += int(line[1:].split()[0].replace(",", "")) if missing else 1
    assert lines == 30_000


def test_who_watches_sees_text_and_what_leads_elsewhere_and_no_other_sequence() -> None:
    screen = Screen(80, 24)
    assert screen.feed("\x1b]0;title\x07\x1b[1;31mred\x1b[0m\x1b[K\r\n10%\x1b[1G20%\r30%\n") == "red\n10%\r20%\r30%\n"
    assert screen.feed("\x1b[2Aup\x1b[?25l\x1b[5;7Hthere\x1b[C\x1b[9d") == "\x1b[2Aup\x1b[5;7Hthere\x1b[9d"
    assert screen.feed("\x1b[H\x1b[2Jclear\x1b[?1049hown\x1b[?1049l\x1b[12Gx") == "\x1b[H\x1b[2Jclear\x1b[?1049hownx"
