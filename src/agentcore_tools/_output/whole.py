"""All of an output on disk, written while it comes, once it is more than a model is shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, final

import anyio

from agentcore.errors import WorkspaceError
from agentcore.tools import Spool

__all__ = ["WHOLE_BYTES", "Whole"]

WHOLE_BYTES: Final = 64 * 1024 * 1024
"""How much of an output is kept on disk, unless told otherwise: its beginning."""

# What is written at once; a smaller piece waits for more.
_PIECE: Final = 65536


@final
class Whole:
    """Takes an output piece by piece. A file is opened when it has more than `beyond` characters, or is asked for.

    Whoever adds to it also awaits `keep`, from time to time: so output that comes faster than a disk writes has to wait, and
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
        """Whether the file has the beginning only."""
        return self._spool is not None and self._spool.full

    def add(self, piece: str) -> None:
        """Take the next piece."""
        self._total += len(piece)
        if self._failed or self.full:
            return
        self._pending.append(piece)
        self._held += len(piece)

    def end(self) -> None:
        """Say that it is complete."""
        self._ended = True

    async def keep(self) -> None:
        """Write what has come, if it is worth it."""
        if self._total > self._beyond and (self._held >= _PIECE or (self._ended and not self._finished)):
            await self.written()

    async def settle(self) -> None:
        """Write all that has come, if there is a file for it: what is told of it is there then."""
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
