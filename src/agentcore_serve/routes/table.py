"""The shape of a route. ONE list of these makes the router, its authorization and the OpenAPI document.

Above: the files of routes beside it. Below: identities. What turns a route into something that Starlette serves is in `dispatch`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import BaseModel
from starlette.requests import HTTPConnection, Request
from starlette.websockets import WebSocket

from agentcore_serve.auth.identity import Identity, Scope

if TYPE_CHECKING:
    from agentcore_serve.hub import Hub

WEBSOCKET: Final = "WEBSOCKET"
"""The method of a route that is a WebSocket."""


class Call(NamedTuple):
    """One request, as a route's endpoint sees it: authorized, and its body and query read."""

    connection: HTTPConnection
    identity: Identity
    params: Mapping[str, str]
    """The path's."""
    body: Any = None
    """The route's request model, where it has one."""
    query: Any = None
    """The route's query model, where it has one."""

    @property
    def hub(self) -> Hub:
        """The conversations of this server."""
        return self.connection.app.state.hub

    @property
    def state(self) -> Any:
        """The parts of this server, by name, as its lifespan set them."""
        return self.connection.app.state

    @property
    def request(self) -> Request:
        """The HTTP request; for a body that the route reads itself."""
        assert isinstance(self.connection, Request)
        return self.connection

    @property
    def websocket(self) -> WebSocket:
        """The WebSocket, not accepted yet."""
        assert isinstance(self.connection, WebSocket)
        return self.connection


Endpoint = Callable[[Call], Awaitable[Any]]
"""It returns the route's response model, a Starlette response, or None where there is nothing to say (204)."""


class Route(NamedTuple):
    """One route of the server."""

    method: str
    path: str
    """From the root, as in "/api/v1/conversations/{id}"."""
    endpoint: Endpoint
    scope: Scope | None
    """The scope that a key needs; None is open to everybody."""
    body: Any = None
    """The model of the request's body (any type that pydantic reads). None: no JSON body is read."""
    answer: Any = None
    """The model of the response's body."""
    status: int = 200
    summary: str = ""
    query: type[BaseModel] | None = None
    """The model of the query; None: there is none, and one is refused."""
    any_query: bool = False
    """True if the endpoint passes the query on, whatever is in it."""
    media: str = "application/json"
    """The type of the response, for the document; and with `raw`, of the request."""
    raw: str | None = None
    """The media type of a body that the endpoint reads itself."""
    plain: bool = False
    """True if the endpoint gets the body as the JSON that it is: `body` is for the document."""
    also: tuple[tuple[int, Any], ...] = ()
    """Other good answers, as status and model."""
    tag: str = "server"
    """The heading under which the document lists it."""
