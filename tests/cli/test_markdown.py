"""The agent's Markdown on a terminal."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from agentcore.cli.markdown import render_markdown, split_blocks
from agentcore.cli.reply_printer import ReplyPrinter

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

SOURCE = """\
# Done
I **fixed** `total` in *basket.py*; see [the tests](test.py) and <div>.
Next line.

1. one
   - nested

2. two

```python
def f():

    return "a line of code that is not wrapped"
```

| a | b |
|---|--:|
| 1 | 2 |
"""
DRAWN = """\
Done

I fixed total in basket.py; see the
tests (test.py) and <div>.
Next line.

 1 one
    • nested
 2 two

  def f():

      return "a line of code that is not wrapped"

 a  b
 ────
 1  2
"""


def console_of(width: int, color_system: str | None = "standard") -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=True, highlight=False, color_system=color_system)  # pyright: ignore[reportArgumentType]


def test_markdown_is_drawn_and_code_is_left_to_be_copied() -> None:
    lines = [line.plain.rstrip() for line in render_markdown(console_of(40), SOURCE)]
    assert "\n".join(lines) + "\n" == DRAWN


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_reply_that_comes_in_pieces_is_drawn_like_a_whole_one(size: int) -> None:
    console = console_of(40)
    printer = ReplyPrinter(console)
    for at in range(0, len(SOURCE), size):
        printer.text("r1", at, SOURCE[at : at + size])
    printer.end()
    assert isinstance(console.file, io.StringIO)
    plain = console_of(40)
    for line in render_markdown(plain, SOURCE):
        plain.print(line, soft_wrap=True)
    assert isinstance(plain.file, io.StringIO)
    assert console.file.getvalue() == plain.file.getvalue() + "\n"


def test_a_block_is_printed_when_it_is_complete_and_the_end_of_the_rest_is_known() -> None:
    console = console_of(40)
    printer = ReplyPrinter(console)
    assert isinstance(console.file, io.StringIO)
    for at, piece in ((0, "First "), (6, "words.\n"), (13, "\n- one\n\n"), (21, "- two and " + "words " * 20)):
        printer.text("r1", at, piece)
        assert (console.file.getvalue() == "First words.\n") == (at >= 13)
    assert printer.newest() == "writing: " + ("words " * 20).strip()[-20:]
    printer.pause()
    assert " • one\n • two and" in "".join(console.file.getvalue().split("\x1b[0m"))


def test_what_has_not_ended_yet_is_left_for_later() -> None:
    for rest in ("- one\n\n", "1. one\n\n   more\n\n", "```\na\n\n", "> a\n", "word", "word\n"):
        assert split_blocks(f"Before.\n\n{rest}") == ("Before.\n\n", rest)
    for done in ("Words.\n\n", "# Head\n\n", "```\na\n\nb\n```\n\n", "| a |\n|---|\n| 1 |\n\n"):
        assert split_blocks(done) == (done, "")


@given(st.text(alphabet="ab<>[]()!#*_-+>1. \n\t:/漢", max_size=60), st.integers(8, 30))
def test_no_letter_is_hidden(text: str, width: int) -> None:
    drawn = "".join(line.plain for line in render_markdown(console_of(width), text))
    assert [drawn.count(letter) >= text.count(letter) for letter in "ab漢"] == [True] * 3


@given(st.lists(st.text(alphabet="ab *`#>-1.|\n漢", max_size=12)), st.integers(8, 30))
def test_any_pieces_can_be_drawn(pieces: list[str], width: int) -> None:
    console = console_of(width, None)
    printer = ReplyPrinter(console)
    printer.draws = True
    offset = 0
    for piece in pieces:
        printer.text("r1", offset, piece)
        assert cell_len(printer.newest()) <= max(width - 10, 10)
        offset += len(piece)
    printer.end()


def test_nothing_that_is_decoded_can_control_the_terminal() -> None:
    (line,) = render_markdown(console_of(40), "a&#8238;b&#27;c&#x9b;d[e](\u202ef)")
    assert not set(line.plain) & {"\u202e", "\x1b", "\x9b"}


def test_markdown_is_drawn_on_a_terminal_and_plain_elsewhere(cli: Cli) -> None:
    with cli.serve("It is **done**.", repeat=True) as provider:
        task = ("run", "x", "-m", "mine", "--base-url", provider.base_url)
        assert "It is done.\n" in cli.on_terminal(*task)[1].text
        assert "It is done.\n" in cli.on_terminal("resume", cli.ids()[0])[1].text
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            assert "It is **done**.\n" in cli.on_terminal(*task, env=env)[1].text
        assert "It is **done**.\n" in cli.run(*task).out
