"""The routes of views: desktops, editors and terminals inside of a box, in a person's browser.

Each view has a host of its own (`auth.views`), which knows no key and no cookie but the view's. Under the server's own name, a view is what a
port is: for programs with a key, and pages of it have an origin of their own.
"""

from __future__ import annotations

import html
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, cast

from anyio.abc import ByteStream
from starlette.responses import Response

from agentcore._groups import leaf_exceptions
from agentcore.errors import WorkspaceError
from agentcore.wire.requests import RequestBody
from agentcore.wire.workspaces import ViewInfo
from agentcore_sandbox.network.port_headers import SANDBOX
from agentcore_sandbox.views import WebView
from agentcore_sandbox.views.gate import refuse_ticket_use
from agentcore_sandbox.views.policy import OWN_PAGE_POLICY, first_page_link, format_page, page_policy
from agentcore_sandbox.views.program import HasViews, ViewProgram
from agentcore_serve.auth.security import Security
from agentcore_serve.auth.views import COOKIE, page_request
from agentcore_serve.refused import Refused
from agentcore_serve.routes.table import WEBSOCKET, Call, Route
from agentcore_serve.workspaces.calls import hub_of, use
from agentcore_serve.workspaces.hub import OpenWorkspace
from agentcore_serve.workspaces.passing import Way, answer_http, answer_websocket, split_path
from agentcore_serve.workspaces.port_routes import METHODS

_SOCKETS: Final = {"http": "ws", "https": "wss"}


def _security(call: Call) -> Security:
    return call.state.security


async def _list(call: Call) -> list[ViewInfo]:
    workspace, scope = call.params["workspace"], call.request.scope
    sessions = _security(call).views
    async with use(call) as opened:
        views = views_of(opened.workspace).image_views()
    found: list[ViewInfo] = []
    for name, view in sorted(views.items()):
        host = sessions.host_of(scope, workspace, name)
        if host is None:
            raise Refused(
                409,
                "no_views_host",
                "Views need hosts of their own, apart from the server's pages. Start the server with --views-host views.example.org, "
                "where all names below it lead to the server.",
            )
        base, _ = split_path({**scope, "raw_path": _raw_path(call) + b"/"}, "views")
        ticket = sessions.issue(call.identity.key_id, workspace, name, view)
        url = f"{scope['scheme']}://{host}{base}/{name}?ticket={ticket}"
        found.append(ViewInfo(name=name, title=name.replace("-", " ").capitalize(), url=url))
    return found


class ViewQuery(RequestBody):
    """The ticket of a view."""

    ticket: str


async def _enter(call: Call) -> Response:
    """Trade a ticket for the cookie of the view, and go there."""
    scope, name = call.request.scope, call.params["view"]
    if (refusal := refuse_ticket_use(page_request(scope))) is not None:
        raise Refused(refusal.status, "not_a_page", refusal.text)
    ticket = cast("ViewQuery", call.query).ticket
    headers = {"Content-Security-Policy": OWN_PAGE_POLICY.decode(), "Referrer-Policy": "no-referrer"}
    try:
        view, session = _security(call).views.enter(scope, call.params["workspace"], name, ticket)
    except Refused as error:
        if "text/html" not in call.request.headers.get("accept", ""):
            raise
        return Response(format_page(f"<p>{html.escape(error.detail)}</p>"), error.status, headers, "text/html")
    base, _ = split_path({**scope, "raw_path": _raw_path(call) + b"/"}, f"views/{name}")
    if session is not None:
        secure = "; Secure" if scope["scheme"] == "https" else ""
        headers["Set-Cookie"] = f"{COOKIE}={session}; Path={base}; HttpOnly; SameSite=Strict{secure}"
    page = format_page(first_page_link(view.first_page(f"{base}/")))
    return Response(page, headers=headers, media_type="text/html")


def _raw_path(call: Call) -> bytes:
    scope = call.connection.scope
    return (scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0]


async def _pass_http(call: Call) -> Any:
    # Before anything is passed on: what is another's is refused as what is not there.
    hub_of(call).find(call.identity, call.params["workspace"])
    name, scope = call.params["view"], call.request.scope
    base, path = split_path(scope, f"views/{name}")
    policy = SANDBOX
    if _security(call).views.is_at_host(scope):
        policy = page_policy(f"{_SOCKETS[scope['scheme']]}://{call.request.headers['host']}")
    return answer_http(call, lambda opened: _find(opened, name), base, path, policy)


async def _pass_websocket(call: Call) -> None:
    name = call.params["view"]
    _, path = split_path(call.connection.scope, f"views/{name}")
    await answer_websocket(call, lambda opened: _find(opened, name), path)


def _find(opened: OpenWorkspace, name: str) -> Way:
    """Return the way to a view's program, which is started by whoever is first to go it."""
    place = views_of(opened.workspace)
    view: WebView | None = place.image_views().get(name)
    if view is None:
        raise Refused(404, "view_not_found", "The workspace has no such view.")
    program = opened.programs.get(name)
    if program is None:
        program = opened.programs[name] = ViewProgram(opened.tasks, place, name, view)

    def connect(port: int) -> AbstractAsyncContextManager[ByteStream]:
        del port
        return _connected(program)

    return Way(connect, view.port)


@asynccontextmanager
async def _connected(program: ViewProgram) -> AsyncGenerator[ByteStream]:
    reached = False
    try:
        async with program.connect() as stream:
            reached = True
            yield stream
    except Exception as error:
        first = leaf_exceptions(error)[0]
        if reached or not isinstance(first, WorkspaceError):
            raise
        # With the program's own last words, unlike a port that nothing answers at.
        raise Refused(502, "view_not_started", str(first)) from None


def views_of(workspace: object) -> HasViews:
    """Return a workspace as one that may have views.

    Raises:
        Refused: It cannot have any (409).
    """
    if isinstance(workspace, HasViews):
        return workspace
    raise Refused(
        409,
        "no_views",
        "The workspace is a folder of the server's machine, and has no views. Start the server with --sandbox docker, and an image of "
        "`agentcore sandbox build`.",
    )


_ALL: Final = "/api/v1/workspaces/{workspace}/views"
_ONE: Final = f"{_ALL}/{{view}}"
_INSIDE: Final = f"{_ONE}/{{path:path}}"
_SCOPE: Final = "workspace"
_TAG: Final = "workspaces"
_SUMMARY: Final = "Pass a request on to the program of a view, which is started if it does not run."

VIEWS: Final = (
    Route(
        "GET",
        _ALL,
        _list,
        _SCOPE,
        answer=list[ViewInfo],
        summary="List the views of a box, each with an address that opens it in one browser, once, within a minute.",
        tag=_TAG,
    ),
    Route(
        "GET",
        _ONE,
        _enter,
        None,
        query=ViewQuery,
        media="text/html",
        summary="Trade a ticket for the cookie of a view, and go there.",
        tag=_TAG,
    ),
    *(
        Route(method, _INSIDE, _pass_http, _SCOPE, summary=_SUMMARY, media="*/*", any_query=True, tag=_TAG)
        for method in METHODS
    ),
    Route(WEBSOCKET, _INSIDE, _pass_websocket, _SCOPE, summary=_SUMMARY, any_query=True, tag=_TAG),
)
"""For the one list of the server's routes."""
