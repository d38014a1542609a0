"""Questions of a server to a person, put while a call of it runs: MCP's elicitation."""

from __future__ import annotations

import math
from typing import Any, Final, final

import anyio
import mcp_types as types
from mcp.client import ClientRequestContext

from agentcore._text import Mask
from agentcore.logs import get_logger
from agentcore.secrets.leaves import LeafMap
from agentcore.tools import ToolContext

_log = get_logger(__name__)

_LONGEST: Final = 3_000
_LARGEST: Final = 100_000
"""Characters of a question that are looked at."""
_MOST_ASKING: Final = 16
"""Questions of one call that wait for a person at once; more are declined."""
DONE: Final = "done"
_DECLINE: Final = "decline"


@final
class LiveCall:
    """A call that the server is working at. Its clock stands while a person is asked."""

    def __init__(self, ctx: ToolContext, seconds: float) -> None:
        self.ctx = ctx
        self.scope = anyio.CancelScope(deadline=anyio.current_time() + seconds)
        self.asking: set[anyio.CancelScope] = set()
        """Cancelled when the call is over: nobody waits for the answers any more."""
        self._left = 0.0
        self._pauses = 0

    def pause(self) -> None:
        self._pauses += 1
        if self._pauses == 1:
            self._left = self.scope.deadline - anyio.current_time()
            self.scope.deadline = math.inf

    def resume(self) -> None:
        self._pauses -= 1
        if not self._pauses:
            self.scope.deadline = anyio.current_time() + self._left


@final
class LiveCalls:
    """The calls of one connection that are under way, and what answers the questions that come meanwhile."""

    def __init__(self, server: str, mask: Mask) -> None:
        self._server = server
        self._mask = mask
        self._calls: list[LiveCall] = []

    def begin(self, ctx: ToolContext, seconds: float) -> LiveCall:
        """Put a call into the list."""
        call = LiveCall(ctx, seconds)
        self._calls.append(call)
        return call

    def end(self, call: LiveCall) -> None:
        """Take it out again, and ask nobody any more on its behalf."""
        self._calls.remove(call)
        for scope in call.asking:
            scope.cancel()

    async def elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Answer a question of the server: by a person, by way of the newest call that runs."""
        del context  # it does not say which call the question belongs to
        if not self._calls:
            return types.ElicitResult(action="decline")
        call = self._calls[-1]
        if len(call.asking) >= _MOST_ASKING:
            return types.ElicitResult(action="decline")
        answer: types.ElicitResult | None = None
        scope = anyio.CancelScope()
        call.asking.add(scope)
        call.pause()
        try:
            with scope:
                answer = await _ask(call.ctx, params, self._server, self._mask)
        except ValueError as error:
            _log.info("question of an MCP server is none", server=self._server, why=self._mask(str(error)))
            return types.ErrorData(code=types.INVALID_PARAMS, message=f"The question can't be asked: {error}")
        except Exception as error:  # declined, or the program's callback failed, which the run reports
            _log.debug("question of an MCP server was not answered", server=self._server, why=self._mask(str(error)))
            answer = types.ElicitResult(action="decline")
        finally:
            call.resume()
            call.asking.discard(scope)
        return answer or types.ElicitResult(action="cancel")


async def _ask(ctx: ToolContext, params: types.ElicitRequestParams, server: str, mask: Mask) -> types.ElicitResult:
    text, schema, options = LeafMap(mask)(question_of(params, server, mask))
    answer = await ctx.question(text, schema, options)
    return result_of(params, answer)


def question_of(
    params: types.ElicitRequestParams, server: str, mask: Mask
) -> tuple[str, dict[str, Any] | None, tuple[str, ...]]:
    """Return the text, the schema of the answer and the options of a server's question."""
    # Half of a secret could not be masked any more.
    message = mask(params.message[:_LARGEST])[:_LONGEST]
    if isinstance(params, types.ElicitRequestURLParams):
        asks = f"The MCP server {server!r} asks you to open {mask(params.url[:_LARGEST])[:_LONGEST]!r} in a browser: {message}"
        return f"{asks}\nAnswer {DONE!r} when you have, or {_DECLINE!r}.", None, (DONE, _DECLINE)
    return f"The MCP server {server!r} asks: {message}", {"type": "object", **params.requested_schema}, ()


def result_of(params: types.ElicitRequestParams, answer: Any) -> types.ElicitResult:
    """Return a person's answer as the server wants it."""
    if isinstance(params, types.ElicitRequestURLParams):
        return types.ElicitResult(action="accept" if answer == DONE else "decline")
    return types.ElicitResult(action="accept", content=answer)
