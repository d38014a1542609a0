"""Tools as a conversation would use them: opened in a real workspace, and called as a model calls them."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Generic, TypeVar, cast

import anyio
from pydantic import JsonValue

from agentcore.conversation.core import Core
from agentcore.conversation.tool_host import open_spool
from agentcore.record import ConversationState
from agentcore.secrets import SecretRegistry
from agentcore.tools import Action, Medium, Observation, Spool, Tool, ToolContext
from agentcore.workspace import LocalWorkspace, Workspace
from agentcore_tools import (
    FileEditorAction,
    FileEditorObservation,
    RunAction,
    RunObservation,
    TerminalAction,
    TerminalObservation,
    file_editor_tool,
    terminal_tool,
)

ActionT = TypeVar("ActionT", bound=Action)
ObservationT = TypeVar("ObservationT", bound=Observation)

_BOUND_SECONDS = 120
"""A test that hangs fails; one on a loaded machine does not."""


class Place:
    """Where tools are opened: a folder of this machine, unless a test says otherwise."""

    open: Callable[..., AbstractAsyncContextManager[Workspace]] = LocalWorkspace


class KeepingHost:
    """Does what tools ask of a conversation, and remembers what they showed to people."""

    def __init__(self, workspace: Workspace, secrets: SecretRegistry) -> None:
        self._workspace = workspace
        self._secrets = secrets
        # What a conversation's spool needs of it.
        state = SimpleNamespace(conversation_id="conversation")
        self._core = cast("Core", SimpleNamespace(workspace=workspace, secrets=secrets, state=state, spooled=0))
        self.shown: deque[str] = deque(maxlen=50)  # a flood is shown in pieces, which a test must not collect
        self.seeing: bool | None = None
        self.recorded: Mapping[str, JsonValue] | None = None
        self.parts: set[str] = set()

    async def progress(self, action_id: str, text: str) -> None:
        self.shown.append(text)

    async def send(self, text: str) -> None:
        raise NotImplementedError

    async def interrupt(self) -> None:
        raise NotImplementedError

    async def ask(self, question: str) -> str:
        raise NotImplementedError

    async def question(self, text: str, schema: Mapping[str, JsonValue] | None, options: Sequence[str]) -> JsonValue:
        raise NotImplementedError

    async def spool(self, name: str, data: bytes) -> str:
        path = f"{await self._workspace.private_folder('conversation')}/{name}"
        await self._workspace.write(path, self._secrets.masker.mask_bytes(data))
        return path

    async def open_spool(self, name: str, limit: int) -> Spool:
        return await open_spool(self._core, name, limit)

    async def model_accepts(self, medium: Medium) -> bool | None:
        return self.seeing

    def last_data(self, tool_name: str) -> Mapping[str, JsonValue] | None:
        return self.recorded

    @property
    def state(self) -> ConversationState:
        return ConversationState("conversation")

    def shown_parts(self) -> Collection[str]:
        return self.parts


class Opened(Generic[ActionT, ObservationT]):
    """An open tool."""

    def __init__(
        self, tool: Tool[ActionT, ObservationT], execute: Any, workspace: Workspace, secrets: SecretRegistry
    ) -> None:
        self._tool = tool
        self._execute = execute
        self._secrets = secrets
        self._count = 0
        self.workspace = workspace
        self.host = KeepingHost(workspace, secrets)

    async def __call__(self, command: str = "", **arguments: Any) -> ObservationT:
        return await self.call(command=command, **arguments)

    def context(self) -> ToolContext:
        self._count += 1
        return ToolContext(
            workspace=self.workspace,
            secrets=self._secrets,
            conversation_id="conversation",
            action_id=f"ev_{self._count}",
            call_id=f"call_{self._count}",
            tool_name=self._tool.name,
            host=self.host,
        )

    async def call(self, **arguments: Any) -> ObservationT:
        context = self.context()
        observation: ObservationT = await self._execute(self._tool.parse(arguments), context)
        self.host.recorded = observation.to_data()
        return observation


Terminal = Opened[TerminalAction, TerminalObservation]
Run = Opened[RunAction, RunObservation]
Editor = Opened[FileEditorAction, FileEditorObservation]


@asynccontextmanager
async def open_tool(
    tool: Tool[ActionT, ObservationT],
    folder: Path,
    secrets: Mapping[str, Any] | None = None,
    seconds: float = _BOUND_SECONDS,
    env: Mapping[str, str] | None = None,
) -> AsyncGenerator[Opened[ActionT, ObservationT]]:
    with anyio.fail_after(seconds):
        async with Place.open(folder, env=env) as workspace:
            async with tool.open_executor(workspace, "conversation") as execute:
                yield Opened(tool, execute, workspace, SecretRegistry(secrets))
            await workspace.remove_private_folder("conversation")


@asynccontextmanager
async def open_terminal(
    folder: Path,
    *,
    quiet: float = 60.0,
    input_quiet: float = 60.0,
    secrets: Mapping[str, Any] | None = None,
    seconds: float = _BOUND_SECONDS,
    **settings: Any,
) -> AsyncGenerator[Terminal]:
    """Open a terminal that is patient: what a test waits for is an end, unless it says otherwise."""
    tool = terminal_tool(quiet_seconds=quiet, input_seconds=input_quiet, **settings)
    async with open_tool(tool, folder, secrets, seconds) as opened:
        yield opened


@asynccontextmanager
async def open_editor(folder: Path) -> AsyncGenerator[Editor]:
    async with open_tool(file_editor_tool(), folder) as opened:
        yield opened


async def reconcile(
    tool: Tool[ActionT, ObservationT], folder: Path, env: Mapping[str, str], kept: Mapping[str, str], **action: Any
) -> tuple[ObservationT, int, str]:
    """Reconcile an action where a process with these variables was left, and these outputs; return its number and their folder, too."""
    assert tool.reconcile is not None
    with anyio.fail_after(_BOUND_SECONDS):
        async with Place.open(folder) as workspace:
            secrets = SecretRegistry()
            context = ToolContext(
                workspace=workspace,
                secrets=secrets,
                conversation_id="c1",
                action_id="ev_1",
                call_id="call_1",
                tool_name=tool.name,
                host=KeepingHost(workspace, secrets),
            )
            private = await workspace.private_folder("c1")
            try:
                for name, text in kept.items():
                    await workspace.write(f"{private}/{name}", text)
                async with workspace.open_process(["sleep", "1000"], env=env) as process:
                    observation = await tool.reconcile(tool.parse(action), context)
            finally:
                await workspace.remove_private_folder("c1")
    assert observation is not None
    return observation, process.pid, private


async def line_in(path: Path) -> str:
    """Wait until a file has a whole last line, and give its content."""
    with anyio.fail_after(30):
        while not path.exists() or not path.read_text().endswith("\n"):
            await anyio.sleep(0.005)
    return path.read_text()
