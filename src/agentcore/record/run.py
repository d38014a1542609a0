"""The newest run, as the log says it: what its result is made of."""

from __future__ import annotations

from agentcore.record.tally import Tally
from agentcore.usage import Usage


class RunTally:
    """What the newest run came to so far, over all branches."""

    __slots__ = ("_usage", "seq", "steps", "text")

    def __init__(self, seq: int = 0) -> None:
        self.seq = seq
        """The seq at which it began; 0 before the first run."""
        self.steps = 0
        """Its model calls."""
        self.text: str | None = None
        """The agent's last words in it."""
        self._usage = Tally()

    @property
    def usage(self) -> Usage:
        """What it used, side questions included."""
        return self._usage.total

    def add(self, usage: Usage, *, is_step: bool) -> None:
        """Count a model call."""
        self._usage.add(usage)
        self.steps += is_step

    def values(self) -> tuple[int, int, str | None, Usage]:
        """Give what it says as plain values, for comparing two."""
        return self.seq, self.steps, self.text, self.usage
