"""Looking at all processes, once for everybody who wants to know at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import anyio
from anyio.lowlevel import RunVar

from agentcore.workspace.look import look
from agentcore.workspace.threads import LOOKS
from agentcore.workspace.tree import Seen

__all__ = ["take_census"]


@final
class _Census:
    """A look serves all who asked before it began: a hundred commands that end together cost two looks, not a hundred."""

    def __init__(self) -> None:
        self._turn = anyio.Lock()
        self._begun = 0
        self._done = 0
        self._latest: Mapping[int, Seen] = {}

    async def take(self) -> Mapping[int, Seen]:
        asked_after = self._begun
        async with self._turn:
            if self._done <= asked_after:
                self._begun += 1
                self._latest = await LOOKS.run(look)
                self._done = self._begun
            return self._latest


_census: RunVar[_Census] = RunVar("agentcore_workspace_census")


async def take_census() -> Mapping[int, Seen]:
    """Tell which processes there are, by a look that began after this was called."""
    try:
        census = _census.get()
    except LookupError:
        census = _Census()
        _census.set(census)
    return await census.take()
