from __future__ import annotations

from agentcore.cli.output import Output


def test_a_short_output_is_shown_as_it_comes() -> None:
    output = Output(whole=False)
    assert output.feed("one\ntw") == ["one"]
    assert output.newest == "one"
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


def test_what_is_held_back_is_shown_whole_if_nothing_has_to_be_left_out() -> None:
    output = Output(whole=False)
    shown = output.feed("".join(f"{number}\n" for number in range(35)))
    _, left_out, last = output.finish()
    assert left_out == 0
    assert [*shown, *last] == [str(number) for number in range(35)]


def test_whole_means_every_line() -> None:
    output = Output(whole=True)
    assert len(output.feed("x\n" * 5000)) == 5000


def test_a_last_line_without_an_end_is_shown() -> None:
    output = Output(whole=False)
    assert output.feed("Password: ") == []
    assert output.finish() == (["Password: "], 0, [])
