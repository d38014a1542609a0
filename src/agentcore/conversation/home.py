"""The event loop that a conversation lives in. Its events, scopes and tasks belong to that loop and to its thread."""

from __future__ import annotations

from typing import final

from anyio import NoEventLoopError
from anyio.lowlevel import current_token

from agentcore.errors import ConversationClosed, ConversationError

__all__ = ["Home", "is_asyncio"]


def is_asyncio() -> bool:
    """Say whether the loop that runs here is one of asyncio's."""
    return hasattr(current_token().native_token, "is_closed")


@final
class Home:
    """The loop that it was made in."""

    __slots__ = ("_id", "_loop")

    def __init__(self, conversation_id: str | None) -> None:
        """Take the id of the conversation that lives here, or None for a host of many."""
        self._id = conversation_id
        self._loop = current_token().native_token

    @property
    def is_gone(self) -> bool:
        """Whether the loop was closed under it. Only asyncio's can be: trio's ends when nothing is left in it."""
        is_closed = getattr(self._loop, "is_closed", None)
        return is_closed is not None and bool(is_closed())

    def refuse_elsewhere(self) -> None:
        """Raise where the caller is not in the loop: what it would wait for can't wake it there.

        Raises:
            ConversationError: The caller is in another loop, or in none.
            ConversationClosed: Nobody can be in it any more.
        """
        try:
            if current_token().native_token is self._loop:
                return
        except NoEventLoopError:
            pass
        if self.is_gone and self._id is not None:
            raise ConversationClosed(self._id)
        raise ConversationError(
            f"{'The host' if self._id is None else f'Conversation {self._id!r}'} belongs to another event loop than the one "
            "it was used in, or it was used in a thread without one. Hand the call over to its own loop: "
            "`anyio.from_thread.run(conversation.send, text, token=token)`, with the `anyio.lowlevel.current_token()` of "
            "that loop (its worker threads need no token). Or open it here, in a Host of this loop, once it is closed there."
        )
