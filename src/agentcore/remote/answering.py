"""Tools and secrets of the program, where the conversation is held by a server: they run here when the server asks.

Above: the remote link, which feeds the `ask` and `withdraw` frames that it reads, and sends the answers. Below: the tools,
which get a context like that of any call, as far as it goes without the conversation.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, final

import anyio
from anyio import get_cancelled_exc_class
from anyio.abc import TaskGroup

from agentcore.conversation.exceptions import format_tool_error, is_cancelled, safe_str, spurious_cancellation, unwrap
from agentcore.conversation.guards import mark_running_in
from agentcore.conversation.link import Link
from agentcore.conversation.tools import NotRun, ToolSessions
from agentcore.errors import AgentcoreError, ToolError
from agentcore.llm import Model
from agentcore.logs import get_logger
from agentcore.remote.tool_host import ClientToolHost
from agentcore.secrets import SecretRegistry
from agentcore.tools import AnyTool, InputRequired, ToolContext, read_call
from agentcore.wire import AskFrame, AskResult, SecretAnswer, ToolAnswer, ToolFailed, ToolProgress, Withdraw

_log = get_logger(__name__)

_REMEMBERED: Final = 1_000
"""Results that are remembered until the server has them."""

_ASKS: Final = ToolError(
    "InputRequired is not there for a tool that runs in the client of a server. Give the agent the tool ask_user, or ask the "
    "person directly: it runs in your program."
)

Post = Callable[[str, AskResult], Awaitable[object]]
"""Sends an answer to the ask of an id. Returns once the server has it; it tries again by itself, for as long as that makes sense."""


@final
class Answering:
    """Answers what the server asks, each ask in a task of its own.

    An ask that comes again while it is being answered, or whose result is still here, is not done again.
    """

    def __init__(
        self,
        link: Link,
        tools: Sequence[AnyTool],
        *,
        tasks: TaskGroup,
        post: Post,
        secrets: SecretRegistry,
        deps: Any = None,
        model: Model | None = None,
    ) -> None:
        """Take the tools that the server does not have, and what they need.

        Args:
            link: Of the conversation: its state and its workspace, where the tools act.
            tools: The tools.
            tasks: Hosts the calls, and what tools hold open. Cancelling it ends them.
            post: Sends an answer.
            secrets: The program's own, by name.
            deps: The value that the program passed as `Conversation(deps=...)`.
            model: The agent's, where it is known here.
        """
        self._link = link
        self._tools = tuple(tools)
        self._tasks = tasks
        self._post = post
        self._secrets = secrets
        self._deps = deps
        self._model = model
        self._sessions = ToolSessions(
            tasks,
            tools,
            (),
            workspace=link.workspace,
            conversation_id=link.state.conversation_id,
            secrets=secrets,
            deps=deps,
        )
        self._running: dict[str, anyio.CancelScope] = {}
        self._results: OrderedDict[str, AskResult] = OrderedDict()

    def feed(self, frame: AskFrame | Withdraw) -> None:
        """Take a frame; never waits."""
        if isinstance(frame, Withdraw):
            self._results.pop(frame.id, None)
            scope = self._running.pop(frame.id, None)
            if scope is not None:
                scope.cancel()
        elif frame.id not in self._running:
            scope = self._running[frame.id] = anyio.CancelScope()
            self._tasks.start_soon(self._answer, frame, scope, name=f"ask {frame.name}")

    async def aclose(self) -> None:
        """Stop what runs, and close what tools hold open."""
        for scope in self._running.values():
            scope.cancel()
        await self._sessions.aclose()

    async def _answer(self, frame: AskFrame, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                result = self._results.get(frame.id)
                if result is None:
                    result = await self._do(frame, scope)
                    self._remember(frame.id, result)
                await self._post(frame.id, result)
                self._results.pop(frame.id, None)
        except AgentcoreError as error:
            # It is remembered: where the server still wants it, it asks again.
            _log.warning("answer not sent", ask=frame.name, error=self._secrets.mask(safe_str(error)))
        finally:
            if self._running.get(frame.id) is scope:
                del self._running[frame.id]

    def _remember(self, ask_id: str, result: AskResult) -> None:
        self._results[ask_id] = result
        while len(self._results) > _REMEMBERED:
            self._results.popitem(last=False)

    async def _do(self, frame: AskFrame, scope: anyio.CancelScope) -> AskResult:
        if frame.kind == "secret":
            return await self._read_secret(frame.name)
        read_names: dict[str, None] = {}
        host = ClientToolHost(self._link, self._secrets, model=self._model)
        result: ToolAnswer | ToolFailed | None = None
        async with anyio.create_task_group() as tasks:

            async def send(text: str) -> None:
                await self._post(frame.id, ToolProgress(text=text))

            tasks.start_soon(host.send_progress, send)
            tasks.start_soon(self._watch, frame.action_id, scope)
            result = await self._call(frame, host, read_names)
            tasks.cancel_scope.cancel()
        assert result is not None
        return result.model_copy(update={"secrets": tuple(read_names), "progress": host.take_progress()})

    async def _watch(self, action_id: str | None, scope: anyio.CancelScope) -> None:
        """Stop a call whose action was answered without it: a server that was started anew withdraws nothing."""
        seen = False
        signal, state = self._link.head_signal, self._link.state
        while not signal.closed:
            is_open = action_id in state.open_actions
            if seen and not is_open:
                scope.cancel()
            seen = seen or is_open
            await signal.wait()

    async def _read_secret(self, name: str) -> SecretAnswer | ToolFailed:
        try:
            return SecretAnswer.model_validate({"value": await self._secrets.get(name)})
        except AgentcoreError as error:
            return ToolFailed(error=self._secrets.mask(safe_str(error)), code=type(error).__name__)

    async def _call(
        self, frame: AskFrame, host: ClientToolHost, read_names: dict[str, None]
    ) -> ToolAnswer | ToolFailed:
        """Call the tool; whatever it does is an answer."""
        context: ToolContext | None = None
        try:
            tool = self._find(frame.name)
            await self._sessions.prepare_checks((tool,))
            read = read_call(frame.name, frame.arguments, (tool,), mask=self._secrets.mask)
            if read.action is None:
                return self._failed(ToolError(read.problem or "The call could not be read."))
            context = self._context(frame, host, read_names)
            with mark_running_in(self._link.state.conversation_id):
                execute = await self._sessions.executor(tool)
                if isinstance(execute, NotRun):
                    return self._failed(ToolError(execute.text))
                observation = await execute(read.action, context)
            answer = ToolAnswer(content=observation.blocks(), data=observation.to_data(), is_error=observation.is_error)
            return self._secrets.masker.mask_model(answer)
        except get_cancelled_exc_class() as error:  # noqa: ASYNC103 only a cancellation of a scope is raised again
            if context is not None:
                context.request_cancel()
            if await is_cancelled():  # noqa: ASYNC102 asking does not wait
                raise
            return self._failed(spurious_cancellation("It", error))  # noqa: ASYNC104 it was no cancellation of a scope
        except (Exception, SystemExit) as error:  # a tool is anybody's code
            only = unwrap(error)
            return self._failed(_ASKS if isinstance(only, InputRequired) else only)

    def _find(self, name: str) -> AnyTool:
        for tool in self._tools:
            if tool.name == name:
                return tool
        raise ToolError(f"The program that is to run {name!r} has no such tool. Nothing was done.")

    def _context(self, frame: AskFrame, host: ClientToolHost, read_names: dict[str, None]) -> ToolContext:
        action_id = frame.action_id or frame.id
        state = self._link.state
        action = state.open_actions.get(action_id)
        return ToolContext(
            workspace=self._link.workspace,
            secrets=_NotedSecrets(self._secrets, read_names),
            conversation_id=state.conversation_id,
            action_id=action_id,
            call_id="" if action is None else action.event.call_id,
            tool_name=frame.name,
            host=host,
            deps=self._deps,
        )

    def _failed(self, error: BaseException) -> ToolFailed:
        text = safe_str(error) if isinstance(error, AgentcoreError) else format_tool_error(error)
        return ToolFailed(error=self._secrets.mask(text), code=type(error).__name__)


@final
class _NotedSecrets:
    """The program's secrets, with the names noted that a tool read."""

    def __init__(self, secrets: SecretRegistry, read: dict[str, None]) -> None:
        self._secrets = secrets
        self._read = read

    @property
    def names(self) -> Sequence[str]:
        return self._secrets.names

    async def get(self, name: str) -> str:
        value = await self._secrets.get(name)
        self._read[name] = None
        return value

    def mask(self, text: str) -> str:
        return self._secrets.mask(text)

    def unfinished(self, text: str) -> int:
        return self._secrets.unfinished(text)
