"""The tools of one conversation, as they are now: its agent's own, and those of toolsets, which are opened and kept open here.

Above: the steps, which compose a snapshot of the tools for their requests, and the calls, which ask for what runs them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import anyio
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync

from agentcore.conversation.deferral import Deferral
from agentcore.conversation.exceptions import unwrap
from agentcore.conversation.tool_session import ToolSession, ToolsetSession
from agentcore.errors import ToolError, ToolNameTaken
from agentcore.events import SystemPromptEvent, ToolsetNotice
from agentcore.logs import get_logger
from agentcore.schema import schema_errors
from agentcore.secrets import SecretRegistry
from agentcore.tools import (
    AnyTool,
    Observation,
    RawTool,
    ToolContext,
    Toolset,
    ToolsetContext,
    ToolSnapshot,
)
from agentcore.tools.catalogue import ToolCatalogue
from agentcore.tools.deferred import SEARCH_TOOLS, DeferredTools
from agentcore.workspace import Workspace

Execute = Callable[[Any, ToolContext], Awaitable[Observation]]
"""Does a tool's actions."""

_log = get_logger(__name__)

_OPEN_SECONDS: Final = 30.0
"""How long a step waits for toolsets that have not been open yet."""
_MOST_NOTICES: Final = 100

_CHANGED: Final = (
    "The tool {name!r} is not what it was when this call was made: its description or its arguments have changed. "
    "Nothing was done. {then}"
)
_SHOWN_LATER: Final = "The tool as it is now will be shown to you; do not repeat the call until then."
_SEARCHED: Final = f"Search for it with {SEARCH_TOOLS} before you repeat the call."


class NotRun(NamedTuple):
    """Why a call can't run now. It was not begun."""

    code: Literal["tool_changed", "tool_gone", "toolset_closed"]
    text: str
    """The answer for the model."""


class ToolSessions:
    """The tools of one conversation, and what they hold open.

    A toolset is opened when tools are first composed, by a task of its own that keeps it open. A tool with `open` is
    opened when it is first called.
    """

    def __init__(
        self,
        tasks: TaskGroup,
        tools: Sequence[AnyTool],
        toolsets: Sequence[Toolset],
        *,
        workspace: Workspace,
        conversation_id: str,
        secrets: SecretRegistry,
        deps: Any = None,
        deferral: Deferral | None = None,
    ) -> None:
        """Take the tools and toolsets of an agent, and what is passed on to toolsets; `tasks` outlives this, and hosts the tasks that hold things open."""
        self._tasks = tasks
        self._deps = deps
        self._deferral = deferral or Deferral()
        self._deferred = DeferredTools(self._refresh)
        self._defers = False
        """True if the tools of toolsets are deferred, as last composed."""
        self._own = {tool.name: tool for tool in tools}
        self._toolsets = tuple(toolsets)
        self._workspace = workspace
        self._id = conversation_id
        self._secrets = secrets
        self._sessions: dict[int, ToolsetSession] = {}
        """Of toolsets, by the identity of the toolset: none of them need be hashable."""
        self._opened_tools: dict[AnyTool, ToolSession[Execute]] = {}
        self._opening: dict[AnyTool, anyio.Lock] = {}  # two calls of one reply may both be the first
        self._to_close: list[ToolSession[Execute] | ToolsetSession] = []
        self._owners: dict[str, ToolsetSession] = {}
        """Which toolset has the tool of a name, as last composed."""
        self._snapshot: ToolSnapshot | None = None
        self._notices: deque[ToolsetNotice] = deque(maxlen=_MOST_NOTICES)
        self._can_check = False

    @property
    def holds_any(self) -> bool:
        """True while a tool or a toolset is open, or about to be."""
        return any(not each.ended for each in self._to_close)

    @property
    def deferred(self) -> DeferredTools | None:
        """The tools that are called through one of the snapshot's; None where the snapshot has all."""
        return self._deferred if self._defers else None

    async def compose(self, prompt: SystemPromptEvent | None) -> ToolSnapshot:
        """Read the tools as of now, once toolsets are open or have had their time; the same object where nothing changed.

        To be called at a user's message and at a cut only: tool schemas are part of the prefix that providers cache. `prompt`
        is the one in force: tools that are deferred in it stay so.

        Raises:
            ToolNameTaken: A toolset that was just opened has a tool of the name of another one.
        """
        await self._open_toolsets()
        sessions = list(self._sessions.values())
        read = [(session, session.read()) for session in sessions]
        assigned = self._assign(read)
        pair = self._deferred.pair
        self._defers = bool(self._toolsets) and await self._deferral.applies(assigned, self._own, pair, prompt)
        if self._defers:
            self._set_catalogue(assigned)
        tools = [*self._own.values(), *(pair.values() if self._defers else assigned)]
        deferred = [toolset.name for toolset in self._toolsets] if self._defers else []
        instructions = {session.toolset.name: session.instructions for session in sessions if session.instructions}
        for session in sessions:
            session.read_before = session.read_before or session.is_open
            session.tell_missing()
        if self._snapshot is None or not self._snapshot.is_of(tools, instructions, deferred):
            self._snapshot = ToolSnapshot(tools, instructions, deferred)
        await self.prepare_checks([*tools, *assigned])
        return self._snapshot

    async def _refresh(self) -> None:
        """Read the tools of toolsets as of now, where they are deferred: no request has them, so that nothing else changes."""
        sessions = [session for session in self._sessions.values() if session.read_before]
        for session in sessions:
            await session.describe()
        assigned = self._assign([(session, session.read()) for session in sessions])
        self._set_catalogue(assigned)
        await self.prepare_checks(assigned)

    def _set_catalogue(self, assigned: Sequence[AnyTool]) -> None:
        toolsets: dict[str, list[AnyTool]] = {}
        left_out: list[AnyTool] = []
        for tool in assigned:
            if tool.name in self._deferred.pair:
                left_out.append(tool)
            else:
                toolsets.setdefault(self._owners[tool.name].toolset.name, []).append(tool)
        if self._deferred.catalogue.is_of(toolsets):
            return  # the index of another one would be made again
        self._deferred.catalogue = ToolCatalogue(toolsets)
        for tool in left_out:
            owner = self._owners[tool.name]
            error = ToolNameTaken(tool.name, "The conversation", f"the {owner.what}")
            self._notify(owner.toolset.name, "tool_left_out", f"{error} It is left out of the {owner.what}.")

    def replace(self, tools: Sequence[AnyTool], toolsets: Sequence[Toolset], deferral: Deferral) -> None:
        """Take the tools and toolsets of another agent: what it shares stays open, and what it lacks is closed.

        To be called while no call runs. Waits for nothing, and runs no code of theirs: those that hold things open close them.
        """
        self._own = {tool.name: self._same_tool(tool) for tool in tools}
        self._toolsets = tuple(toolsets)
        self._deferral = deferral
        for key, session in tuple(self._sessions.items()):
            if all(toolset is not session.toolset for toolset in self._toolsets):
                del self._sessions[key]
                session.close_nowait()
        left = self._sessions.values()
        self._owners = {name: owner for name, owner in self._owners.items() if owner in left and name not in self._own}
        for tool, opened in tuple(self._opened_tools.items()):
            if self._own.get(tool.name) is not tool and tool.name not in self._owners:
                del self._opened_tools[tool]
                opened.close_nowait()

    def _same_tool(self, tool: AnyTool) -> AnyTool:
        """Return the tool that may be open already, where this one is the same by its record."""
        before = self._own.get(tool.name)
        if before is None or tool.open is None or tool.spec is None:
            return tool
        return before if before.spec == tool.spec else tool

    async def prepare_checks(self, tools: Sequence[AnyTool]) -> None:
        """Make ready to parse the arguments of these tools, and their questions: what checks a JSON Schema takes a while to import."""
        makes_questions = any(tool.question is not None or tool.resume is not None for tool in tools)
        if not self._can_check and (makes_questions or any(isinstance(tool, RawTool) for tool in tools)):
            await run_sync(schema_errors, _ANYTHING, None)
            self._can_check = True

    def take_notices(self) -> tuple[ToolsetNotice, ...]:
        """Return what people should know of toolsets since this was last asked, to be recorded."""
        notices = tuple(self._notices)
        self._notices.clear()
        return notices

    def owns(self, name: str) -> bool:
        """Return True for the name of one of the agent's own tools, which need no toolset."""
        return name in self._own

    def resolve(self, name: str, digest: str | None) -> AnyTool | NotRun:
        """Find the tool of a name as it is now, to run a call of it.

        `digest` is that of the schema that the model saw; None where that is unknown.

        Costs nothing for a tool of the agent's own, and never waits.
        """
        tool = self._own.get(name)
        if tool is None and (self._defers or name not in self._owners):
            tool = self._deferred.pair.get(name)
        if tool is None:
            session = self._owners.get(name)
            if session is None:
                return NotRun("tool_gone", f"There is no tool {name!r} any more. Nothing was done.")
            if not session.is_open:
                return NotRun("toolset_closed", _closed(name, session))
            tool = session.find(name)
            if tool is None:
                return NotRun("tool_gone", f"The {session.what} has no tool {name!r} any more. Nothing was done.")
        if digest is not None and tool.schema.digest != digest:
            then = _SEARCHED if self._defers else _SHOWN_LATER
            return NotRun("tool_changed", _CHANGED.format(name=name, then=then))
        return tool

    async def executor(self, tool: AnyTool) -> Execute | NotRun:
        """Return what runs the actions of a tool of a snapshot, opened if it has to be, or why that can't be done now.

        Raises:
            Exception: What opening it raised; the next call tries again.
        """
        now = self.resolve(tool.name, tool.schema.digest)
        if isinstance(now, NotRun):
            return now
        if now.open is None:
            assert now.execute is not None
            return now.execute
        async with self._opening.setdefault(now, anyio.Lock()):
            session = self._opened_tools.get(now)
            if session is None or session.opened is None:
                session = ToolSession[Execute](f"tool {now.name!r}", self._secrets)
                opening = now.open(self._workspace, self._id)
                await self._tasks.start(session.hold, opening, name=session.what)
                self._forget_ended()
                self._opened_tools[now] = session
                self._to_close.append(session)
            if session.opened is None:
                raise ToolError(f"{now.name!r} ended as soon as it was open.")
            return session.opened

    async def aclose(self) -> None:
        """Close what was opened, the newest first, and each of them whatever the others do.

        Raises:
            Exception: What closing one of them raised.
        """
        failures: list[Exception] = []
        while self._to_close:
            try:
                await self._to_close.pop().aclose()
            except Exception as error:
                failures.append(error)
        if failures:
            raise unwrap(ExceptionGroup("closing tools", failures))

    async def _open_toolsets(self) -> None:
        """Begin to open what is not open, all at once, and wait for what has not been open yet."""
        for toolset in self._toolsets:
            session = self._sessions.get(id(toolset))
            if session is None or session.ended:
                self._begin(toolset)
        for session in self._sessions.values():
            if not session.tried.is_set():
                with anyio.move_on_after(max(0.0, session.patience_ends - anyio.current_time())):
                    await session.tried.wait()

    def _begin(self, toolset: Toolset) -> None:
        def notify(code: str, detail: str) -> None:
            self._notify(toolset.name, code, detail)

        context = ToolsetContext(
            workspace=self._workspace,
            conversation_id=self._id,
            secrets=self._secrets,
            notice=lambda text: notify("message", text),
            deps=self._deps,
            open_seconds=_OPEN_SECONDS,
        )
        session = ToolsetSession(toolset, context, self._secrets, notify)
        self._forget_ended()
        self._sessions[id(toolset)] = session
        self._to_close.append(session)
        self._tasks.start_soon(session.keep_open, name=session.what)

    def _forget_ended(self) -> None:
        self._to_close = [each for each in self._to_close if not each.ended]

    def _notify(self, name: str, code: str, detail: str) -> None:
        notice = ToolsetNotice(name=name, code=code, detail=detail)
        if notice in self._notices:
            return  # a toolset that comes and goes says the same again and again
        self._notices.append(notice)
        _log.info("toolset", name=name, code=code, detail=self._secrets.mask(detail))

    def _assign(self, read: Sequence[tuple[ToolsetSession, Sequence[AnyTool]]]) -> list[AnyTool]:
        """Decide whose tool each name is. The first owner keeps it, so that no toolset can take another's place."""
        owners: dict[str, ToolsetSession] = {}
        for session, tools in read:
            owners.update((tool.name, session) for tool in tools if self._owners.get(tool.name) is session)
        taken: set[str] = set()
        assigned: list[AnyTool] = []
        for session, tools in read:
            for tool in tools:
                owner = owners.setdefault(tool.name, session)
                if tool.name not in self._own and owner is session and tool.name not in taken:
                    taken.add(tool.name)
                    assigned.append(tool)
                    continue
                holder = "The agent" if tool.name in self._own else f"The {owner.what}"
                error = ToolNameTaken(tool.name, holder, f"the {session.what}")
                if not session.read_before:
                    raise error
                self._notify(session.toolset.name, "tool_left_out", f"{error} It is left out of the {session.what}.")
        self._owners = owners
        return assigned


_ANYTHING: Final[Mapping[str, Any]] = {}


def _closed(name: str, session: ToolsetSession) -> str:
    return (
        f"The tool {name!r} can't be called now: the {session.what} is closed ({session.why}). It is being opened again. "
        "Nothing was done. Go on without it, or try again later."
    )
