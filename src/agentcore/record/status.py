"""The statuses of a conversation and the one table of how they change."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from agentcore.events import ConversationStatus

Trigger = Literal["send", "run", "pause", "interrupt", "approve", "reopen"]

_IDLE = ConversationStatus.IDLE
_RUNNING = ConversationStatus.RUNNING
_PAUSED = ConversationStatus.PAUSED
_WAITING = ConversationStatus.WAITING_FOR_CONFIRMATION
_FINISHED = ConversationStatus.FINISHED
_STUCK = ConversationStatus.STUCK
_ERROR = ConversationStatus.ERROR

TRANSITIONS: Mapping[tuple[ConversationStatus, Trigger], ConversationStatus] = MappingProxyType(
    {
        (_IDLE, "run"): _RUNNING,
        (_IDLE, "pause"): _PAUSED,
        (_RUNNING, "interrupt"): _PAUSED,
        (_RUNNING, "reopen"): _PAUSED,
        (_PAUSED, "run"): _RUNNING,
        (_WAITING, "interrupt"): _PAUSED,
        (_WAITING, "approve"): _RUNNING,
        (_FINISHED, "send"): _IDLE,
        (_STUCK, "send"): _IDLE,
        (_ERROR, "send"): _IDLE,
        (_STUCK, "run"): _RUNNING,
        (_ERROR, "run"): _RUNNING,
    }
)
"""Where each trigger leads; what is not listed changes nothing.

A pause while running takes effect at the end of the step, and a rejection that leaves nothing waiting makes the
conversation idle: both are written as status changes of their own.
"""


def next_status(status: ConversationStatus, trigger: Trigger) -> ConversationStatus:
    """Return the status that the trigger leads to."""
    return TRANSITIONS.get((status, trigger), status)
