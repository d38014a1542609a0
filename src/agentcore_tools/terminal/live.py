"""What a terminal shows while a command runs, for people who watch: in bounded memory, and where lines are missing it says so."""

from __future__ import annotations

from typing import Final, final

from agentcore_tools._output import Kept, find_gap

__all__ = ["Live"]

_CHARACTERS: Final = 65536


@final
class Live:
    """Text as it came since it was taken last. Of too much, the beginning and the end."""

    def __init__(self, limit: int = _CHARACTERS) -> None:
        self._kept = Kept(limit)

    def add(self, text: str) -> None:
        """Take the next piece."""
        self._kept.add(text.replace("\0", ""))

    def take(self) -> str:
        """Give it, with a line in the place of those that are missing, and start anew."""
        live = self._kept.take()
        gap = find_gap(live)
        if gap is None:
            return live
        before, rest = live[: gap.start], live[gap.end :]
        _, end, after = rest.partition("\n")
        # Behind the gap begins the end of a line, which counts as missing; the line that the gap begins in is shown in part.
        lines = gap.lines + len(end) - (not before.endswith("\n"))
        if lines <= 0:
            return f"{before} [...] {rest}"
        begun = "" if before.endswith("\n") else "\n"
        return f"{before}{begun}[{lines:,} lines came too fast to be shown]\n{after if end else rest}"
