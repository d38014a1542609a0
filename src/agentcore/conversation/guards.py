"""Where a conversation may be used from: its own event loop, and not from inside of a call that it waits for."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import final

from anyio import NoEventLoopError
from anyio.lowlevel import current_token

from agentcore.errors import ConversationClosed, ConversationError, ReentrantCall


def is_asyncio() -> bool:
    """Return whether the loop that runs here is one of asyncio's."""
    return hasattr(current_token().native_token, "is_closed")


@final
class LoopAffinity:
    """The loop that it was made in."""

    __slots__ = ("_id", "_loop")

    def __init__(self, conversation_id: str | None) -> None:
        """Take the id of the conversation that lives here, or None for a host of many."""
        self._id = conversation_id
        self._loop = current_token().native_token

    @property
    def loop_closed(self) -> bool:
        """True if the loop was closed under it. Only asyncio's can be: trio's ends when nothing is left in it."""
        is_closed = getattr(self._loop, "is_closed", None)
        return is_closed is not None and bool(is_closed())

    def check_loop(self) -> None:
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
        if self.loop_closed and self._id is not None:
            raise ConversationClosed(self._id)
        raise ConversationError(
            f"{'The host' if self._id is None else f'Conversation {self._id!r}'} belongs to another event loop than the one "
            "it was used in, or it was used in a thread without one. Hand the call over to its own loop: "
            "`anyio.from_thread.run(conversation.send, text, token=token)`, with the `anyio.lowlevel.current_token()` of "
            "that loop (its worker threads need no token). Or open it here, in a Host of this loop, once it is closed there."
        )


_inside: ContextVar[frozenset[str]] = ContextVar("agentcore_inside", default=frozenset())


@contextmanager
def mark_running_in(conversation_id: str) -> Generator[None]:
    """Mark what runs here, and every task it starts, as being inside this conversation."""
    token = _inside.set(_inside.get() | {conversation_id})
    try:
        yield
    finally:
        _inside.reset(token)


def forbid_reentry(conversation_id: str, what: str) -> None:
    """Raise where the caller is inside this conversation.

    Raises:
        ReentrantCall: It is.
    """
    if conversation_id in _inside.get():
        raise ReentrantCall(what)
