"""Who calls, and what that caller may do."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, get_args

Scope = Literal["read", "run", "approve", "workspace", "agents", "admin"]

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)


class Identity(NamedTuple):
    """The key that a request came with."""

    key_id: str
    owner: str
    scopes: frozenset[Scope]
