"""The only way into the log: what is to be kept is handed over, and who wants to know waits until the recorder answers.

Two things travel, over one memory object stream: drafts (groups of events of the conversation's own tasks) and decisions
(commands of those who use it). Handing over never waits, so that no cancellation of a caller can come between a command
and its effect: asyncio's own `task.cancel()` goes through anyio's shields.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, field

import anyio
from anyio.lowlevel import checkpoint_if_cancelled
from pydantic import JsonValue

from agentcore.agent import Agent
from agentcore.commands import Command, Receipt
from agentcore.conversation.guards import LoopAffinity
from agentcore.conversation.result import RunResult
from agentcore.conversation.turn import Turn
from agentcore.errors import ConversationClosed, StoreError
from agentcore.events import Event
from agentcore.record import ConversationState
from agentcore.secrets import SecretRegistry, SecretSource
from agentcore.security import Check

Condition = Callable[[ConversationState], bool]
"""Asked by the recorder just before a draft is kept; agentcore's own functions only."""

Compose = Callable[[ConversationState], Sequence[Event]]
"""Returns the events of a draft, on the state that the recorder appends them to; agentcore's own functions only."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attachment:
    """The live things that travel beside a command. They come into force when what it writes is folded."""

    context: Context | None = None
    """Of the caller: a turn that the command begins runs in it."""
    checks: tuple[Check, ...] = ()
    agent: Agent | None = None
    arguments: Mapping[str, JsonValue] | None = None
    """Edited arguments as they were given: the log has them masked."""
    secrets: Mapping[str, SecretSource] = field(default_factory=dict[str, SecretSource])
    """Registered from the hand-over on."""
    tail: Compose | None = None
    """Returns the events that join the group of a command that begins a run: a changed system prompt."""
    run: Decision | None = None
    """Of an interrupt: a run that was asked for before it, and had not been decided on. It is meant too."""


class Draft:
    """A group of events on its way to the log."""

    __slots__ = ("compose", "condition", "done", "error", "events", "kept", "tail", "tail_condition", "tail_kept")

    def __init__(
        self,
        events: Sequence[Event],
        condition: Condition | None,
        tail: Sequence[Event] = (),
        tail_condition: Condition | None = None,
        *,
        compose: Compose | None = None,
    ) -> None:
        self.events = events
        self.compose = compose
        self.condition = condition
        self.tail = tail
        """Joins the group where its condition holds."""
        self.tail_condition = tail_condition
        self.done = anyio.Event()
        self.kept: Sequence[Event] | None = None
        self.tail_kept = False
        self.error: Exception | None = None

    @property
    def depends_on_state(self) -> bool:
        """True if it has to be looked at on the state that all items before it have made."""
        return self.condition is not None or self.tail_condition is not None or self.compose is not None

    def resolve(self, state: ConversationState) -> Sequence[Event]:
        """Return the events to keep of it, on this state."""
        if self.condition is not None and not self.condition(state):
            return ()
        if self.compose is not None:
            return self.compose(state)
        if self.tail_condition is not None and self.tail_condition(state):
            self.tail_kept = True
            return [*self.events, *self.tail]
        return self.events


class Decision:
    """A command on its way to the recorder, and then what it came to."""

    __slots__ = ("attachment", "command", "done", "error", "receipt", "turn")

    def __init__(self, command: Command, attachment: Attachment) -> None:
        self.command = command
        self.attachment = attachment
        self.done = anyio.Event()
        self.receipt: Receipt | None = None
        self.error: Exception | None = None
        self.turn: Turn | RunResult | None = None
        """Of a run: the turn to wait for, or its result where there is nothing to wait for."""

    @property
    def depends_on_state(self) -> bool:
        """True if it has to be decided on the state that all items before it have made. A message need not."""
        return self.command.kind != "send"


class Intake:
    """The items that wait for the recorder, in order. Nobody waits for room: who hands something over waits until it is kept.

    The recorder never waits inside of the stream: an item that was given to a receiver is lost with it, when asyncio
    cancels the tasks of a loop that something has stopped. It waits for the news that there is one.
    """

    def __init__(self) -> None:
        self._send, self._receive = anyio.create_memory_object_stream[Draft | Decision](math.inf)
        self._news = anyio.Event()
        self._ended = False

    def put(self, item: Draft | Decision) -> bool:
        """Add one; return whether the recorder will take it."""
        try:
            self._send.send_nowait(item)
        except anyio.ClosedResourceError:
            return False
        self._news.set()
        return True

    async def take(self, most: int) -> list[Draft | Decision]:
        """Wait until there is something and take what is there, up to a number; nothing once it is closed and empty."""
        while not (items := self.take_nowait(most)) and not self._ended:
            self._news = anyio.Event()
            await self._news.wait()
        return items

    def take_nowait(self, most: int) -> list[Draft | Decision]:
        """Take what is there, up to a number."""
        items: list[Draft | Decision] = []
        try:
            while len(items) < most:
                items.append(self._receive.receive_nowait())
        except anyio.WouldBlock:
            pass
        except anyio.EndOfStream:
            self._ended = True
            self._receive.close()
        except anyio.ClosedResourceError:
            pass  # it has ended before
        return items

    def close(self) -> None:
        """Take no more in."""
        self._send.close()
        self._news.set()


class Journal:
    """Hands over groups of events, masked, and commands. Any task may use it at any time."""

    def __init__(self, conversation_id: str, intake: Intake, secrets: SecretRegistry, home: LoopAffinity) -> None:
        self._home = home
        self._id = conversation_id
        self._intake = intake
        self._secrets = secrets
        self._commands_closed = False
        self.failure_reported = False
        """True once a caller has got the error that the log died."""

    async def write(self, *events: Event, condition: Condition | None = None) -> Sequence[Event] | None:
        """Keep a group of events, all or nothing, and return them back as they are kept: masked, with their seqs.

        Args:
            events: The group.
            condition: Keep nothing, and give None, unless it holds when the recorder gets there.

        Raises:
            StoreError: They are not kept, or that is unknown; the conversation is over.
            ConversationClosed: The conversation has ended.
        """
        await checkpoint_if_cancelled()
        return await self.write_shielded(*events, condition=condition)

    async def write_shielded(self, *events: Event, condition: Condition | None = None) -> Sequence[Event] | None:
        """Write, even where the caller is cancelled already: for what has happened and must not be lost."""
        if not events:
            return ()
        draft = Draft(self._mask(events), condition)
        await self._keep(draft)
        return draft.kept

    async def write_with_tail(self, events: Sequence[Event], tail: Event, condition: Condition) -> bool:
        """Write, as `write_shielded` does; return whether `tail` was kept in the same group: only where its condition held."""
        draft = Draft(self._mask(events), None, self._mask((tail,)), condition)
        await self._keep(draft)
        return draft.tail_kept

    async def write_composed(self, compose: Compose) -> None:
        """Write, as `write_shielded` does, what `compose` gives on the state that the recorder appends to."""
        await self._keep(Draft((), None, compose=lambda state: self._mask(compose(state))))

    async def _keep(self, draft: Draft) -> None:
        self._home.check_loop()
        if not self._intake.put(draft):
            raise ConversationClosed(self._id)
        # The tasks of a conversation are cancelled by scopes. What breaks through a shield (the end of the loop, a cancel
        # of asyncio's own) gives up the waiting, not the write.
        with anyio.CancelScope(shield=True):
            await draft.done.wait()
        if draft.error is not None:
            raise draft.error

    def _mask(self, events: Sequence[Event]) -> list[Event]:
        masker = self._secrets.masker
        return [masker.mask_event(event) for event in events]

    def hand_over(self, command: Command, attachment: Attachment | None = None) -> Decision:
        """Hand a command to the recorder. From here on it is whole, whatever becomes of the caller.

        Raises:
            ConversationClosed: The conversation takes no more commands.
        """
        self._home.check_loop()
        decision = Decision(command, attachment or Attachment())
        if self._commands_closed or not self._intake.put(decision):
            raise ConversationClosed(self._id)
        return decision

    async def receipt_of(self, decision: Decision) -> Receipt:
        """Wait until a command was decided on and what it wrote is kept. A caller that is cancelled just leaves.

        Raises:
            StoreError: The log died.
            AgentcoreError: The command was refused, with the error of its kind.
        """
        await decision.done.wait()
        if decision.error is not None:
            self.failure_reported = self.failure_reported or isinstance(decision.error, StoreError)
            raise decision.error
        assert decision.receipt is not None
        return decision.receipt

    def close_commands(self) -> None:
        """Take no more commands in. Those that were handed over are still decided on."""
        self._commands_closed = True

    async def flush(self) -> None:
        """Wait until the recorder has decided on and kept all that was handed over before this."""
        draft = Draft((), None)
        if self._intake.put(draft):
            with anyio.CancelScope(shield=True):
                await draft.done.wait()
