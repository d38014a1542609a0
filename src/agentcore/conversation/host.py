"""Many conversations in one task group: `async with Host() as host: conversation = await host.open(agent, ...)`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from os import PathLike
from typing import Self

from anyio import AsyncContextManagerMixin
from anyio.abc import TaskGroup, TaskStatus

from agentcore.agent import Agent
from agentcore.conversation.core import Core
from agentcore.conversation.given import check_given
from agentcore.conversation.groups import open_group
from agentcore.conversation.handle import Conversation
from agentcore.conversation.home import Home
from agentcore.conversation.serve import Setup, serve_conversation
from agentcore.conversation.telling import masked_repr
from agentcore.errors import ConversationError
from agentcore.logs import get_logger
from agentcore.record import Store
from agentcore.secrets import SecretSource
from agentcore.security import Checks, Confirm
from agentcore.usage import Limits
from agentcore.workspace import Workspace

__all__ = ["Host"]

_log = get_logger(__name__)


class Host(AsyncContextManagerMixin):
    """Holds conversations open whose handles may be used and closed from any task: request handlers, fixtures.

    Leaving the context closes all of them. One that fails ends alone.
    """

    def __init__(self) -> None:
        self._tasks: TaskGroup | None = None
        self._cores: set[Core] = set()  # not by id: two stores may each have one of the same
        self._leaving = False
        self._home: Home | None = None

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self]:
        if self._tasks is not None:
            raise ConversationError("A Host is entered once. Make another one.")
        self._home = Home(None)
        async with open_group() as self._tasks:
            try:
                yield self
            finally:
                self._leaving = True
                for core in self._cores:
                    core.stop.set()

    async def open(
        self,
        agent: Agent | None,
        workspace: Workspace | str | PathLike[str] | None = None,
        *,
        id: str | None = None,  # noqa: A002 the name users expect
        store: Store | None = None,
        confirm: Checks | Confirm | None = None,
        limits: Limits | None = None,
        secrets: Mapping[str, SecretSource] | None = None,
    ) -> Conversation:
        """Open a conversation, as `Conversation(...)` does, and give its handle; `close()` ends it.

        Raises:
            StoreError: The log can't be opened.
            ConversationError: The host is not open, or not any more, or belongs to another event loop.
        """
        if self._tasks is None or self._home is None or self._leaving or self._home.is_gone:
            raise ConversationError("The host is not open: use `async with Host() as host`.")
        self._home.refuse_elsewhere()
        check_given(store, confirm)
        setup = Setup(
            agent=agent, workspace=workspace, id=id, store=store, confirm=confirm, limits=limits, secrets=secrets
        )
        core: Core = await self._tasks.start(self._serve, setup, name="conversation")
        return Conversation._hosted(setup, core)  # pyright: ignore[reportPrivateUsage]

    async def _serve(self, setup: Setup, *, task_status: TaskStatus[Core]) -> None:
        assert self._tasks is not None
        status = _Remember(task_status, self._remember)
        try:
            await serve_conversation(setup, self._tasks, task_status=status)
        except Exception as error:
            if status.core is None:
                raise  # not open yet: whoever opens it is told
            told = masked_repr(status.core.secrets, error)
            _log.error("conversation ended", conversation=status.core.state.conversation_id, error=told)
        finally:
            if status.core is not None:
                self._cores.discard(status.core)

    def _remember(self, core: Core) -> None:
        self._cores.add(core)
        if self._leaving:
            core.stop.set()


class _Remember(TaskStatus[Core]):
    """Notes the core on its way to whoever opens the conversation."""

    def __init__(self, status: TaskStatus[Core], remember: Callable[[Core], None]) -> None:
        self._status = status
        self._remember = remember
        self.core: Core | None = None

    def started(self, value: Core | None = None) -> None:
        assert value is not None
        self.core = value
        self._remember(value)
        self._status.started(value)
