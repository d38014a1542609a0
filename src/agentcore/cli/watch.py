"""Following a conversation for the view: events and deltas, in the order in which they make sense."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from agentcore.cli.view import View
from agentcore.conversation import Conversation, StreamDelta
from agentcore.events import (
    ActionEvent,
    ActionStarted,
    AgentErrorEvent,
    Event,
    MessageEvent,
    ObservationEvent,
    UsageEvent,
    UserRejectObservation,
)

_CATCH_UP_SECONDS = 5.0
_TURNS = 4
"""Turns of the event loop in which a delta that is waiting is given out for certain."""


class Watch:
    """Hands on what happens, until it is cancelled.

    Deltas come sooner than events: a reply's wait until what came before the reply was shown, a call's until it was
    shown that it started. Events let those that came before them go first.

    Args:
        conversation: Which one.
        view: Shown events and deltas.
        record: Given each event before it is shown.
        after: The seq behind which to begin.
    """

    def __init__(
        self, conversation: Conversation, view: View, record: Callable[[Event], None] | None, after: int
    ) -> None:
        self._conversation = conversation
        self._view = view
        self._record = record
        self._events = conversation.events(after=after)
        self._deltas = conversation.deltas()
        self._heard = 0
        self._seq = after
        self._said_of: tuple[str | None, int, str | None] | None = None
        """Of what the newest delta was a piece: the reply, its attempt, and the action."""
        self._coming = ""
        """The reply that the next event is of."""
        self._begun: set[str] = set()
        """The actions that were shown to have started."""
        self._moved = anyio.Event()

    def start(self, tasks: TaskGroup) -> None:
        """Follow from now on."""
        tasks.start_soon(self._follow_events)
        tasks.start_soon(self._follow_deltas)
        tasks.start_soon(self._view.ticker.run)

    async def catch_up(self) -> None:
        """Wait until everything that is in the log now was shown."""
        head = self._conversation.state.head
        with anyio.move_on_after(_CATCH_UP_SECONDS):  # noqa: ASYNC912 what is awaited in it is a checkpoint wherever it waits
            while self._seq < head:
                await self._moved.wait()

    async def _follow_events(self) -> None:
        async for event in self._events:
            match event:
                case ObservationEvent() | AgentErrorEvent() | UserRejectObservation():
                    await self._hear_out()
                    self._begun.discard(event.cause or "")
                case ActionEvent() | MessageEvent() | UsageEvent() if event.reply_id is not None:
                    self._coming = event.reply_id
                    self._move()
                    await self._hear_out()
                case ActionStarted():
                    self._begun.add(event.cause or "")
                case _:
                    pass
            if self._record is not None:
                self._record(event)
            self._view.event(event)
            self._seq = event.seq
            self._move()

    async def _follow_deltas(self) -> None:
        async for delta in self._deltas:
            await self._wait_for_its_turn(delta)
            self._heard += 1
            self._view.delta(delta)

    async def _wait_for_its_turn(self, delta: StreamDelta) -> None:
        """Wait, before the first piece of a reply or of a call's output, until what comes before it was shown."""
        about = (delta.reply_id, delta.attempt, delta.action_id)
        if about == self._said_of or delta.type == "gap":
            return
        self._said_of = about
        # All that the reply answers is in the log by now; where the reply is too, its own events let it go first.
        head = self._conversation.state.head
        while self._seq < head and delta.action_id not in self._begun and delta.reply_id != self._coming:
            await self._moved.wait()

    def _move(self) -> None:
        self._moved.set()
        self._moved = anyio.Event()

    async def _hear_out(self) -> None:
        """Let the deltas that came before go first: a call's output belongs above its answer."""
        heard = -1
        while heard != self._heard:
            heard = self._heard
            for _ in range(_TURNS):
                await checkpoint()
