"""What a tool shows of its calls and answers: masked, bounded, and never a reason for anything to fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from agentcore.display import CommandBlock, DiffBlock, DisplayBlock, DisplayTask, MarkdownBlock, TableBlock, TasksBlock
from agentcore.messages import TextBlock
from agentcore.secrets import SecretRegistry
from agentcore.tools import (
    DISPLAY_LIMIT,
    FunctionTool,
    TextObservation,
    bounded_display,
    describe_answer,
    describe_call,
    tool,
)

SECRET = "tok-93f1-abcd"
mask = SecretRegistry({"TOKEN": SECRET}).masker.mask_model


def size(blocks: Sequence[DisplayBlock]) -> int:
    return sum(len(block.model_dump_json().encode()) for block in blocks)


def make(display: Callable[[Any], Any]) -> FunctionTool[..., Any]:
    @tool(display_call=display, display_answer=lambda action, observation: display(action))
    async def shout(words: str) -> str:
        """Say it aloud."""
        return words.upper()

    return shout


def test_a_tool_of_its_own_display_is_shown_so_masked() -> None:
    def shouted(action: Any) -> Sequence[DisplayBlock]:
        return [MarkdownBlock(text=f"shouts {action.words}")]

    shout = make(shouted)
    action = shout.parse({"words": SECRET})
    (block,) = describe_call(shout, action, mask)
    assert block == MarkdownBlock(text="shouts <secret:TOKEN>")
    assert describe_answer(shout, action, TextObservation(text=""), mask) == (block,)


def fail(_action: Any) -> Sequence[DisplayBlock]:
    raise ValueError(SECRET)


@pytest.mark.parametrize(
    "given", [None, ["words"], [TextBlock(text="of a message")], [MarkdownBlock(text="\ud800")], 3]
)
def test_a_display_that_is_none_is_left_out(given: Any) -> None:
    def wrong(_action: Any) -> Any:
        return given

    shout = make(wrong)
    assert describe_call(shout, shout.parse({"words": "hi"}), mask) == ()


def test_a_display_that_fails_is_left_out_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    shout = make(fail)
    action = shout.parse({"words": "hi"})
    assert describe_call(shout, action, mask) == ()
    assert describe_answer(shout, action, TextObservation(text=""), mask) == ()
    assert caplog.text.count("display left out") == 2
    assert SECRET not in caplog.text


LONG: list[Callable[[str], DisplayBlock]] = [
    lambda text: TableBlock(rows=((text[: len(text) // 2], text[len(text) // 2 :]),)),
    lambda text: TasksBlock(tasks=tuple(DisplayTask(title=text[:10]) for _ in range(4_000))),
    lambda text: CommandBlock(command="ls", output=text),
    lambda text: MarkdownBlock(text=text),
    lambda text: DiffBlock(path="a", diff=text),
]


@pytest.mark.parametrize("piece", ["x", "ü\n", "\x01", "🐢"])
@pytest.mark.parametrize("make_block", LONG)
def test_blocks_together_take_no_more_than_the_limit(make_block: Callable[[str], DisplayBlock], piece: str) -> None:
    long = make_block(piece * 40_000)
    blocks = bounded_display([MarkdownBlock(text="first"), long, MarkdownBlock(text="last")], mask)
    assert blocks[0] == MarkdownBlock(text="first")
    assert len(blocks) > 1
    assert DISPLAY_LIMIT * 0.3 < size(blocks) <= DISPLAY_LIMIT
    fits = (DiffBlock(diff="+x\n" * 2_000), MarkdownBlock(text="y" * 7_000))
    assert bounded_display(fits, mask) == fits


def test_of_what_was_written_the_beginning_and_the_end_stay_and_of_a_diff_the_beginning() -> None:
    text = "".join(f"{number}\n" for number in range(10_000))
    (command,) = bounded_display([CommandBlock(command="seq", output=text)], mask)
    assert isinstance(command, CommandBlock)
    assert command.output is not None
    assert command.output.startswith("0\n1\n")
    assert command.output.endswith("\n9999\n")
    (diff,) = bounded_display([DiffBlock(diff="".join(f"+{line}\n" for line in text.split()))], mask)
    assert isinstance(diff, DiffBlock)
    assert diff.diff.startswith("+0\n+1\n")
    *_, last, notice, end = diff.diff.split("\n")
    assert last.removeprefix("+").isdigit()
    assert (notice, end) == ("\\ The diff goes on.", "")


def test_nothing_is_cut_before_it_is_masked() -> None:
    for shift in range(len(SECRET) + 1):
        text = "x" * (8_000 + shift) + SECRET * 3_000
        (block,) = bounded_display([MarkdownBlock(text=text)], mask)
        kept = cast("MarkdownBlock", block).text.replace("<secret:TOKEN>", "")
        assert not any(part in kept for part in (SECRET[:5], SECRET[-5:]))
