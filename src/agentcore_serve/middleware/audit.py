"""Which requests the audit log has: whatever changes something, opens a connection, or tries what it may not."""

from __future__ import annotations

from typing import Final, final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentcore_serve.auth.audit import AuditLog
from agentcore_serve.auth.identity import IDENTITY, Identity
from agentcore_serve.auth.throttle import client_address
from agentcore_serve.middleware.authentication import WRONG_KEY
from agentcore_serve.middleware.request_log import shown_path
from agentcore_serve.middleware.responses import request_id_of

_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_ANSWERS: Final = {
    "http.response.start",
    "websocket.http.response.start",
    "websocket.accept",
    "websocket.close",
}


@final
class Audit:
    """Writes a line before the answer goes out, so that nobody is told of what the log does not have.

    Strangers without a key write none, and wrong keys as many as the throttle allows: they cannot fill the disk.
    """

    def __init__(self, app: ASGIApp, *, log: AuditLog) -> None:
        self._app = app
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        recorded = False

        async def watch(message: Message) -> None:
            nonlocal recorded
            if not recorded and message["type"] in _ANSWERS:
                recorded = True
                await self._record(scope, _status(message))
            await send(message)

        await self._app(scope, receive, watch)

    async def _record(self, scope: Scope, status: int) -> None:
        found = scope.get(IDENTITY)
        identity = found if isinstance(found, Identity) else None
        changes = scope["type"] == "websocket" or scope["method"] not in _READS
        if not (WRONG_KEY in scope or (identity is not None and status != 429 and (changes or status == 403))):
            return
        await self._log.record(
            scope.get("method", "WEBSOCKET"),
            shown_path(scope),
            key=None if identity is None else identity.key_id,
            owner=None if identity is None else identity.owner,
            status=status,
            request_id=request_id_of(scope),
            address=client_address(scope),
        )


def _status(message: Message) -> int:
    status: int = message.get("status") or (101 if message["type"] == "websocket.accept" else 403)
    return status
