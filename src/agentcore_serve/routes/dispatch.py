"""Turns a `Route` into what Starlette serves: scope first, then query and body, then the endpoint, then its answer."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.routing import Route as HttpRoute
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope
from starlette.websockets import WebSocket

from agentcore.wire.requests import ResponseBody, encode_body
from agentcore.wire.routes import read_json
from agentcore_serve.auth.identity import Identity, Scope, identity_of, require_scope
from agentcore_serve.refused import Refused
from agentcore_serve.routes.table import WEBSOCKET, Call, Route

_LONGEST_NAME = 64
_ANYBODY = Identity("", "", frozenset())


def serve_route(route: Route) -> BaseRoute:
    """Return the Starlette route that serves this one."""
    if route.method == WEBSOCKET:
        return WebSocketRoute(route.path, _Served(route), name=f"{route.method} {route.path}")
    # Starlette would serve HEAD with each GET; where it makes sense a list of routes names it.
    return HttpRoute(route.path, _Served(route), methods=[route.method], name=f"{route.method} {route.path}")


class _Served:
    """The ASGI application of one route."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self.path = route.path
        """The pattern, for metrics."""

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            connection: HTTPConnection = WebSocket(scope, receive, send)
        else:
            connection = Request(scope, receive, send)
        identity = authorize(connection, self._route.scope)
        query = _read_query(self._route, connection)
        body = None
        if self._route.body is not None:
            assert isinstance(connection, Request)
            body = await _read_body(self._route, connection)
        call = Call(connection, identity, connection.path_params, body, query)
        answer = await self._route.endpoint(call)
        if scope["type"] == "http":
            await _encode(self._route, answer)(scope, receive, send)


def authorize(connection: HTTPConnection, wanted: Scope | None) -> Identity:
    """Return who calls; nobody in particular where a route is open to everybody.

    Raises:
        Refused: Nobody known does (401), or the key does not allow this (403).
    """
    if wanted is None:
        return _ANYBODY
    identity = identity_of(connection.scope)
    require_scope(identity, wanted)
    return identity


def _read_query(route: Route, connection: HTTPConnection) -> Any:
    query = connection.query_params
    if route.query is None:
        # A WebSocket's may hold a ticket, which the authentication has read.
        if query and route.method != WEBSOCKET and not route.any_query:
            raise Refused(422, "invalid_request", "This takes no query.", errors=[_unknown(name) for name in query])
        return None
    values: dict[str, str | list[str]] = {}
    for name in query:
        values[name] = each if len(each := query.getlist(name)) > 1 else each[0]
    with refusing("query"):
        return adapter(route.query).validate_python(values)


def _unknown(name: str) -> dict[str, Any]:
    return {"loc": ("query", _shown(name)), "msg": "There is no such parameter."}


def _shown(part: str | int) -> str | int:
    # A name is repeated as far as it can be one.
    return part[:_LONGEST_NAME] if isinstance(part, str) else part


async def _read_body(route: Route, request: Request) -> Any:
    data = await request.body()
    with refusing("body"):
        value = read_json(data)
        return value if route.plain else adapter(route.body).validate_python({} if value is None else value)


@lru_cache(maxsize=256)
def adapter(model: Any) -> TypeAdapter[Any]:
    """Return what reads and writes values of this type."""
    return TypeAdapter(model)


@contextmanager
def refusing(part: str) -> Generator[None]:
    """Turn what does not fit in a part of a request into a refusal (422) that repeats nothing of it.

    Raises:
        Refused: It does not fit.
    """
    try:
        yield
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False, include_context=False)
        errors = [
            {"loc": (part, *map(_shown, detail["loc"])), "msg": _message(detail["type"], detail["msg"])}
            for detail in details[:50]
        ]
        raise Refused(422, "invalid_request", f"The {part} is not what it has to be.", errors=errors) from None


def _message(kind: str, message: str) -> str:
    # Messages of validators of ours begin with what pydantic puts before them.
    return message.removeprefix("Value error, ") if kind == "value_error" else message


def _encode(route: Route, answer: Any) -> ASGIApp:
    if callable(answer):
        return cast("ASGIApp", answer)  # a response of the endpoint's own
    if answer is None and route.answer is None:
        return Response(status_code=204 if route.status == 200 else route.status)
    if isinstance(answer, ResponseBody):
        data = encode_body(answer)
    else:
        data = adapter(route.answer if route.answer is not None else Any).dump_json(answer)
    return Response(data, status_code=route.status, media_type="application/json")
