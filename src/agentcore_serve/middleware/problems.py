"""Whatever is raised below becomes a problem of RFC 9457, in this one place. What nobody expected says nothing of itself."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final, final

import anyio
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from agentcore._groups import leaf_exceptions
from agentcore.logs import get_logger
from agentcore.wire.problems import FieldProblem, Problem, problem_of
from agentcore_serve.middleware.responses import close_message, request_id_of, send_problem
from agentcore_serve.refused import Refused

_logger = get_logger(__name__)

_DETAILS: Final = {
    404: "There is nothing at this address.",
    405: "This address does not take this method.",
}

_GONE: Final = (ClientDisconnect, WebSocketDisconnect)

_NO_ROUTE: Final = {"type": "websocket.close", "code": 1000, "reason": ""}
"""How Starlette's router refuses a WebSocket that no route takes."""


@final
class Problems:
    """Answers with a problem where the app raises."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        started = ended = False

        async def watch(message: Message) -> None:
            nonlocal started, ended
            if not started and message == _NO_ROUTE:
                raise HTTPException(404)
            started = True
            ended = ended or message["type"] == "websocket.close"
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except Exception as raised:
            leaves = [each for each in leaf_exceptions(raised) if not isinstance(each, _GONE)]
            if not leaves:
                return  # who would have read the answer is gone
            error = leaves[0]
            problem, headers = problem_for(error, request_id_of(scope))
            if problem.status == 500 and problem.code == "internal_error":
                log_failure("request_failed", error, request_id=problem.request_id)
            if not started:
                await send_problem(problem, headers, scope, receive, send)
            elif scope["type"] == "websocket" and not ended:
                await send(close_message(problem))
            # A response that has begun is left incomplete: the server cuts the connection, so that nobody takes it for whole.


def problem_for(error: BaseException, request_id: str | None) -> tuple[Problem, Mapping[str, str]]:
    """Return the problem of an error, and the headers that go with it."""
    match error:
        case Refused():
            data = {} if error.retry_after is None else {"retry_after": error.retry_after}
            problem = Problem(
                title=_title(error.status),
                status=error.status,
                detail=error.detail,
                code=error.code,
                errors=tuple(FieldProblem(loc=each["loc"], msg=each["msg"]) for each in error.errors),
                request_id=request_id,
                data=dict(data),
            )
            return problem, error.headers
        case HTTPException(status_code=status):
            # Starlette's own. Its text may repeat what was sent.
            title = _title(status)
            detail = _DETAILS.get(status, f"{title}.")
            code = title.lower().replace(" ", "_").replace("-", "_")
            problem = Problem(title=title, status=status, detail=detail, code=code, request_id=request_id)
            return problem, dict(error.headers or {})
        case ValidationError():
            # A body that does not fit is refused where it is read. This one is of the server's own values.
            return problem_of(RuntimeError(), request_id=request_id), {}
        case _:
            problem = problem_of(error, request_id=request_id)
            after = problem.data.get("retry_after")
            return problem, {"Retry-After": str(max(1, round(after)))} if isinstance(after, int | float) else {}


async def raise_again(request: Request, error: Exception) -> Response:
    """Pass Starlette's own errors up to `Problems`: `Starlette(exception_handlers={HTTPException: raise_again})`."""
    del request
    await anyio.lowlevel.checkpoint()
    raise error


def log_failure(event: str, error: BaseException, **fields: str | None) -> None:
    """Log where something unexpected was raised, and its class. Its text stays out: it may hold what was sent."""
    chain: list[str] = []
    each: BaseException | None = error
    while each is not None and len(chain) < 10:
        chain.append(f"{type(each).__module__}.{type(each).__qualname__}")
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    _logger.error(event, error=chain, at=_frames(traceback.extract_tb(error.__traceback__)), **fields)


def _frames(stack: Sequence[traceback.FrameSummary]) -> list[str]:
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in stack[-20:]]


def _title(status: int) -> str:
    return HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Error"
