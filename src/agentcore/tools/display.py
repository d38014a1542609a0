"""The display of calls and answers for people: masked, bounded, and never a reason for a call to fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from pydantic_core import to_json

from agentcore._text import already_masked, clip
from agentcore.display import BlockBase, DiffBlock, DisplayBlock, MarkdownBlock, plain_text
from agentcore.logs import get_logger
from agentcore.tools.definition import AnyTool

_log = get_logger(__name__)

DISPLAY_LIMIT: Final = 16_384
"""How many bytes of JSON the blocks of one event may take together."""

MaskBlock: TypeAlias = Callable[[DisplayBlock], DisplayBlock]
"""Takes the secrets out of a block."""

_LEAST: Final = 200
"""The least length that a string is cut to; with less room its block goes."""


def describe_call(tool: AnyTool, action: Any, mask: MaskBlock) -> tuple[DisplayBlock, ...]:
    """Return what the tool shows of a call; nothing where it has no display of its own, or that raises."""
    display = tool.display_call
    return () if display is None else _describe(tool, lambda: display(action), mask)


def describe_answer(tool: AnyTool, action: Any, observation: Any, mask: MaskBlock) -> tuple[DisplayBlock, ...]:
    """Return what the tool shows of an answer; nothing where it has no display of its own, or that raises."""
    display = tool.display_answer
    return () if display is None else _describe(tool, lambda: display(action, observation), mask)


def bounded_display(blocks: Iterable[DisplayBlock], mask: MaskBlock) -> tuple[DisplayBlock, ...]:
    """Return the blocks masked, and then cut to `DISPLAY_LIMIT` together: half of a secret could not be masked any more.

    Raises:
        TypeError: One of them is not a block.
    """
    kept: list[DisplayBlock] = []
    room = DISPLAY_LIMIT
    for block in blocks:
        if not isinstance(block, BlockBase):  # pyright: ignore[reportUnnecessaryIsInstance] a tool may return anything
            raise TypeError(f"a display is made of blocks, and {type(block).__name__} is not one")
        masked = mask(block)
        size = _size(masked)
        if size > room:
            masked = _cut_to(masked, size, room)
            size = 0 if masked is None else _size(masked)
        if masked is not None:
            kept.append(masked)
            room -= size
    return tuple(kept)


def _describe(
    tool: AnyTool, display: Callable[[], Sequence[DisplayBlock]], mask: MaskBlock
) -> tuple[DisplayBlock, ...]:
    try:
        return bounded_display(display(), mask)
    except Exception as error:
        # Its type alone: the text of an error may quote a secret.
        _log.warning("display left out: making it raised", tool=tool.name, error=type(error).__name__)
        return ()


def _cut_to(block: DisplayBlock, size: int, room: int) -> DisplayBlock | None:
    """Return a block that is too large with its longest string cut so that it fits, else its plain form, else None."""
    strings = {name: value for name, value in block if isinstance(value, str)}
    name = max(strings, key=lambda name: len(strings[name]))
    long = strings[name]
    taken = len(to_json(long))
    keep = len(long) * max(taken + room - size, 0) // taken
    while keep >= _LEAST:
        fitting = block.model_copy(update={name: _cut(block, long, keep)})
        if _size(fitting) <= room:
            return fitting
        keep = keep * 3 // 4  # what is kept takes more bytes a character than the whole does
    if isinstance(block, MarkdownBlock):
        return None
    plain = MarkdownBlock(text=plain_text(block))
    size = _size(plain)
    return plain if size <= room else _cut_to(plain, size, room)


def _cut(block: DisplayBlock, text: str, keep: int) -> str:
    if not isinstance(block, DiffBlock):
        return clip(text, keep, mask=already_masked, full_output_path="the event itself")
    # Only the end goes: the lines below a gap would get wrong numbers.
    notice = "\n\\ The diff goes on.\n"
    head = text[: keep - len(notice)]
    return (head.rpartition("\n")[0] or head) + notice


def _size(block: DisplayBlock) -> int:
    return len(block.model_dump_json().encode(errors="replace"))
