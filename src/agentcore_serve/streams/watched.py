"""The view that a stream has of a conversation. `Conversation.link` has it, and so has a log that another process writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import anyio

from agentcore.conversation import DeltaCursor
from agentcore.record import ConversationState
from agentcore.wire import Frame


class Signal(Protocol):
    """The signal that the log has grown."""

    @property
    def closed(self) -> bool:
        """True if nothing will ever be appended again."""
        ...

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have a function called when the head has moved, and when nothing more will be appended.

        The function neither waits nor raises. Call what is returned to end that.
        """
        ...


class Watched(Protocol):
    """A log that grows."""

    @property
    def state(self) -> ConversationState:
        """The state that is folded from the log, with its events."""
        ...

    @property
    def head_signal(self) -> Signal:
        """The signal that the head moved."""
        ...

    def deltas(self) -> DeltaCursor | None:
        """Follow the deltas from now on; None where there are none, because another process works."""
        ...


class ClientFrames(Protocol):
    """Frames for one client alone: what the server asks of it."""

    @property
    def news(self) -> anyio.Event:
        """Set when there is something to take, or when it is closed. After `take` it is another one."""
        ...

    @property
    def closed(self) -> bool:
        """True once the client has another connection."""
        ...

    def take(self) -> Sequence[Frame]:
        """Return the frames that are there, without waiting."""
        ...


class AsksClients(Protocol):
    """A conversation where clients run parts of it."""

    def frames_for(self, client: str) -> AbstractContextManager[ClientFrames]:
        """Attach a client while the context lasts."""
        ...
