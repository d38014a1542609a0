from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from agentcore.cli.reply_printer import Wrap


def flowed(pieces: list[str], width: int | None) -> str:
    written: list[str] = []
    flow = Wrap(written.append, width)
    for piece in pieces:
        flow.feed(piece)
    flow.finish()
    return "".join(written)


def test_words_move_to_the_next_line_whole() -> None:
    assert flowed(["I look at ", "the pro", "ject first."], 14) == "I look at the\nproject first.\n"


def test_a_word_is_held_back_until_it_is_whole() -> None:
    written: list[str] = []
    flow = Wrap(written.append, 80)
    flow.feed("one tw")
    assert "".join(written) == "one"
    flow.feed("o three")
    assert "".join(written) == "one two"


def test_lines_and_indentation_of_the_text_stay() -> None:
    assert flowed(["a:\n", "  - b\n\n", "    code"], 40) == "a:\n  - b\n\n    code\n"


def test_without_a_width_nothing_is_wrapped() -> None:
    assert flowed(["word " * 50], None).count("\n") == 1


def test_a_text_without_spaces_is_shown_all_the_same() -> None:
    written: list[str] = []
    Wrap(written.append, 80).feed("漢" * 60)
    assert "".join(written)


@given(st.lists(st.text(alphabet="ab 漢\n", max_size=12)), st.integers(8, 30))
def test_no_letter_is_lost_and_no_line_is_too_long(pieces: list[str], width: int) -> None:
    text = flowed(pieces, width)
    assert "".join(text.split()) == "".join("".join(pieces).split())
    longest_word = max((cell_len(word) for word in "".join(pieces).split()), default=0)
    for line in text.split("\n"):
        # Only what can't be broken goes on beyond the width: a word, and the indentation before a line's first one.
        assert cell_len(line.strip()) <= max(width, longest_word)
