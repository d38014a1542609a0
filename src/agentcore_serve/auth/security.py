"""The parts of a server's security, made of its settings: opened by the lifespan, used by middleware and routes."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import final

import anyio

from agentcore_serve.auth.audit import AUDIT_LOG, AuditLog
from agentcore_serve.auth.codes import PAGE_CODE_SECONDS, TICKET_SECONDS, OneUseCodes
from agentcore_serve.auth.database import DATABASE, open_auth_database
from agentcore_serve.auth.exposure import check_exposure
from agentcore_serve.auth.keys import KeyStore, check_file_key
from agentcore_serve.auth.pages import PageSessions
from agentcore_serve.auth.views import ViewSessions
from agentcore_serve.refused import Refused
from agentcore_serve.settings import ServeSettings


@final
class Security:
    """Keys, page sessions, tickets and the audit log of one server.

    `create_app` makes it, without touching a file; `async with security.opened()` is for its lifespan.
    """

    def __init__(
        self,
        settings: ServeSettings,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Check where the server would be open.

        Raises:
            ExposureError: It would be open to others without protection.
        """
        check_exposure(settings)
        self.settings = settings
        self.clock = clock
        self.monotonic = monotonic
        self.tickets = OneUseCodes("act", TICKET_SECONDS, clock=monotonic)
        """Tickets of WebSockets: `tickets.issue(identity.key_id)`."""
        self.views = ViewSessions(settings.views_host, clock=monotonic)
        """Hosts, tickets and sessions of views."""
        self.audit = AuditLog(os.path.join(settings.store, AUDIT_LOG), clock=clock)
        self._keys: KeyStore | None = None
        self._pages: PageSessions | None = None

    @property
    def keys(self) -> KeyStore:
        """The keys. While the server is not started, each request is refused."""
        if self._keys is None:
            raise _not_started()
        return self._keys

    @property
    def pages(self) -> PageSessions:
        """The sessions of pages. While the server is not started, each request is refused."""
        if self._pages is None:
            raise _not_started()
        return self._pages

    @property
    def secure_cookies(self) -> bool:
        """True if browsers reach the server by https."""
        return self.settings.behind_proxy or self.settings.tls_cert is not None

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Security]:
        """Open the database, and read the key file.

        Raises:
            OSError: A file cannot be read or made.
            ValueError: The key file does not hold a key.
        """
        path = self.settings.api_key_file
        file_key = None if path is None else check_file_key(await anyio.Path(path).read_text("utf-8"))
        async with open_auth_database(os.path.join(self.settings.store, DATABASE)) as database:
            self._keys = KeyStore(database, file_key=file_key, clock=self.clock)
            codes = OneUseCodes("acp", PAGE_CODE_SECONDS, clock=self.monotonic)
            self._pages = PageSessions(database, self._keys, clock=self.clock, codes=codes)
            try:
                yield self
            finally:
                self._keys = self._pages = None


def _not_started() -> Refused:
    return Refused(503, "not_started", "The server is starting or stopping. Try again.", retry_after=1)
