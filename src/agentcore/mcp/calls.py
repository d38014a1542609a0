"""Requests to a server that is connected: calls of its tools, each with a clock, and answered in words where it fails."""

from __future__ import annotations

from typing import Final, TypeVar, final

import anyio
import mcp_types as types
from anyio.lowlevel import checkpoint_if_cancelled
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, HEADER_MISMATCH, URL_ELICITATION_REQUIRED
from pydantic import BaseModel, TypeAdapter, ValidationError

from agentcore._groups import leaf_exceptions
from agentcore._text import Mask, clip
from agentcore.errors import MCPCallLost, ToolError
from agentcore.mcp.definitions import Definition
from agentcore.mcp.ending import Ending
from agentcore.mcp.listener import Listener
from agentcore.mcp.results import MCPObservation, read_result
from agentcore.mcp.rounds import Round
from agentcore.tools import Resumption, ToolContext
from agentcore.tools.definition import Arguments

R = TypeVar("R", bound=BaseModel)

_MOST_ROUNDS: Final = 10
"""How often a call is made again at once, where the server says so without asking anything."""
_LONGEST_ERROR: Final = 4_000
_LONGEST_PROGRESS: Final = 500
_LARGEST_PROGRESS: Final = 20_000
"""Characters of a message on progress that are looked at."""

_CALLED: Final[TypeAdapter[types.CallToolResult | types.InputRequiredResult]] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)


@final
class Calls:
    """The requests of one connection. Called from any task."""

    def __init__(self, listener: Listener, client: Client, ending: Ending, mask: Mask) -> None:
        """Take what the connection consists of; `mask` replaces secrets in what the server says."""
        self.server = listener.server
        self.client = client
        self.ending = ending
        self.mask = mask
        self._listener = listener

    async def call(self, definition: Definition, arguments: Arguments, ctx: ToolContext) -> MCPObservation:
        """Call a tool.

        Raises:
            InputRequired: The server wants an answer of a person first.
            MCPCallLost: The call was sent and no answer came, so that it may have been done.
            ToolError: The server refused it, or the connection was over before.
        """
        return await self._call(definition, arguments, ctx, None)

    async def resume(
        self, definition: Definition, arguments: Arguments, resumption: Resumption, ctx: ToolContext
    ) -> MCPObservation:
        """Continue a call that raised `InputRequired`; otherwise as `call`."""
        return await self._call(definition, arguments, ctx, Round.resumed(resumption))

    async def _call(
        self, definition: Definition, arguments: Arguments, ctx: ToolContext, last: Round | None
    ) -> MCPObservation:
        for _ in range(_MOST_ROUNDS):
            if last is not None:
                last.ask_next(self.mask)
            params = types.CallToolRequestParams(
                name=definition.name,
                arguments=dict(arguments),
                input_responses=None if last is None else last.responses(),
                request_state=None if last is None else last.state,
            )
            request = types.CallToolRequest(params=params)
            result = await self.request(request, _CALLED, ctx, is_repeatable=definition.is_repeatable)
            if isinstance(result, types.CallToolResult):
                return await read_result(result, definition.output_schema, ctx, self.mask)
            last = Round.begin(self.server.name, result, self._listener.roots(), self.mask)
        raise ToolError(
            f"The MCP server {self.server.name!r} did not answer in {_MOST_ROUNDS} rounds: it wants to be called again."
        )

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
        name, seconds = self.server.name, self.server.call_seconds
        if self.ending.reason is not None:
            raise ToolError(self._gone())

        async def report(progress: float, total: float | None, message: str | None) -> None:
            # Half of a secret could not be masked any more.
            shown = self.mask((message or "")[:_LARGEST_PROGRESS])
            await ctx.progress(f"{describe_progress(progress, total, shown)}\n")

        problem = ""
        call = self._listener.live.begin(ctx, seconds)
        try:
            with call.scope:
                try:
                    return await self.client.session.send_request(request, answer, progress_callback=report)
                except MCPError as error:
                    # What was turned away was another call, where the connection was closed under this one.
                    if self.ending.is_refusal and error.code != CONNECTION_CLOSED:
                        raise ToolError(self._gone()) from None
                    if self.ending.reason is None and error.code != CONNECTION_CLOSED:
                        raise ToolError(self._describe(error)) from None
                    problem = f"ended the call without an answer ({self._clip(self.ending.reason or error.message)})"
                except (ValueError, RecursionError) as error:
                    # It answered, so that it was done; what it answered can't be read.
                    problem = f"answered with something that is not a result: {self._clip(str(error))}"
            if call.scope.cancelled_caught:
                problem = f"did not answer within {seconds:g} s, and was told to stop"
        finally:
            self._listener.live.end(call)
        await checkpoint_if_cancelled()  # a connection that is cancelled closes
        text = f"The MCP server {name!r} {problem}."
        if is_repeatable:
            raise ToolError(text)
        raise MCPCallLost(f"{text} What it had done by then stays done.")

    def _gone(self) -> str:
        return f"The MCP server {self.server.name!r} is gone ({self._clip(str(self.ending.reason))}). Nothing was done."

    def _describe(self, error: MCPError) -> str:
        if error.code == HEADER_MISMATCH:
            self._listener.note_change()
            return (
                f"The tool is not what it was when it was listed: the MCP server {self.server.name!r} refused the call."
            )
        text = self._clip(error.message)
        if error.code == URL_ELICITATION_REQUIRED:
            text = f"{text} The user has to open in a browser first: {self._clip(', '.join(_urls(error.data)))}"
        return f"The MCP server {self.server.name!r} answered with an error (code {error.code}): {text}"

    def _clip(self, text: str) -> str:
        return clip(text, _LONGEST_ERROR, mask=self.mask)


def _urls(data: object) -> list[str]:
    try:
        return [each.url for each in types.ElicitationRequiredErrorData.model_validate(data).elicitations]
    except ValidationError:
        return []


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
        # Without what it sent, which may be anything.
        detail = first.errors(include_url=False, include_input=False, include_context=False)[0]
        return f"its answer is not one of MCP ({'.'.join(map(str, detail['loc']))}: {detail['msg']})"
    return mask(clip(str(first) or type(first).__name__, _LONGEST_ERROR, mask=mask))


_CONSEQUENCES: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream)
