"""Page sessions: a browser trades a one-use code for a cookie, so that no key is ever in a URL or in a page's script."""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable
from typing import Final, final

from starlette.datastructures import Headers
from starlette.types import Scope as AsgiScope

from agentcore_serve.auth.codes import PAGE_CODE_SECONDS, OneUseCodes
from agentcore_serve.auth.keys import KeyStore, ValidKey, digest_of
from agentcore_serve.database import Database
from agentcore_serve.refused import not_authenticated

SESSION_SECONDS: Final = 7 * 24 * 3600

_MOST_PER_KEY: Final = 100


@final
class PageSessions:
    """Issues codes, trades them for cookies, and knows whose a cookie is: after a restart too, until its key is revoked."""

    def __init__(
        self,
        database: Database,
        keys: KeyStore,
        *,
        clock: Callable[[], float] = time.time,
        codes: OneUseCodes | None = None,
    ) -> None:
        self._database = database
        self._keys = keys
        self._clock = clock
        self.codes = codes or OneUseCodes("acp", PAGE_CODE_SECONDS)
        """Where the codes of pages come from: `codes.issue(identity.key_id)`."""

    async def enter(self, code: str, scope: AsgiScope, *, secure: bool) -> str:
        """Trade a code for a session, and return the `Set-Cookie` header of the response.

        Raises:
            Refused: The code is wrong, used or older than a minute (401).
        """
        key_id = self.codes.redeem(code)
        valid = None if key_id is None else await self._keys.find(key_id)
        if valid is None:
            raise not_authenticated("This code is wrong, was used, or is older than a minute. Ask for a new one.")
        token = f"acs_{secrets.token_hex(32)}"
        row = (digest_of(token), valid.identity.key_id, valid.digest, self._clock() + SESSION_SECONDS)
        await self._database.run(
            lambda db: (
                db.execute("DELETE FROM page_sessions WHERE expires <= ?", (self._clock(),)),
                db.execute(
                    "DELETE FROM page_sessions WHERE key_id = :key AND digest NOT IN (SELECT digest FROM page_sessions"
                    " WHERE key_id = :key ORDER BY expires DESC LIMIT :most)",
                    {"key": valid.identity.key_id, "most": _MOST_PER_KEY - 1},
                ),
                db.execute("INSERT INTO page_sessions VALUES (?, ?, ?, ?)", row),
            )
        )
        return _cookie(cookie_name(scope), token, SESSION_SECONDS, secure=secure)

    async def leave(self, scope: AsgiScope, *, secure: bool) -> str:
        """End the session of a request, and return the `Set-Cookie` header that removes its cookie."""
        token = session_token(scope)
        if token is not None:
            await self._database.run(
                lambda db: db.execute("DELETE FROM page_sessions WHERE digest = ?", (digest_of(token),))
            )
        return _cookie(cookie_name(scope), "", 0, secure=secure)

    async def verify(self, token: str) -> ValidKey | None:
        """Return the key that a cookie stands for, or None where it is over or its key is not valid any more."""
        row = await self._database.run(
            lambda db: db.execute(
                "SELECT key_id, key_digest FROM page_sessions WHERE digest = ? AND expires > ?",
                (digest_of(token), self._clock()),
            ).fetchone()
        )
        if row is None:
            return None
        key_id, key_digest = row
        valid = await self._keys.find(key_id)
        # A file may hold another key by now.
        return valid if valid is not None and hmac.compare_digest(valid.digest, key_digest) else None


def cookie_name(scope: AsgiScope) -> str:
    """Return the cookie's name. It has the port in it: browsers share cookies between all ports of a host."""
    host = Headers(scope=scope).get("host", "")
    port = host.rpartition(":")[2]
    return f"agentcore_{port}" if port.isdecimal() else "agentcore"


def session_token(scope: AsgiScope) -> str | None:
    """Return the cookie of a request, if there is one."""
    name = cookie_name(scope)
    for header in Headers(scope=scope).getlist("cookie"):
        for part in header.split(";"):
            found, _, value = part.strip().partition("=")
            if found == name and value:
                return value
    return None


def _cookie(name: str, value: str, seconds: int, *, secure: bool) -> str:
    parts = [f"{name}={value}", f"Max-Age={seconds}", "Path=/", "HttpOnly", "SameSite=Strict"]
    return "; ".join([*parts, "Secure"] if secure else parts)
