"""Conversations with a scripted model: opened, begun, waited for and read, and small tools for them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar, overload

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from agentcore import (
    Agent,
    AgentErrorEvent,
    Conversation,
    ConversationStatus,
    Event,
    Host,
    MemoryStore,
    ObservationEvent,
    RunResult,
    UserRejectObservation,
)
from agentcore.conversation.core import Core
from agentcore.conversation.local import LocalLink
from agentcore.events import EventBase
from agentcore.record import ConversationState, EventLog, Record, StoredLog
from agentcore.testing import Request, ScriptedLLM, ScriptLine
from agentcore.tools import tool

E = TypeVar("E", bound=EventBase)
BOUND = 60
"""A test that hangs fails; one on a loaded machine does not."""

IDLE, RUNNING, PAUSED = ConversationStatus.IDLE, ConversationStatus.RUNNING, ConversationStatus.PAUSED
WAITING, FINISHED = ConversationStatus.WAITING_FOR_CONFIRMATION, ConversationStatus.FINISHED
STUCK, ERROR = ConversationStatus.STUCK, ConversationStatus.ERROR

ran: list[Any] = []
"""What the tools here were called with in this test."""


@tool(resources=())
async def ping() -> str:
    """Ping."""
    await checkpoint()
    return "pong"


@tool(resources=())
async def hang() -> str:
    """Never end."""
    await anyio.sleep_forever()
    return "never"


@tool
async def change(name: str) -> str:
    """Change something."""
    ran.append(name)
    return f"changed {name}"


@tool(read_only=True)
async def look(name: str) -> str:
    """Look at something."""
    ran.append(f"looked at {name}")
    return name


Script = Sequence[ScriptLine] | Callable[[Request], ScriptLine]


def scripted(script: Script | ScriptedLLM, *tools: Any, **settings: Any) -> Agent:
    """Make an agent that plays a script with these tools and toolsets."""
    llm = script if isinstance(script, ScriptedLLM) else ScriptedLLM(script)
    return Agent(llm=llm, tools=tools, **settings)


@asynccontextmanager
async def talk(
    script: Script | ScriptedLLM | Agent | None, *tools: Any, **options: Any
) -> AsyncGenerator[Conversation]:
    """Open a conversation of such an agent in the test's folder, and let no test hang in it."""
    agent = script if script is None or isinstance(script, Agent) else scripted(script, *tools)
    with anyio.fail_after(BOUND):
        async with Conversation(agent, **options) as conversation:
            yield conversation


@asynccontextmanager
async def hosting() -> AsyncGenerator[Host]:
    """Open a host, and let no test hang in it."""
    with anyio.fail_after(BOUND):
        async with Host() as host:
            yield host


class Begun:
    """A run that was begun; its result is there once the block around it has ended."""

    def __init__(self, tasks: TaskGroup) -> None:
        self.tasks = tasks
        self.outcome: RunResult | None = None

    @property
    def result(self) -> RunResult:
        assert self.outcome is not None
        return self.outcome

    def cancel(self) -> None:
        """Cancel who runs it."""
        self.tasks.cancel_scope.cancel()


@asynccontextmanager
async def running(conversation: Conversation, text: str | None = "go") -> AsyncGenerator[Begun]:
    """Begin a run beside the block, and wait for its end after the block."""
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            begun = Begun(tasks)

            async def run() -> None:
                begun.outcome = await conversation.run(text)

            tasks.start_soon(run)
            yield begun


@overload
async def until(source: Conversation, kind: type[E]) -> E: ...
@overload
async def until(source: Callable[[], object]) -> None: ...
async def until(source: Any, kind: Any = None) -> Any:
    """Wait until a conversation has an event of a kind, or until a condition holds."""
    with anyio.fail_after(BOUND):
        if kind is None:
            while not source():
                await checkpoint()
            return None
        async for event in source.events():
            if isinstance(event, kind):
                return event
    raise AssertionError(f"the conversation was closed without {kind.__name__}")


async def at_once(*functions: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Call them together."""
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            for function in functions:
                tasks.start_soon(function)


def events_of(source: Conversation | ConversationState, kind: type[E]) -> list[E]:
    """Return the events of a kind."""
    state = source.state if isinstance(source, Conversation) else source
    return [event for event in state.events if isinstance(event, kind)]


def core_of(conversation: Conversation) -> Core:
    """Give what a conversation of this process is made of, to hand it what no program can."""
    assert isinstance(conversation.link, LocalLink)
    return conversation.link.core


def kinds_of(conversation: Conversation) -> list[str]:
    """Return the kind of each event."""
    return [event.kind for event in conversation.state.events]


def answers_of(
    source: Conversation | ConversationState,
) -> list[ObservationEvent | AgentErrorEvent | UserRejectObservation]:
    """Return what answers a call."""
    state = source.state if isinstance(source, Conversation) else source
    answers = state.events
    return [each for each in answers if isinstance(each, ObservationEvent | AgentErrorEvent | UserRejectObservation)]


def error_of(conversation: Conversation) -> AgentErrorEvent:
    """Return the one error that answers a call."""
    (error,) = events_of(conversation, AgentErrorEvent)
    return error


async def log_of(*events: Event) -> MemoryStore:
    """Return a store with the log `c`, as a process would leave it that died after these events."""
    store = MemoryStore()
    log = await EventLog.create(store, "c")
    await log.append([list(events)])
    await log.close()
    return store


class HookedStore(MemoryStore):
    """Waits for a function before each append to a log that it made, and for another one after it."""

    def __init__(
        self,
        before: Callable[[Sequence[Record]], Awaitable[object]],
        after: Callable[[Sequence[Record]], Awaitable[object]] | None = None,
    ) -> None:
        super().__init__()
        self.before = before
        self.after = after

    async def create(self, conversation_id: str, *, format_version: int) -> Any:
        return _HookedLog(await super().create(conversation_id, format_version=format_version), self)


class _HookedLog:
    def __init__(self, log: StoredLog, store: HookedStore) -> None:
        self._log = log
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def append(self, records: Sequence[Record]) -> None:
        await self._store.before(records)
        await self._log.append(records)
        if self._store.after is not None:
            await self._store.after(records)
