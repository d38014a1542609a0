"""Long output, clipped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentcore._text import already_masked
from agentcore.tools import OUTPUT_LIMIT, clip


def test_both_ends_are_kept_between_lines_and_the_notice_says_what_is_missing_and_where_it_is() -> None:
    lines = [f"line {number}" for number in range(1, 5001)]
    shown = clip("\n".join(lines), 2_000, mask=already_masked, full_output_path="/private/out.txt")
    head, notice, tail = shown.partition("\n[")[0], shown.split("\n[")[1].split("]\n")[0], shown.split("]\n")[1]
    assert head.splitlines() == lines[: len(head.splitlines())]
    assert tail.splitlines() == lines[-len(tail.splitlines()) :]
    assert "/private/out.txt" in notice
    missing = len("\n".join(lines)) - len(head) - len(tail)
    assert f"{missing:,} characters" in notice
    assert "not kept" in clip("x" * 1000, 500, mask=already_masked)
    short = "x" * OUTPUT_LIMIT
    assert clip(short, mask=already_masked) is short


@given(st.text(alphabet="ab\n", max_size=3_000), st.integers(200, 2_000))
def test_the_limit_holds_and_nothing_is_made_up(text: str, limit: int) -> None:
    shown = clip(text, limit, mask=already_masked, full_output_path="/out")
    assert len(shown) <= limit
    if len(text) > limit:
        head, _, rest = shown.partition("\n[")
        _, _, tail = rest.partition("]\n")
        assert text.startswith(head)
        assert text.endswith(tail)


def test_a_secret_at_the_cut_is_masked_before_it() -> None:
    for at in range(400, 560):
        text = "x" * at + "QWZQWZQWZQ" + "x" * 1_000
        shown = clip(text, 1_000, mask=lambda text: text.replace("QWZQWZQWZQ", "<secret:KEY>"))
        assert not set("QWZ") & set(shown)
