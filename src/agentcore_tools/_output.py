"""The output of a program: in bounded memory, all of it on disk, and short enough for a model."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, final

import anyio

from agentcore._text import NOT_KEPT, clip_ends
from agentcore.errors import WorkspaceError
from agentcore.tools import OUTPUT_LIMIT, Spool, ToolContext

KEPT_CHARACTERS: Final = 256 * 1024
"""How much of an output is kept until it is reported: half of it from the beginning, half from the end."""

# Where something was left out, in text that can hold no NUL, so that nothing else looks like it.
_GAP: Final = re.compile("\0([0-9]+):([0-9]+)\0")


@final
class HeadAndTail:
    """Collects pieces. What is left out is left out by whole pieces, so that lines that were added whole stay whole."""

    def __init__(self, limit: int = KEPT_CHARACTERS) -> None:
        self._half = limit // 2
        self._clear()

    def _clear(self) -> None:
        self._head: list[str] = []
        self._head_room = self._half
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._omitted = 0
        self._omitted_lines = 0

    def add(self, piece: str) -> None:
        """Take the next piece, without NUL characters."""
        if self._head_room > 0:
            self._head.append(piece)
            self._head_room -= len(piece)
            return
        self._tail.append(piece)
        self._tail_size += len(piece)
        while self._tail_size - len(self._tail[0]) >= self._half:
            left_out = self._tail.popleft()
            self._tail_size -= len(left_out)
            self._omitted += len(left_out)
            self._omitted_lines += left_out.count("\n")

    def take(self) -> str:
        """Return the text, with a gap mark where some was left out (see `find_gap` and `mark_gaps`), and start again."""
        head, tail = "".join(self._head), "".join(self._tail)
        gap = f"\0{self._omitted}:{self._omitted_lines}\0" if self._omitted else ""
        self._clear()
        return head + gap + tail


class Gap(NamedTuple):
    """A stretch that was left out of a text."""

    start: int
    """Where the text before it ends."""
    end: int
    """Where the text behind it begins."""
    characters: int
    lines: int
    """How many line ends are among the characters."""


def find_gap(text: str) -> Gap | None:
    """Find what was left out of a text; of several gaps, with what is between them."""
    found = list(_GAP.finditer(text))
    if not found:
        return None
    start, end = found[0].start(), found[-1].end()
    between = _GAP.sub("", text[start:end])
    return Gap(
        start,
        end,
        sum(int(gap[1]) for gap in found) + len(between),
        sum(int(gap[2]) for gap in found) + between.count("\n"),
    )


def mark_gaps(text: str) -> str:
    """Put a line in brackets in the place of each gap."""
    return _GAP.sub(
        lambda gap: (
            ("" if text[: gap.start()].endswith("\n") else "\n")
            + f"[{int(gap[1]):,} characters ({int(gap[2]):,} line ends) omitted. {NOT_KEPT}]\n"
        ),
        text,
    )


OUTPUT_FILE_BYTES: Final = 64 * 1024 * 1024
"""How much of an output is kept on disk by default: its beginning."""

# What is written at once; a smaller piece waits for more.
_PIECE: Final = 65536


@final
class OutputFile:
    """Takes an output piece by piece. A file is opened when it has more than `beyond` characters, or is asked for.

    Each writer also awaits `keep` from time to time, so that output that comes faster than a disk writes has to wait, and
    what is held in memory stays bounded.
    """

    def __init__(self, open_spool: Callable[[], Awaitable[Spool]], beyond: int) -> None:
        self._open_spool = open_spool
        self._beyond = beyond
        self._pending: list[str] = []
        self._held = 0
        self._total = 0
        self._spool: Spool | None = None
        self._failed = False
        self._ended = False
        self._finished = False
        self._turn = anyio.Lock()

    @property
    def full(self) -> bool:
        """True if the file has only the beginning."""
        return self._spool is not None and self._spool.full

    def add(self, piece: str) -> None:
        """Take the next piece."""
        self._total += len(piece)
        if self._failed or self.full:
            return
        self._pending.append(piece)
        self._held += len(piece)

    def end(self) -> None:
        """Mark the output as complete."""
        self._ended = True

    async def keep(self) -> None:
        """Write what has come, if it is worth it."""
        if self._total > self._beyond and (self._held >= _PIECE or (self._ended and not self._finished)):
            await self.written()

    async def finish(self) -> None:
        """Write all that has come, if there is a file for it, so that it holds all that is reported."""
        if self._total > self._beyond:
            await self.written()

    async def written(self) -> str | None:
        """Write what has come, and give the path of the file; None where that can't be done."""
        async with self._turn:
            if not self._failed:
                try:
                    await self._write()
                except WorkspaceError:
                    self._failed = True
                    self._pending.clear()
            return None if self._failed or self._spool is None else self._spool.path

    async def _write(self) -> None:
        if self._spool is None:
            self._spool = await self._open_spool()
        if self._pending:
            text = "".join(self._pending)
            self._pending.clear()
            self._held = 0
            await self._spool.append(text)
        if self._ended and not self._finished:
            self._finished = True
            await self._spool.finish()


TEXT_LIMIT: Final = OUTPUT_LIMIT - 2_000
"""How many characters of output are shown; the rest of a tool's limit is for notes about it."""

# A secret that was torn apart by leaving something out can't be recognized. It lies within so much of the gap.
LONGEST_SECRET: Final = 40_000


def cut_at_gap(text: str, limit: int, unfinished: Callable[[str], int]) -> str:
    """Cut a text at its gap, where no secret is torn apart: at most `limit` characters stay of the beginning.

    At the gap itself one was, so that the text behind it begins later: so far that the rest of that is left out.
    """
    gap = find_gap(text)
    if gap is None:
        return text
    head, tail = text[: min(gap.start, limit)], text[gap.end :]
    head = head[: len(head) - unfinished(head)]
    before = tail[: 2 * LONGEST_SECRET]
    tail = tail[len(before) - unfinished(before) :]
    characters = gap.characters + gap.start - len(head) + len(text) - gap.end - len(tail)
    lines = gap.lines + text.count("\n", len(head), gap.start) + text.count("\n", gap.end, len(text) - len(tail))
    return f"{head}\0{characters}:{lines}\0{tail}"


async def shorten(
    text: str, ctx: ToolContext, name: str, whole: OutputFile | None, limit: int = TEXT_LIMIT
) -> tuple[str, str | None]:
    """Return the text to show (`text` is what was kept, gaps and all), and the path of the full output if that is not all.

    The full output is kept by `whole`, or under this name now.
    """
    if len(text) <= limit:
        return text, None
    path = await whole.written() if whole is not None else await _kept_at(text, ctx, name)
    where = NOT_KEPT if path is None else f"Full output: {path}"
    if whole is not None and whole.full:
        where = f"The beginning of the output is in {path}; the rest was not kept."
    mask, gap = ctx.secrets.mask, find_gap(text)
    if gap is None:
        head = tail = mask(text)
        if len(head) <= limit:
            return head, None
        characters, lines = len(head), head.count("\n")
    else:
        head, tail = mask(text[: gap.start]), mask(text[gap.end :])
        characters = gap.characters + len(head) + len(tail)
        lines = gap.lines + head.count("\n") + tail.count("\n")
        head, tail = head[: max(len(head) - LONGEST_SECRET, 0)], tail[LONGEST_SECRET:]
    return clip_ends(head, tail, limit, characters=characters, lines=lines, where=where), path


async def _kept_at(text: str, ctx: ToolContext, name: str) -> str | None:
    try:
        return await ctx.spool(name, mark_gaps(text))
    except WorkspaceError:
        return None  # the notice about the cut says so
