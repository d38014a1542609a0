"""Knowing that a call comes from inside a conversation, where waiting for it would be waiting for oneself."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from agentcore.errors import ReentrantCall

__all__ = ["forbid_reentry", "mark_running_in"]

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
