from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from agentcore.cli.reply_printer import ReplyPrinter


def printed(pieces: list[str], width: int, *, terminal: bool = True) -> list[str]:
    """Return what is printed of these pieces, before the last one is known to be the last, and after it."""
    console = Console(file=io.StringIO(), width=width, highlight=False, force_terminal=terminal, color_system=None)
    assert isinstance(console.file, io.StringIO)
    printer = ReplyPrinter(console)
    offset = 0
    for piece in pieces:
        printer.text("r1", offset, piece)
        offset += len(piece)
    streamed = console.file.getvalue()
    printer.end()
    return [streamed, console.file.getvalue()]


def test_a_line_is_printed_when_the_next_one_begins_and_words_stay_whole() -> None:
    pieces = ["I look at ", "the pro", "ject first.\nThen"]
    assert printed(pieces[:2], 14) == ["I look at the\n", "I look at the\npro\n\n"]
    assert printed(pieces, 14)[0] == "I look at the\nproject first.\n"
    assert printed(pieces, 14, terminal=False)[0] == "I look at the project first.\n"
    assert printed(["a:\n", "  - b\n\n", "    code"], 40)[1] == "a:\n  - b\n\n    code\n\n"


@given(st.lists(st.text(alphabet="ab 漢\n", max_size=12)), st.integers(8, 30))
def test_no_letter_is_lost_and_no_line_is_too_long(pieces: list[str], width: int) -> None:
    _, text = printed(pieces, width)
    assert "".join(text.split()) == "".join("".join(pieces).split())
    assert all(cell_len(line) <= width for line in text.split("\n"))
