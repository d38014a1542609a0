"""`Refused`: a request that the server does not do, with the problem that its sender reads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


class Refused(Exception):
    """A request is refused. Raise it anywhere below the problems middleware, which answers with it.

    For errors that a local program can meet too, raise the class of `agentcore.errors`: it reaches the client as itself.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        retry_after: float | None = None,
        errors: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        """The problem's code, in snake case."""
        self.detail = detail
        """A sentence for the sender. It never repeats what was sent."""
        self.errors = tuple(errors)
        """For a body that does not fit: `{loc, msg}` for each field. Never what was sent."""
        self.retry_after = retry_after
        """Seconds after which the same request may go through."""
        self.headers = dict(headers or {})
        if retry_after is not None:
            self.headers["Retry-After"] = str(max(1, math.ceil(retry_after)))


class OfAnotherProgram(Refused):
    """A conversation was made by another program in the same store: it can be watched here, by administrators."""

    def __init__(self, conversation_id: str) -> None:
        super().__init__(
            409,
            "of_another_program",
            f"Conversation {conversation_id!r} was not made by this server. It can be watched here; continue it where it "
            "was made.",
        )


class TooBusy(Refused):
    """There is no room: for a run (429), or for one more open conversation (503)."""

    def __init__(self, status: int, detail: str, *, retry_after: float) -> None:
        super().__init__(status, "too_busy", detail, retry_after=retry_after)


def draining() -> Refused:
    """Return the refusal of what would begin while the server ends."""
    return Refused(503, "draining", "The server is about to end. Try again in a moment.", retry_after=1)


def too_many(detail: str, retry_after: float) -> Refused:
    """Return the refusal of a sender that asks too often."""
    return Refused(429, "too_many_requests", detail, retry_after=retry_after)


def not_authenticated(detail: str) -> Refused:
    """Return the refusal of a request without a valid key."""
    return Refused(401, "not_authorized", detail, headers={"WWW-Authenticate": 'Bearer realm="agentcore"'})
