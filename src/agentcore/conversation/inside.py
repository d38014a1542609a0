"""Knowing that a call comes from inside a conversation, where waiting for it would be waiting for oneself."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from agentcore.errors import InsideConversation

__all__ = ["enter_inside", "refuse_inside"]

_inside: ContextVar[frozenset[str]] = ContextVar("agentcore_inside", default=frozenset())


@contextmanager
def enter_inside(conversation_id: str) -> Generator[None]:
    """Mark what runs here, and every task it starts, as being inside this conversation."""
    token = _inside.set(_inside.get() | {conversation_id})
    try:
        yield
    finally:
        _inside.reset(token)


def refuse_inside(conversation_id: str, what: str) -> None:
    """Raise where the caller is inside this conversation.

    Raises:
        InsideConversation: It is.
    """
    if conversation_id in _inside.get():
        raise InsideConversation(what)
