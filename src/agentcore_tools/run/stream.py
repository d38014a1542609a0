"""One stream of a program: read to its end, in bounded memory, and whole on disk if it is long."""

from __future__ import annotations

import codecs
from collections.abc import Awaitable, Callable
from functools import partial
from typing import final

import anyio

from agentcore.tools import ToolContext
from agentcore_tools._output import TEXT_LIMIT, Kept, Whole, shorten

__all__ = ["Stream"]


@final
class Stream:
    """What a program writes to one of its streams."""

    def __init__(self, name: str, ctx: ToolContext, keep_bytes: int) -> None:
        self._file = f"{ctx.action_id}-{name}.txt"
        self._ctx = ctx
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._kept = Kept()
        self._whole = Whole(partial(ctx.open_spool, self._file, limit=keep_bytes), TEXT_LIMIT // 2)
        self.text = ""
        """What was kept, when all is read."""

    async def read(self, receive: Callable[[], Awaitable[bytes]]) -> None:
        """Read until there is no more, and show people what comes."""
        try:
            while True:
                await self._add(self._decoder.decode(await receive()))
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return

    async def finish(self) -> None:
        """Say that no more is read."""
        await self._add(self._decoder.decode(b"", final=True))
        self._whole.end()
        await self._whole.keep()
        self.text = self._kept.take()

    async def shortened(self, limit: int) -> tuple[str, str | None]:
        """Give what to show of it, and the path of the whole if that is not all."""
        return await shorten(self.text, self._ctx, self._file, self._whole, limit)

    async def _add(self, text: str) -> None:
        if not text:
            return
        # A model can't be sent this character by every provider, and it stands for a gap where something is left out.
        text = text.replace("\0", "\u2400")
        self._kept.add(text)
        self._whole.add(text)
        await self._whole.keep()
        await self._ctx.progress(text)
