"""A stream does not outlive its key: one that is revoked or expires ends what it had opened."""

from __future__ import annotations

from typing import final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentcore_serve.auth.identity import IDENTITY, Identity
from agentcore_serve.auth.security import Security
from agentcore_serve.middleware.rates import is_stream
from agentcore_serve.refused import not_authenticated


@final
class Revocation:
    """Looks at the key of an open stream again as messages pass. Pings pass on each stream, so none is too quiet for it."""

    def __init__(self, app: ASGIApp, *, security: Security) -> None:
        self._app = app
        self._security = security
        self._seconds = security.settings.request_limits.recheck_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        identity = scope.get(IDENTITY) if scope["type"] in ("http", "websocket") else None
        if not isinstance(identity, Identity) or not is_stream(scope):
            await self._app(scope, receive, send)
            return
        clock = self._security.monotonic
        next_check = clock() + self._seconds

        async def check() -> None:
            nonlocal next_check
            if clock() < next_check:
                return
            next_check = clock() + self._seconds
            if await self._security.keys.find(identity.key_id) is None:
                raise not_authenticated("The key of this stream was revoked, or has expired.")

        async def checked_receive() -> Message:
            message = await receive()
            await check()
            return message

        async def checked_send(message: Message) -> None:
            await check()
            await send(message)

        await self._app(scope, checked_receive, checked_send)
