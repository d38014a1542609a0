"""What tests write into logs."""

from __future__ import annotations

from agentcore.events import MessageEvent
from agentcore.messages import Message
from agentcore.record import BLOB_THRESHOLD

LARGE = "x" * (BLOB_THRESHOLD + 1)
"""A text that is kept as a blob."""


def said(text: str) -> MessageEvent:
    return MessageEvent(source="user", message=Message.user(text))
