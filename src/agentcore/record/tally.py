"""Usages that are added up when somebody asks: of a log that is opened, nobody asks for each step."""

from __future__ import annotations

from agentcore.usage import Usage

__all__ = ["Tally"]


class Tally:
    """A sum of usages."""

    __slots__ = ("_new", "_total")

    def __init__(self) -> None:
        self._total = Usage()
        self._new: list[Usage] = []

    def add(self, usage: Usage) -> None:
        """Count one more."""
        self._new.append(usage)

    @property
    def total(self) -> Usage:
        """All of them together."""
        if self._new:
            self._total = Usage.sum([self._total, *self._new])
            self._new = []
        return self._total
