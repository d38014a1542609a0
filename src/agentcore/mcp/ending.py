"""The end of a connection: that it is over, and why."""

from __future__ import annotations

import anyio


class Ending:
    """Set once, by what notices first that the connection is over."""

    def __init__(self) -> None:
        self._reason: str | None = None
        self._event = anyio.Event()
        self.hint: str | None = None
        """The last thing that went wrong, which alone is no end."""
        self.is_refusal = False
        """True if nothing was done of what was asked last: it did not arrive, or was turned away."""

    @property
    def reason(self) -> str | None:
        """Why it is over, in words that follow a colon; None while it is not."""
        return self._reason

    def set(self, reason: str, *, is_refusal: bool = False) -> None:
        """Mark the connection as over. Of several reasons the first one counts."""
        if self._reason is None:
            self._reason = reason
            self.is_refusal = is_refusal
            self._event.set()

    async def wait(self) -> str:
        """Wait for the end, and return the reason."""
        await self._event.wait()
        assert self._reason is not None
        return self._reason
