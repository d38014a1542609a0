from __future__ import annotations

import pytest

from agentcore.cli.output import Output


def numbers(first: int, end: int) -> list[str]:
    return [str(number) for number in range(first, end)]


def test_a_short_output_is_shown_as_it_comes_without_blank_ends() -> None:
    output = Output(whole=False)
    assert output.feed("\n\none\n\ntw") == ["one"]
    assert output.newest == "tw"
    assert output.feed("o\n\n") == ["", "two"]
    assert output.lines == 3
    assert output.feed("Password: ") == []
    assert output.finish() == (["", "Password: "], 0, [])


@pytest.mark.parametrize(("lines", "last"), [(48, 30), (49, 39), (1000, 990)])
def test_of_a_long_output_the_first_and_the_last_lines_are_shown(lines: int, last: int) -> None:
    output = Output(whole=False)
    assert output.feed("\n".join([*numbers(0, lines), ""])) == numbers(0, 30)
    assert output.finish() == ([], last - 30, numbers(last, lines))
    assert output.lines == lines
    assert len(Output(whole=True).feed("x\n" * lines)) == lines


def test_a_progress_bar_is_one_line_however_long_it_goes_on() -> None:
    output = Output(whole=False)
    assert output.feed("one\n10%\r20%\r\x1b[32m3") == ["one"]
    assert output.newest == "3"
    assert output.feed("0%\r") == []
    assert output.newest == "30%"
    for number in range(20_000):
        assert output.feed(f"\rat {number} of 20000") == []
    assert output.feed("\r\n10%\x1b[1G20%\x1b[") == ["at 19999 of 20000"]
    assert output.feed("0G30%\n") == ["30%"]


@pytest.mark.parametrize("moving", ["\x1b[3A", "\x1b[A", "\x1b[?1049h", "\x1b[12;40H", "\x1b[5d", "\x1b[H", "\x1b[2F"])
def test_of_what_moves_about_on_the_screen_no_lines_are_shown(moving: str) -> None:
    output = Output(whole=False)
    assert output.feed(f"one\ntwo\nthree\n{moving[:2]}") == ["one", "two", "three"]
    assert output.feed(f"{moving[2:]}four\nfive") == []
    assert output.redrawn
    assert output.newest == "five"
    assert output.finish() == ([], 0, [])
    assert output.left_of(["one", "two", "three", "five"]) == 3
    assert output.left_of(["one", "four"]) == 0


@pytest.mark.parametrize("clearing", ["\x1b[H\x1b[2J\x1b[3J", "\x1b[H\x1b[J", "\x1b[2J\x1b[H"])
def test_what_clears_the_screen_goes_on_line_by_line(clearing: str) -> None:
    output = Output(whole=False)
    assert output.feed(f"one\n{clearing}two\n\x1b[31mred\x1b[0m\x1b[K\n") == ["one", "two", "red"]
    assert not output.redrawn
