"""The live part of tools and toolsets: opened for a conversation, each entered and left by one task.

Above: `ToolSessions`, which has those of a conversation. A `ToolSession` is one opening; a `ToolsetSession` keeps a toolset
open through as many of them as it takes.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Final, Generic, TypeVar

import anyio
from anyio import get_cancelled_exc_class
from anyio.abc import TaskStatus
from anyio.to_thread import run_sync

from agentcore.conversation.exceptions import is_cancelled, masked_repr, safe_str, spurious_cancellation, unwrap
from agentcore.conversation.guards import mark_running_in
from agentcore.errors import ToolError
from agentcore.logs import get_logger
from agentcore.secrets import SecretRegistry
from agentcore.tools import AnyTool, OpenToolset, Tool, Toolset, ToolsetContext

_log = get_logger(__name__)

_ATTEMPT_SECONDS: Final = 300.0
"""How long an opening may take before it is cancelled."""
_CLOSE_SECONDS: Final = 10.0
"""How long closing may take before it is cancelled."""
_FIRST_DELAY: Final = 1.0
"""How long after its end a toolset is opened again; doubled each time, up to the longest delay."""
_LONGEST_DELAY: Final = 60.0

OpenT = TypeVar("OpenT")

Notify = Callable[[str, str], None]
"""Called with what people should know about a toolset: a code and a sentence."""


class ToolSession(Generic[OpenT]):
    """One opening: entered and left by the task that runs `hold`, used and closed from any task."""

    def __init__(self, what: str, secrets: SecretRegistry) -> None:
        self.what = what
        """Its name in messages, as in "tool 'terminal'"."""
        self.opened: OpenT | None = None
        """The value that its context gave, while it is open."""
        self.was_open = False
        self.cancelled = False
        """A cancellation ended it that is not ours: asyncio's own, or one that it raised by itself."""
        self.failure: BaseException | None = None
        """The error that ended it, or that was raised while it was closed."""
        self._secrets = secrets
        self._scope = anyio.CancelScope()
        self._stop = anyio.Event()
        self._begun = False
        self._done = anyio.Event()

    @property
    def ended(self) -> bool:
        """True once nothing of it is left to close."""
        return self._done.is_set()

    async def hold(
        self,
        opening: AbstractAsyncContextManager[OpenT],
        until: Callable[[OpenT], Awaitable[object]] | None = None,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Open it, and hold it open until it is closed, ends by itself, or `until` returns.

        Raises:
            Exception: What opening it raised.
        """
        self._begun = True
        try:
            with self._scope:
                self._scope.deadline = anyio.current_time() + _ATTEMPT_SECONDS
                async with opening as self.opened:
                    self._scope.deadline = math.inf
                    self.was_open = True
                    task_status.started()
                    await self._wait(self.opened, until)
        except Exception as error:
            if not self.was_open:
                raise  # it reaches whatever opens it
            # One that ends by itself does not end the conversation.
            self.failure = unwrap(error)
            _log.warning("tool session ended", what=self.what, error=masked_repr(self._secrets, self.failure))
        except get_cancelled_exc_class() as error:  # noqa: ASYNC103 one of no scope in force is an end as any other
            if await is_cancelled():  # noqa: ASYNC102 asking does not wait
                raise
            self.cancelled = True
            if not self.was_open:
                raise
            self.failure = spurious_cancellation(self.what, error)
        finally:
            self.opened = None
            self._done.set()
        if not self.was_open and not self._stop.is_set():
            raise ToolError(f"The {self.what} did not open within {_ATTEMPT_SECONDS:g} s.")

    async def _wait(self, opened: OpenT, until: Callable[[OpenT], Awaitable[object]] | None) -> None:
        if until is None:
            await self._stop.wait()
            return
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                await until(opened)
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch, name=f"end of {self.what}")
            await self._stop.wait()
            tasks.cancel_scope.cancel()

    def close_nowait(self) -> None:
        """Have it closed by the task that holds it; an opening that is under way is cancelled."""
        self._stop.set()
        if not self.was_open:
            self._scope.cancel()

    async def aclose(self) -> None:
        """Close it, as `close_nowait` does, and wait for that as long as can be expected.

        Raises:
            Exception: What closing it raised.
        """
        ended_before, self.failure = self.failure, None
        self.close_nowait()
        if self._begun:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True) as patience:
                await self._done.wait()
            if patience.cancelled_caught:
                _log.warning("tool session cancelled: closing took too long", what=self.what, seconds=_CLOSE_SECONDS)
                self._scope.cancel()
        if ended_before is None and self.failure is not None:
            self.failure.add_note(f"Raised while the {self.what} was closed.")
            raise self.failure


class ToolsetSession:
    """One toolset in one conversation: opened, and opened again when it ends, by one task (`keep_open`)."""

    def __init__(self, toolset: Toolset, context: ToolsetContext, secrets: SecretRegistry, notify: Notify) -> None:
        self.toolset = toolset
        self.what = f"toolset {toolset.name!r}"
        self.patience_ends = anyio.current_time() + context.open_seconds
        """Until when a step waits for it."""
        self.tried = anyio.Event()
        """Set when it is open, or the first attempt to open it came to nothing."""
        self.ended = False
        """True once its task has ended: it is not opened again by this session."""
        self.read_before = False
        """True once its tools have been read."""
        self.instructions: str | None = None
        self.why = f"it did not open within {context.open_seconds:g} s"
        """Why it is not open, where it is not."""
        self._context = context
        self._secrets = secrets
        self._notify = notify
        self._tools: list[AnyTool] = []
        self._places: dict[str, int] = {}
        """Where tools stood in the list when they were last called, by their names."""
        self._told_missing = False
        self._session: ToolSession[OpenToolset] | None = None
        self._stop = anyio.Event()

    @property
    def is_open(self) -> bool:
        """True while its tools can be called."""
        return self._session is not None and self._session.opened is not None

    async def keep_open(self) -> None:
        """Open it, and open it again after a growing delay whenever it ends, until it is closed."""
        delay = _FIRST_DELAY
        try:
            with mark_running_in(self._context.conversation_id):
                while not self._stop.is_set():
                    began = anyio.current_time()
                    if not await self._hold_once():
                        return
                    if self._stop.is_set():
                        return
                    # What was open for a while ended for a reason of its own: no cause to be slow.
                    lasted = anyio.current_time() - began
                    delay = _FIRST_DELAY if lasted > _LONGEST_DELAY else delay
                    with anyio.move_on_after(delay):
                        await self._stop.wait()
                    delay = min(2 * delay, _LONGEST_DELAY)
        finally:
            self.ended = True
            self.tried.set()

    async def _hold_once(self) -> bool:
        """Hold it open once; False where it was cancelled, and this task is to end."""
        session = self._session = ToolSession[OpenToolset](self.what, self._secrets)
        why: str | None = None

        async def until(opened: OpenToolset) -> None:
            nonlocal why
            if self._told_missing:
                self._told_missing = False
                self._notify("open", f"The {self.what} is open.")
            with suppress(Exception):  # reading them for use reports it
                # To describe a thousand tools takes a while; each is described once.
                await run_sync(_describe, list(opened.tools()))
            self.tried.set()
            why = await opened.wait_closed()

        try:
            await session.hold(_open(self.toolset, self._context), until)
        except Exception as error:
            why = safe_str(unwrap(error)) or type(error).__name__
            _log.warning("toolset did not open", what=self.what, error=masked_repr(self._secrets, error))
        except get_cancelled_exc_class():  # noqa: ASYNC103 the same
            if not session.cancelled:
                raise
        self.tried.set()
        if self._stop.is_set():
            return False
        if session.cancelled:
            why = "it was cancelled"
        elif session.failure is not None:
            why = safe_str(session.failure) or type(session.failure).__name__
        self.why = why or "it ended by itself"
        if session.was_open:
            self._told_missing = True
            self._notify("closed", f"The {self.what} is closed: {self.why}")
        return not session.cancelled

    def tell_missing(self) -> None:
        """Notify people, once, that it has not been open yet."""
        if not self.is_open and not self._tools and not self._told_missing:
            self._told_missing = True
            self._notify(
                "missing",
                f"The {self.what} is missing: {self.why.removesuffix('.')}. The conversation goes on without its tools.",
            )

    def read(self) -> Sequence[AnyTool]:
        """Return its tools as of now, ordered by name; while it is closed, those it had last. Never raises."""
        opened = None if self._session is None else self._session.opened
        if opened is None:
            return self._tools
        try:
            given = list(opened.tools())
            self.instructions = opened.instructions
        except Exception as error:
            self._notify("tools_unreadable", f"The {self.what} can't list its tools: {safe_str(error)}")
            return self._tools
        self._tools = sorted(filter(self._is_usable, given), key=lambda tool: tool.name)
        return self._tools

    async def describe(self) -> None:
        """Describe its tools in a thread, where some are new: to describe a thousand takes a while."""
        opened = None if self._session is None else self._session.opened
        with suppress(Exception):  # reading them for use reports it
            tools = [] if opened is None else list(opened.tools())
            if any("schema" not in vars(tool) for tool in tools):
                await run_sync(_describe, tools)

    def find(self, name: str) -> AnyTool | None:
        """Return its tool of this name as of now; None where there is none, or it is closed."""
        opened = None if self._session is None else self._session.opened
        if opened is None:
            return None
        try:
            tools = opened.tools()
            # Each call asks for its tool a few times, and of a thousand it stands where it stood.
            place = self._places.get(name)
            if place is None or place >= len(tools) or tools[place].name != name:
                place = next((place for place, tool in enumerate(tools) if tool.name == name), None)
                if place is None:
                    return None
                self._places[name] = place
            return tools[place]
        except Exception as error:
            self._notify("tools_unreadable", f"The {self.what} can't list its tools: {safe_str(error)}")
            return None

    def _is_usable(self, tool: Any) -> bool:
        if not isinstance(tool, Tool):
            self._notify("tool_left_out", f"The {self.what} has {tool!r} among its tools, which is not a tool.")
            return False
        try:
            _ = tool.schema
        except Exception as error:
            self._notify("tool_left_out", f"The {self.what} can't describe its tool {tool.name!r}: {safe_str(error)}")
            return False
        return True

    def close_nowait(self) -> None:
        """Have it closed by the task that keeps it open, and opened no more."""
        self._stop.set()
        if self._session is not None:
            self._session.close_nowait()

    async def aclose(self) -> None:
        """Close it, and open it no more.

        Raises:
            Exception: What closing it raised.
        """
        self._stop.set()
        if self._session is not None:
            await self._session.aclose()


def _describe(tools: Sequence[AnyTool]) -> None:
    for tool in tools:
        with suppress(Exception):
            _ = tool.schema


@asynccontextmanager
async def _open(toolset: Toolset, context: ToolsetContext) -> AsyncGenerator[OpenToolset]:
    # Asked for where it is entered: what `open` itself raises is an opening that failed.
    async with toolset.open(context) as opened:
        yield opened
