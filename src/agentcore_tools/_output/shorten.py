"""A long output as a model is shown it: its beginning and its end, with the path of the whole."""

from __future__ import annotations

from typing import Final

from agentcore.errors import WorkspaceError
from agentcore.tools import OUTPUT_LIMIT, ToolContext
from agentcore_tools._output.kept import find_gap, said
from agentcore_tools._output.whole import Whole

__all__ = ["TEXT_LIMIT", "shorten"]

TEXT_LIMIT: Final = OUTPUT_LIMIT - 2_000
"""How many characters of output are shown; the rest of a tool's limit is for what is said about it."""

# A secret that was torn apart by leaving something out can't be recognized. It lies within so much of the gap.
_LONGEST_SECRET: Final = 40_000
# How far a cut may move to fall between two lines.
_SNAP: Final = 200


async def shorten(
    text: str, ctx: ToolContext, name: str, whole: Whole | None, limit: int = TEXT_LIMIT
) -> tuple[str, str | None]:
    """Give what to show of a text, and the path where the whole is if that is not all of it.

    Args:
        text: What was kept, gaps and all.
        ctx: The call in which it is told.
        name: What the whole is called, where it is not kept yet.
        whole: What keeps the output of which this is a part.
        limit: How many characters to show.
    """
    if len(text) <= limit:
        return text, None
    path = await whole.written() if whole is not None else await _kept_at(text, ctx, name)
    gap = find_gap(text)
    # Cutting what is not masked might leave the half of a secret, which nobody would know.
    if gap is None:
        masked = ctx.secrets.mask(text)
        head, tail, characters, lines = masked, masked, len(masked), masked.count("\n")
    else:
        head, tail = ctx.secrets.mask(text[: gap.start]), ctx.secrets.mask(text[gap.end :])
        characters = gap.characters + len(head) + len(tail)
        lines = gap.lines + head.count("\n") + tail.count("\n")
        head, tail = head[: max(len(head) - _LONGEST_SECRET, 0)], tail[_LONGEST_SECRET:]
    where = "It was not kept" if path is None else f"The whole is in {path}"
    if whole is not None and whole.full:
        where = f"Its beginning is in {path}, and the rest was not kept"
    # It is longest where everything is left out; room for it is taken first.
    room = max(limit - len(_notice(characters, lines, where)), 0)
    if gap is None and len(head) <= room:
        return head, None  # masking made it short enough
    head, tail = _to_line_end(head[: room - room // 2]), _from_line_start(tail[len(tail) - min(room // 2, len(tail)) :])
    shown = head + tail
    return head + _notice(characters - len(shown), lines - shown.count("\n"), where) + tail, path


def _notice(characters: int, lines: int, where: str) -> str:
    return f"\n[{characters:,} characters ({lines:,} line ends) are left out here. {where}]\n"


def _to_line_end(head: str) -> str:
    end = head.rfind("\n", max(len(head) - _SNAP, 0))
    return head[:end] if end > 0 else head


def _from_line_start(tail: str) -> str:
    start = tail.find("\n", 0, _SNAP)
    return tail[start + 1 :] if start >= 0 else tail


async def _kept_at(text: str, ctx: ToolContext, name: str) -> str | None:
    try:
        return await ctx.spool(name, said(text))
    except WorkspaceError:
        return None  # which is said where something is left out
