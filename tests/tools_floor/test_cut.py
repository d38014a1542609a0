"""Long output, cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentcore.tools import OUTPUT_LIMIT, cut


def test_what_is_short_enough_is_left_as_it_is() -> None:
    text = "x" * OUTPUT_LIMIT
    assert cut(text) is text


def test_both_ends_are_kept_between_lines_and_the_notice_says_what_is_missing_and_where_it_is() -> None:
    lines = [f"line {number}" for number in range(1, 5001)]
    shown = cut("\n".join(lines), 2_000, "/private/out.txt")
    head, notice, tail = shown.partition("\n[")[0], shown.split("\n[")[1].split("]\n")[0], shown.split("]\n")[1]
    assert head.splitlines() == lines[: len(head.splitlines())]
    assert tail.splitlines() == lines[-len(tail.splitlines()) :]
    assert "/private/out.txt" in notice
    missing = len("\n".join(lines)) - len(head) - len(tail)
    assert f"{missing:,} characters" in notice


def test_a_text_that_was_not_kept_says_so() -> None:
    assert "not kept" in cut("x" * 1000, 500)


@given(st.text(alphabet="ab\n", max_size=3_000), st.integers(200, 2_000))
def test_the_limit_holds_and_nothing_is_made_up(text: str, limit: int) -> None:
    shown = cut(text, limit, "/out")
    assert len(shown) <= limit
    if len(text) > limit:
        head, _, rest = shown.partition("\n[")
        _, _, tail = rest.partition("]\n")
        assert text.startswith(head)
        assert text.endswith(tail)
