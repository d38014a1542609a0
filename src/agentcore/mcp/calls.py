"""Requests to a server that is connected: calls of its tools, each with a clock, and answered in words where it fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, final

import anyio
import mcp_types as types
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, HEADER_MISMATCH
from pydantic import BaseModel, TypeAdapter, ValidationError

from agentcore._groups import leaf_exceptions
from agentcore._text import Mask, clip
from agentcore.errors import MCPCallLost, ToolError
from agentcore.mcp.definitions import Definition
from agentcore.mcp.ending import Ending
from agentcore.mcp.questions import LiveCalls
from agentcore.mcp.results import MCPObservation, read_result
from agentcore.mcp.server import MCPServer
from agentcore.tools import ToolContext
from agentcore.tools.definition import Arguments

R = TypeVar("R", bound=BaseModel)

_LONGEST_ERROR: Final = 4_000
_LONGEST_PROGRESS: Final = 500

_CALLED: Final[TypeAdapter[types.CallToolResult | types.InputRequiredResult]] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)


@final
class Calls:
    """What a connection does for tools. Called from any task."""

    def __init__(
        self,
        server: MCPServer,
        client: Client,
        live: LiveCalls,
        ending: Ending,
        mask: Mask,
        *,
        outdated: Callable[[], None],
    ) -> None:
        """Take what the connection consists of; `outdated` is called when the server's list of tools is another by now."""
        self._server = server
        self._client = client
        self._live = live
        self._ending = ending
        self._mask = mask
        self._outdated = outdated

    async def call(self, definition: Definition, arguments: Arguments, ctx: ToolContext) -> MCPObservation:
        """Call a tool.

        Raises:
            MCPCallLost: The call was sent and no answer came, so that it may have been done.
            ToolError: The server refused it, or the connection was over before.
        """
        params = types.CallToolRequestParams(name=definition.name, arguments=dict(arguments))
        result = await self.request(
            types.CallToolRequest(params=params), _CALLED, ctx, is_repeatable=definition.is_repeatable
        )
        if isinstance(result, types.InputRequiredResult):
            raise ToolError(
                f"The MCP server {self._server.name!r} wants to ask something before it answers, which it can't here."
            )
        return await read_result(result, definition.output_schema, ctx, self._mask)

    async def request(
        self,
        request: types.ClientRequest,
        answer: type[R] | TypeAdapter[R],
        ctx: ToolContext,
        *,
        is_repeatable: bool = True,
    ) -> R:
        """Send a request for a call and wait for its answer. Cancelled, or after the server's time, the server is told.

        Raises:
            MCPCallLost: As `call`, unless it is repeatable.
            ToolError: As `call`.
        """
        name, seconds = self._server.name, self._server.call_seconds
        if self._ending.reason is not None:
            raise ToolError(f"The MCP server {name!r} is gone ({self._ending.reason}). Nothing was done.")

        async def progress(done: float, total: float | None, message: str | None) -> None:
            await ctx.progress(f"{describe_progress(done, total, message)}\n")

        problem = ""
        with self._live.running(ctx, seconds) as call:
            with call.scope:
                try:
                    return await self._client.session.send_request(request, answer, progress_callback=progress)
                except MCPError as error:
                    if error.code != CONNECTION_CLOSED:
                        raise ToolError(self._describe(error)) from None
                    problem = f"ended during the call ({self._ending.reason or error.message})"
                except ValidationError as error:
                    # It answered, so that it was done; what it answered can't be read.
                    problem = f"answered with something that is not a result: {self._clip(str(error))}"
            if call.scope.cancelled_caught:
                problem = f"did not answer within {seconds:g} s, and was told to stop"
        text = f"The MCP server {name!r} {problem}."
        if is_repeatable:
            raise ToolError(text)
        raise MCPCallLost(f"{text} What it had done by then stays done.")

    def _describe(self, error: MCPError) -> str:
        if error.code == HEADER_MISMATCH:
            self._outdated()
            return f"The tool is not what it was when it was listed: the MCP server {self._server.name!r} refused the call."
        return f"The MCP server {self._server.name!r} refused the call: {self._clip(error.message)} (code {error.code})"

    def _clip(self, text: str) -> str:
        return clip(text, _LONGEST_ERROR, mask=self._mask)


def describe_progress(done: float, total: float | None, message: str | None) -> str:
    """Return how far a call is, in words."""
    far = f"{done:g}" if total is None else f"{done:g} of {total:g}"
    return f"{message[:_LONGEST_PROGRESS]} ({far})" if message else far


def describe_failure(error: BaseException, mask: Mask) -> str:
    """Return what went wrong with a connection, from the exception that came of it, without a secret."""
    leaves = [leaf for leaf in leaf_exceptions(error) if isinstance(leaf, Exception)] or [error]
    # Closing what broke raises its own, which says less.
    first = next((leaf for leaf in leaves if not isinstance(leaf, _CONSEQUENCES)), leaves[0])
    if isinstance(first, ValidationError):
        return "its answer is not one of MCP"
    return mask(clip(str(first) or type(first).__name__, _LONGEST_ERROR, mask=mask))


_CONSEQUENCES: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream)
