from __future__ import annotations

import pytest

from agentcore.cli.output import Output


def test_a_short_output_is_shown_as_it_comes() -> None:
    output = Output(whole=False)
    assert output.feed("one\ntw") == ["one"]
    assert output.newest == "tw"
    assert output.feed("o\n") == ["two"]
    assert output.finish() == ([], 0, [])


def test_of_a_long_output_the_first_and_the_last_lines_are_shown() -> None:
    output = Output(whole=False)
    shown = output.feed("".join(f"{number}\n" for number in range(1000)))
    more, left_out, last = output.finish()
    assert shown[0] == "0"
    assert more == []
    assert last[-1] == "999"
    assert len(shown) + left_out + len(last) == output.lines == 1000


def test_a_few_lines_are_never_left_out() -> None:
    output = Output(whole=False)
    shown = output.feed("".join(f"{number}\n" for number in range(48)))
    _, left_out, last = output.finish()
    assert left_out == 0
    assert [*shown, *last] == [str(number) for number in range(48)]
    more = Output(whole=False)
    more.feed("".join(f"{number}\n" for number in range(49)))
    assert more.finish() == ([], 9, [str(number) for number in range(39, 49)])


def test_whole_means_every_line() -> None:
    output = Output(whole=True)
    assert len(output.feed("x\n" * 5000)) == 5000


def test_a_last_line_without_an_end_is_shown() -> None:
    output = Output(whole=False)
    assert output.feed("Password: ") == []
    assert output.finish() == (["Password: "], 0, [])


def test_blank_lines_at_the_beginning_and_at_the_end_are_left_out() -> None:
    output = Output(whole=False)
    assert output.feed("\n\none\n\n\ntwo\n\n") == ["one", "", "", "two"]
    assert output.finish() == ([], 0, [])
    assert output.lines == 4


def test_what_is_being_written_is_the_newest_line() -> None:
    output = Output(whole=False)
    output.feed("one\n")
    assert output.newest == "one"
    output.feed("10%\r20%\r\x1b[32m3")
    assert output.newest == "3"
    output.feed("0%\r")
    assert output.newest == "30%"


def test_a_progress_bar_is_one_line_however_long_it_goes_on() -> None:
    output = Output(whole=False)
    for number in range(20_000):
        assert output.feed(f"\rat {number} of 20000") == []
    assert output.feed("\r\n") == ["at 19999 of 20000"]


@pytest.mark.parametrize("moving", ["\x1b[3A", "\x1b[A", "\x1b[?1049h", "\x1b[12;40H", "\x1b[5d", "\x1b[H", "\x1b[2F"])
def test_of_what_moves_about_on_the_screen_no_lines_are_shown(moving: str) -> None:
    output = Output(whole=False)
    assert output.feed("one\ntwo\n") == ["one", "two"]
    assert output.feed(f"three\n{moving[:2]}") == ["three"]
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


def test_a_bar_that_goes_back_by_the_number_of_the_column_is_one_line() -> None:
    output = Output(whole=False)
    assert output.feed("10%\x1b[1G20%\x1b[") == []
    assert output.feed("0G30%\n") == ["30%"]
