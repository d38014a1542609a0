"""Keys, tickets of WebSockets, and the codes by which a page comes to its cookie."""

from __future__ import annotations

from typing import Final, cast

from pydantic import SecretStr
from starlette.responses import HTMLResponse, Response

from agentcore.wire.requests import KeyInfo, KeyRequest, NewKey, RequestBody, Ticket
from agentcore.wire.routes import API
from agentcore_serve.auth.codes import PAGE_CODE_SECONDS
from agentcore_serve.auth.keys import KeyRecord
from agentcore_serve.auth.security import Security
from agentcore_serve.refused import Refused
from agentcore_serve.routes.table import Call, Route

_TAG: Final = "keys"
PAGE: Final = "./"
"""The page that a code leads to, relative to `/enter`."""
_ENTERED: Final = (
    f"<!doctype html><html lang='en'><meta charset='utf-8'><meta http-equiv='refresh' content='0; url={PAGE}'>"
    f"<title>agentcore</title><p><a href='{PAGE}'>Go on.</a></p></html>"
)
_NOT_ENTERED: Final = (
    "<!doctype html><html lang='en'><meta charset='utf-8'><title>agentcore</title>"
    "<p>This link was used already, or is older than a minute. Get another one: <code>agentcore keys link</code>.</p>"
    f"<p>A browser that is logged in needs none: <a href='{PAGE}'>go to the page</a>.</p></html>"
)


def _security(call: Call) -> Security:
    return call.state.security


def _info(record: KeyRecord) -> KeyInfo:
    return KeyInfo(
        id=record.id,
        owner=record.owner,
        scopes=tuple(sorted(record.scopes)),
        note=record.name,
        created=record.created,
        expires=record.expires,
        last_used=record.last_used,
        revoked=record.revoked is not None,
    )


async def _list_keys(call: Call) -> list[KeyInfo]:
    return [_info(record) for record in await _security(call).keys.records()]


async def _add_key(call: Call) -> NewKey:
    request = cast("KeyRequest", call.body)
    if request.expires is not None and request.expires.tzinfo is None:
        raise Refused(422, "invalid_request", "The time of expiry needs a time zone.")
    try:
        record, secret = await _security(call).keys.add(
            request.note or request.owner, owner=request.owner, scopes=request.scopes, expires=request.expires
        )
    except ValueError as error:
        raise Refused(422, "invalid_request", str(error)) from None
    return NewKey(**_info(record).model_dump(), key=secret)


async def _revoke_key(call: Call) -> None:
    if not await _security(call).keys.revoke(call.params["key"]):
        raise Refused(404, "key_not_found", "There is no such key.")


async def _issue_ticket(call: Call) -> Ticket:
    tickets = _security(call).tickets
    return Ticket(ticket=SecretStr(tickets.issue(call.identity.key_id)), expires_in=tickets.seconds)


async def _issue_page_code(call: Call) -> Ticket:
    code = _security(call).pages.codes.issue(call.identity.key_id)
    return Ticket(ticket=SecretStr(code), expires_in=PAGE_CODE_SECONDS)


class EnterQuery(RequestBody):
    """A page's code."""

    code: str


async def _enter(call: Call) -> Response:
    security = _security(call)
    code = cast("EnterQuery", call.query).code
    try:
        cookie = await security.pages.enter(code, call.request.scope, secure=security.secure_cookies)
    except Refused:
        if "text/html" not in call.request.headers.get("accept", ""):
            raise
        return HTMLResponse(_NOT_ENTERED, status_code=401, headers={"Cache-Control": "no-store"})
    # A page and no redirect: behind a link from elsewhere, a browser would not send the cookie to where it is redirected.
    return HTMLResponse(_ENTERED, headers={"Set-Cookie": cookie, "Cache-Control": "no-store"})


async def _leave(call: Call) -> Response:
    security = _security(call)
    cookie = await security.pages.leave(call.request.scope, secure=security.secure_cookies)
    return Response(status_code=204, headers={"Set-Cookie": cookie})


KEYS: Final = (
    Route(
        "GET", f"{API}/keys", _list_keys, "admin", answer=list[KeyInfo], summary="The keys, without secrets.", tag=_TAG
    ),
    Route(
        "POST",
        f"{API}/keys",
        _add_key,
        "admin",
        body=KeyRequest,
        answer=NewKey,
        status=201,
        summary="Add a key. Its secret is in this answer and nowhere else.",
        tag=_TAG,
    ),
    Route("DELETE", f"{API}/keys/{{key}}", _revoke_key, "admin", summary="Revoke a key.", tag=_TAG),
    Route(
        "POST",
        f"{API}/tickets",
        _issue_ticket,
        "read",
        answer=Ticket,
        status=201,
        summary="A ticket that opens one WebSocket, within 30 seconds.",
        tag=_TAG,
    ),
    Route(
        "POST",
        f"{API}/page-codes",
        _issue_page_code,
        "read",
        answer=Ticket,
        status=201,
        summary="A code that brings a browser a session of this key, once, within a minute: /enter?code=...",
        tag=_TAG,
    ),
    Route(
        "GET",
        "/enter",
        _enter,
        None,
        query=EnterQuery,
        media="text/html",
        summary="Trade a code for a cookie, and go to the page.",
        tag=_TAG,
    ),
    Route("POST", "/leave", _leave, "read", summary="End the session of a page.", tag=_TAG),
)
"""The routes of keys, page sessions and tickets."""
