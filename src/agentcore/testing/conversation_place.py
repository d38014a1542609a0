"""The place where the contract of conversations opens them, and small helpers of its tests.

Above: the parts of `ConversationContract`. Below: whatever a subclass opens: a conversation here, or one on a server.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, TypeVar

import anyio
from anyio.lowlevel import checkpoint

from agentcore.agent import Agent
from agentcore.conversation import Conversation, RunResult
from agentcore.events import ActionEvent, ConversationStatus, EventBase
from agentcore.llm import Model
from agentcore.messages import Message
from agentcore.record import ConversationState
from agentcore.testing.script import Request, ScriptLine

ScriptLines = Iterable[ScriptLine] | Callable[[Request], ScriptLine]
"""A script, as `ScriptedLLM` takes it."""

FINISHED, WAITING = ConversationStatus.FINISHED, ConversationStatus.WAITING_FOR_CONFIRMATION
IDLE, PAUSED, ERROR = ConversationStatus.IDLE, ConversationStatus.PAUSED, ConversationStatus.ERROR

_BOUND = 60.0
"""A test that hangs fails; one on a loaded machine does not."""

E = TypeVar("E", bound=EventBase)
ErrorT = TypeVar("ErrorT", bound=BaseException)


class ConversationPlace(Protocol):
    """Opens conversations, makes models for them, and reads their logs beside them."""

    def model(self, replies: ScriptLines) -> Model:
        """Return a model that plays a script, and that the place can work with."""
        ...

    def open(self, agent: Agent | None, **options: Any) -> AbstractAsyncContextManager[Conversation]:
        """Open a conversation with the options of `Conversation`, `workspace` and `store` left out: those are the place's own.

        All conversations of one test have one store, and one folder to work in.
        """
        ...

    async def read_state(self, conversation_id: str) -> ConversationState:
        """Read the log by another way than the conversation's own, and return the state that it folds to.

        Raises:
            ConversationNotFound: There is none of that id.
        """
        ...


def agent_of(place: ConversationPlace, replies: ScriptLines, *tools: Any, **settings: Any) -> Agent:
    """Make an agent that plays a script with these tools."""
    return Agent(llm=place.model(replies), tools=tools, **settings)


@asynccontextmanager
async def opened(
    place: ConversationPlace, replies: ScriptLines | Agent, *tools: Any, **options: Any
) -> AsyncGenerator[Conversation]:
    """Open a conversation of an agent that plays a script, and let no test hang in it."""
    agent = replies if isinstance(replies, Agent) else agent_of(place, replies, *tools)
    with anyio.fail_after(_BOUND):
        async with place.open(agent, **options) as conversation:
            yield conversation


class Begun:
    """A run that was begun; its result is there once the block around it has ended."""

    def __init__(self, scope: anyio.CancelScope) -> None:
        self._scope = scope
        self.outcome: RunResult | None = None
        self.cancelled = False
        """True if a cancellation came out of it."""

    @property
    def result(self) -> RunResult:
        """The result."""
        assert self.outcome is not None, "the run has not returned"
        return self.outcome

    def cancel(self) -> None:
        """Cancel who waits for it."""
        self._scope.cancel()


@asynccontextmanager
async def running(conversation: Conversation, text: str | Message | None = "go") -> AsyncGenerator[Begun]:
    """Begin a run beside the block, and wait for its end after the block."""
    async with anyio.create_task_group() as tasks:
        scope = anyio.CancelScope()
        begun = Begun(scope)

        async def run() -> None:
            with scope:
                begun.outcome = await conversation.run(text)
            begun.cancelled = scope.cancelled_caught

        tasks.start_soon(run)
        yield begun


async def until(conversation: Conversation, condition: Callable[[], object]) -> None:
    """Wait until a condition on the conversation's state holds; it is looked at after every event."""
    with anyio.fail_after(_BOUND):
        await checkpoint()
        if condition():
            return
        async for _ in conversation.events(conversation.state.head):
            if condition():
                return
    raise AssertionError("the conversation was closed before that")


async def until_has(conversation: Conversation, kind: type[E]) -> E:
    """Wait until a conversation has an event of a kind, and return the first one."""
    await until(conversation, lambda: events_of(conversation, kind))
    return events_of(conversation, kind)[0]


async def raised(expected: type[ErrorT], answer: Awaitable[object]) -> ErrorT:
    """Await what has to raise, and return what it raised."""
    try:
        await answer
    except expected as error:
        return error
    raise AssertionError(f"no {expected.__name__} was raised")


def events_of(source: Conversation | ConversationState, kind: type[E]) -> list[E]:
    """Return the events of a kind."""
    state = source.state if isinstance(source, Conversation) else source
    return [event for event in state.events if isinstance(event, kind)]


def actions_of(conversation: Conversation) -> list[ActionEvent]:
    """Return the calls of tools."""
    return events_of(conversation, ActionEvent)
