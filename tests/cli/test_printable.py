from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.cli.text import OutputLines, one_line, printable, without_colour


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain words, naïve and 漢字\n\tindented", "plain words, naïve and 漢字\n\tindented"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("rm -rf ~\rls", "rm -rf ~\\x0dls"),
        ("\x1b]52;c;c3RvbGVu\x07", "\\x1b]52;c;c3RvbGVu\\x07"),
        ("if admin\u202e }\u2066 end", "if admin\\u202e }\\u2066 end"),
        ("in\u200bvisible \U000e0041", "in\\u200bvisible \\U000e0041"),
        ("half \ud83d", "half \\ud83d"),
        ("\x9b31m", "\\x9b31m"),
        ("family: 👨‍👩‍👧", "family: 👨‍👩‍👧"),
    ],
)
def test_what_can_not_be_seen_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text())
def test_printable_text_holds_nothing_that_a_terminal_would_obey(text: str) -> None:
    left = {unicodedata.category(letter) for letter in printable(text) if letter not in "\n\t"}
    assert left.isdisjoint({"Cc", "Cs", "Zl", "Zp"})
    printable(text).encode()


@given(st.text())
def test_one_line_is_one_line(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("\x1b[1;31mFAILED\x1b[0m test", "FAILED test"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;never ended", ""),
        ("10%\r50%\r100%", "100%"),
        ("text\r", "text"),
        ("\x1b(Bascii\x1b[K", "ascii"),
        ("bell\x07", "bell"),
        ("\x1b[31", ""),
        ("a\x00b", "a\\x00b"),
    ],
)
def test_output_is_shown_as_a_terminal_would_end_up_showing_it(line: str, shown: str) -> None:
    assert without_colour(line) == shown


@given(st.text(alphabet=st.characters(codec="utf-8")), st.data())
def test_output_reads_the_same_however_it_is_cut(text: str, data: st.DataObject) -> None:
    whole = OutputLines()
    expected = [*whole.feed(text), *whole.finish()]
    pieces = OutputLines()
    lines: list[str] = []
    start = 0
    while start < len(text):
        end = data.draw(st.integers(start + 1, len(text)))
        lines += pieces.feed(text[start:end])
        start = end
    assert [*lines, *pieces.finish()] == expected


def test_a_line_that_never_ends_is_not_kept_for_ever() -> None:
    lines = OutputLines()
    shown = [line for _ in range(100) for line in lines.feed("x" * 1000)]
    assert sum(map(len, shown)) > 80_000
