"""A connection to one server, opened for one conversation: the place where mcp's client is entered and left.

Above: `MCPToolset.open`, in whose task all of it is entered and left. Below: the transports, and the modules for each thing that
goes over a connection. This module and those below it are the ones that import mcp.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, Final, final

import anyio
import mcp_types as types
from anyio import get_cancelled_exc_class
from anyio.lowlevel import checkpoint_if_cancelled
from anyio.to_thread import run_sync
from mcp.client import Client
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

import agentcore
from agentcore.errors import MCPServerError
from agentcore.logs import get_logger
from agentcore.mcp.calls import Calls, describe_failure
from agentcore.mcp.definitions import MOST_TOOLS, Made, ToolMaker, frame_instructions, is_wanted
from agentcore.mcp.ending import Ending
from agentcore.mcp.guard import Guard
from agentcore.mcp.http import open_http
from agentcore.mcp.listener import Listener
from agentcore.mcp.oauth import LoginSession, find_login
from agentcore.mcp.prompt_reading import read_prompt
from agentcore.mcp.prompts import offered
from agentcore.mcp.resources import READ_RESOURCE, resource_tool
from agentcore.mcp.server import MCPServer
from agentcore.mcp.stdio import open_stdio
from agentcore.mcp.tokens import needs_login, wants_login
from agentcore.mcp.variables import Launch, expand
from agentcore.tools import AnyTool, ToolsetContext
from agentcore.workspace import LocalWorkspace, Workspace

_log = get_logger(__name__)
# Of itself it writes warnings and tracebacks to standard error, with what a server sent: a header with a key, for example.
logging.getLogger("mcp").addHandler(logging.NullHandler())

_MOST_PAGES: Final = 200
_LARGEST_LIST: Final = 32 * 1024 * 1024
"""Characters of JSON of all tools together."""
_AT_ONCE: Final = 50
_MOST_TOLD: Final = 100
_LISTEN_SECONDS: Final = 10.0
"""How long after a subscription ended the server is asked for another."""
_LIST_SECONDS: Final = 60.0
_REFRESH_SECONDS: Final = 1.0
"""How long after a list was read it is read again at the earliest."""


@asynccontextmanager
async def open_server(server: MCPServer, context: ToolsetContext) -> AsyncGenerator[OpenServer]:
    """Start a server or connect to it, and hold the connection open.

    Raises:
        MCPServerError: It can't be started or reached, does not speak MCP, or broke while it was open.
    """
    launch = await expand(server, context.secrets)
    login = await find_login(server, launch.url, context.secrets)
    ending, mask = Ending(), launch.mask
    body: BaseException | None = None
    was_open = False
    try:
        async with _workspace(server, context) as workspace:
            listener, guard = Listener(server, context.workspace, mask), Guard(ending)
            async with Client(
                guard.watch(_transport(server, launch, workspace, ending, login)),
                client_info=types.Implementation(name="agentcore", version=agentcore.__version__),
                list_roots_callback=listener.list_roots if server.transport == "stdio" else None,
                logging_callback=listener.log,
                message_handler=listener.hear,
                elicitation_callback=listener.live.elicit,
                cache=None,
            ) as client:
                opened = OpenServer(Calls(listener, client, ending, mask), listener, guard, context.notice)
                await opened.refresh()
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(opened.follow, name=f"changes of MCP server {server.name}")
                    was_open = True
                    try:
                        with offered(context.workspace, opened):
                            yield opened
                    except BaseException as error:
                        body = error
                        raise
                    finally:
                        tasks.cancel_scope.cancel()
    except (Exception, BaseExceptionGroup) as error:
        if body is not None and not isinstance(body, get_cancelled_exc_class()):
            raise body from None  # it is none of ours
        # What is cancelled may come out as a connection that was closed, or with one beside it.
        await checkpoint_if_cancelled()
        if not isinstance(error, Exception):
            raise
        reason = ending.reason or describe_failure(error, mask)
        if was_open and body is None:
            _log.debug("MCP server was left with an error", server=server.name, error=reason)
            return
        if isinstance(error, MCPServerError):
            raise
        hint = f" ({ending.hint})" if ending.hint and ending.hint not in reason else ""
        what = "is gone" if was_open else "can't be opened"
        raise MCPServerError(f"The MCP server {server.name!r} {what}: {reason.removesuffix('.')}{hint}.") from None


def _workspace(server: MCPServer, context: ToolsetContext) -> AbstractAsyncContextManager[Workspace]:
    if server.transport != "stdio" or server.runs == "workspace":
        return nullcontext(context.workspace)
    here = context.workspace
    return LocalWorkspace(here.root if isinstance(here, LocalWorkspace) else ".")


def _transport(
    server: MCPServer, launch: Launch, workspace: Workspace, ending: Ending, login: LoginSession | None
) -> AbstractAsyncContextManager[Any]:
    if server.transport == "stdio":
        return open_stdio(
            workspace,
            launch.command,
            cwd=launch.cwd,
            env=dict(launch.env),
            ending=ending,
            mask=launch.mask,
            name=server.name,
        )
    unauthorized = needs_login(server.name) if wants_login(server) else None
    return open_http(launch, server.transport, ending=ending, login=login, unauthorized=unauthorized)


@final
class OpenServer:
    """A server that is open."""

    def __init__(self, calls: Calls, listener: Listener, guard: Guard, notice: Callable[[str], None]) -> None:
        """Take what the connection consists of; people are told by `notice` of what is left out."""
        self._calls = calls
        self._guard = guard
        self._listener = listener
        self._notice = notice
        self._maker = ToolMaker(calls.server, calls, calls.mask)
        self._resources: AnyTool | None = None
        self._tools: tuple[AnyTool, ...] = ()
        self._told: set[str] = set()
        self.instructions = frame_instructions(calls.server.name, calls.mask(calls.client.instructions or ""))

    @property
    def protocol_version(self) -> str:
        """The version of MCP that it and this client speak with each other."""
        return self._calls.client.protocol_version

    def tools(self) -> Sequence[AnyTool]:
        """Return its tools, as they were listed last."""
        return self._tools

    async def wait_closed(self) -> str:
        """Wait until it is gone, and return why."""
        return await self._calls.ending.wait()

    async def read_prompt(self, name: str, words: str) -> str | None:
        """Return the text of one of its prompts; see `OffersPrompts`."""
        calls = self._calls
        return await read_prompt(calls.client, calls.server.name, name, words, calls.mask)

    async def refresh(self) -> None:
        """List its tools anew.

        Raises:
            MCPError: It does not give the list.
        """
        made = await self._make(await self._list_tools())
        self._tools = made.tools
        if self._calls.client.server_capabilities.resources is not None:
            self._tools += self._resource_tool(made.tools)
        for notice in (*self._guard.left_out, *made.notices):
            self._tell(self._calls.mask(notice))
        self._guard.left_out.clear()

    async def _make(self, listed: Sequence[types.Tool]) -> Made:
        making = self._maker.begin(len(listed))
        # In parts, because a thread can't be cancelled.
        for begin in range(0, min(len(listed), MOST_TOOLS), _AT_ONCE):
            await run_sync(making.add, listed[begin : begin + _AT_ONCE])
        return making.finish()

    def _resource_tool(self, others: Sequence[AnyTool]) -> tuple[AnyTool, ...]:
        server = self._calls.server
        if self._resources is None and is_wanted(server, READ_RESOURCE):
            self._resources = resource_tool(self._calls, {tool.name for tool in others})
        return () if self._resources is None else (self._resources,)

    async def _list_tools(self) -> list[types.Tool]:
        client = self._calls.client
        if client.server_capabilities.tools is None:
            return []
        listed: list[types.Tool] = []
        cursors: set[str | None] = set()
        cursor: str | None = None
        size = 0
        while cursor not in cursors and len(cursors) < _MOST_PAGES and len(listed) <= MOST_TOOLS:
            cursors.add(cursor)
            page = await client.list_tools(cursor=cursor)
            size += await run_sync(_size_of, page)
            if size > _LARGEST_LIST:
                self._tell(f"its list of tools is larger than {_LARGEST_LIST // 1024**2} MiB: the rest is left out.")
                break
            listed += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break
        return listed

    async def follow(self) -> None:
        """List its tools anew whenever it says that they have changed, until this is cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen)
            while True:
                await self._listener.wait_changed()
                await self._refresh_later()
                # One that says it all the time is not asked all the time.
                await anyio.sleep(_REFRESH_SECONDS)

    async def _refresh_later(self) -> None:
        problem = f"no answer within {_LIST_SECONDS:g} s"
        try:
            with anyio.move_on_after(_LIST_SECONDS) as patience:
                await self.refresh()
            if not patience.cancelled_caught:
                return
        except Exception as error:
            problem = describe_failure(error, self._calls.mask)
        if self._calls.ending.reason is None:
            self._tell(f"its list of tools has changed and can't be read ({problem}). The tools stay as they were.")

    async def _listen(self) -> None:
        """Be told of changes, where the server is to be asked for that (since 2026)."""
        client = self._calls.client
        tools = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or tools is None or not tools.list_changed:
            return
        while self._calls.ending.reason is None:
            try:
                async with client.listen(tools_list_changed=True) as subscription:
                    # What changed between the list and now, nobody tells.
                    self._listener.note_change()
                    async for _ in subscription:
                        self._listener.note_change()
            except SubscriptionLost:
                pass
            except (MCPError, RuntimeError, TimeoutError) as error:
                why = describe_failure(error, self._calls.mask)
                _log.debug("MCP server tells of no changes", server=self._calls.server.name, error=why)
                return
            await anyio.sleep(_LISTEN_SECONDS)

    def _tell(self, text: str) -> None:
        if text not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add(text)
            self._notice(f"MCP server {self._calls.server.name!r}: {text}")


def _size_of(page: types.ListToolsResult) -> int:
    return len(page.model_dump_json(exclude_none=True))
