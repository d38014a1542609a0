"""Feeds a view with the events and deltas of a conversation, in an order that makes sense to a reader."""

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
"""Event loop iterations after which a waiting delta has certainly been delivered."""


class Watch:
    """Forwards events and deltas until it is cancelled.

    Deltas arrive sooner than events. The deltas of a reply wait until earlier events are shown, those of a call until its
    start is shown. Events let earlier deltas pass first.

    Args:
        conversation: The conversation to watch.
        view: Receives events and deltas.
        record: Receives each event before the view does.
        after: The seq after which to begin.
    """

    def __init__(
        self, conversation: Conversation, view: View, record: Callable[[Event], None] | None, after: int
    ) -> None:
        self._conversation = conversation
        self._view = view
        self._record = record
        self._events = conversation.events(after=after)
        self._deltas = conversation.deltas()
        self._delivered = 0
        self._seq = after
        self._about: tuple[str | None, int, str | None] | None = None
        """The reply, attempt and action of the newest delta."""
        self._coming = ""
        """The reply of the next event."""
        self._begun: set[str] = set()
        """The actions whose start was shown."""
        self._moved = anyio.Event()

    def start(self, tasks: TaskGroup) -> None:
        """Start watching."""
        tasks.start_soon(self._follow_events)
        tasks.start_soon(self._follow_deltas)
        tasks.start_soon(self._view.ticker.run)

    async def catch_up(self) -> None:
        """Wait until everything in the log was shown."""
        head = self._conversation.state.head
        with anyio.move_on_after(_CATCH_UP_SECONDS):  # noqa: ASYNC912 what is awaited in it is a checkpoint wherever it waits
            while self._seq < head:
                await self._moved.wait()

    async def _follow_events(self) -> None:
        async for event in self._events:
            match event:
                case ObservationEvent() | AgentErrorEvent() | UserRejectObservation():
                    await self._let_deltas_pass()
                    self._begun.discard(event.cause or "")
                case ActionEvent() | MessageEvent() | UsageEvent() if event.reply_id is not None:
                    self._coming = event.reply_id
                    self._move()
                    await self._let_deltas_pass()
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
            self._delivered += 1
            self._view.delta(delta)

    async def _wait_for_its_turn(self, delta: StreamDelta) -> None:
        """Wait, before the first piece of a reply or an output, until earlier events were shown."""
        about = (delta.reply_id, delta.attempt, delta.action_id)
        if about == self._about or delta.type == "gap":
            return
        self._about = about
        # The log has everything that the reply answers. If it has the reply too, the events of the reply let it pass.
        head = self._conversation.state.head
        while self._seq < head and delta.action_id not in self._begun and delta.reply_id != self._coming:
            await self._moved.wait()

    def _move(self) -> None:
        self._moved.set()
        self._moved = anyio.Event()

    async def _let_deltas_pass(self) -> None:
        """Let earlier deltas pass: the output of a call belongs above its result."""
        delivered = -1
        while delivered != self._delivered:
            delivered = self._delivered
            for _ in range(_TURNS):
                await checkpoint()
