"""The identity of a request: which key, whose, and what it may do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple, cast, get_args

from starlette.types import Scope as AsgiScope

from agentcore_serve.refused import Refused, not_authenticated

Scope = Literal["read", "run", "approve", "workspace", "agents", "admin"]

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
"""All scopes. None implies another."""

DEFAULT_OWNER: Final = "default"
"""The owner of keys that name none, of the key in a file and of a server without keys: what one of them makes, all see."""

IDENTITY: Final = "agentcore.identity"


class Identity(NamedTuple):
    """The key that a request came with. It holds nothing secret."""

    key_id: str
    """The public part of the key, recorded as `by` with what the request does."""
    owner: str
    """Whose conversations and workspaces the key reaches."""
    scopes: frozenset[Scope]


LOCAL: Final = Identity("local", DEFAULT_OWNER, frozenset(SCOPES))
"""Everybody, where the server asks for no keys."""


def parse_scopes(names: Iterable[str]) -> frozenset[Scope]:
    """Return scopes by their names.

    Raises:
        ValueError: There is no such scope, or none was named.
    """
    wanted = {name.strip() for name in names if name.strip()}
    if not wanted or not wanted <= set(SCOPES):
        unknown = ", ".join(sorted(wanted - set(SCOPES))) or "none"
        raise ValueError(f"Unknown scopes: {unknown}. There are: {', '.join(SCOPES)}.")
    return cast("frozenset[Scope]", frozenset(wanted))


def identity_of(scope: AsgiScope) -> Identity:
    """Return the identity that the authentication middleware found.

    Raises:
        Refused: There is none: the path is public, or the middleware is missing.
    """
    identity = scope.get(IDENTITY)
    if not isinstance(identity, Identity):
        raise not_authenticated("This address needs a key.")
    return identity


def require_scope(identity: Identity, scope: Scope) -> None:
    """Check that a key may do this.

    Raises:
        Refused: It may not (403).
    """
    if scope not in identity.scopes:
        raise Refused(
            403,
            "not_authorized",
            f"This key lacks the scope {scope!r}. Make one that has it: agentcore keys add NAME --scopes {scope}",
        )
