from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.cli.text import OutputLines, age, cost, count, duration, one_line, printable, spent, strip_escapes
from agentcore.usage import Usage

NOW = datetime(2026, 1, 2, tzinfo=UTC)
CACHED = Usage(requests=1, input_tokens=12_345, cache_read_tokens=10_000, output_tokens=67)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (cost(Usage(requests=1)), "$0"),
        (cost(Usage(requests=1, known_cost=Decimal("0.00001"))), "under $0.0001"),
        (cost(Usage(requests=1, known_cost=Decimal("0.0123"))), "$0.0123"),
        (cost(Usage(requests=1, known_cost=Decimal("12.346"))), "$12.35"),
        (cost(Usage(requests=2, unpriced_requests=2)), "cost unknown"),
        (cost(Usage(requests=2, unpriced_requests=1, known_cost=Decimal("0.5"))), "over $0.5000"),
        (spent(CACHED), "12,345 tokens read (10,000 cached), 67 written, $0"),
        *zip(map(duration, (0.04, 9.94, 59, 61, 7_800)), ("0.0 s", "9.9 s", "59 s", "1 min 1 s", "2 h 10 min"), strict=True),
        *(
            (age(NOW - timedelta(seconds=seconds), NOW), f"{expected} ago")
            for seconds, expected in ((-5, "0 s"), (59, "59 s"), (61, "1 min"), (7200, "2 h"), (200_000, "2 d"))
        ),
        *((count(number, "step"), expected) for number, expected in ((0, "0 steps"), (1, "1 step"), (1_234, "1,234 steps"))),
    ],
)  # fmt: skip
def test_an_amount_is_said_in_words(text: str, expected: str) -> None:
    assert text == expected


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
    assert strip_escapes(line) == shown


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
