"""The bodies and queries of a remote workspace: written into requests, and read from answers."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar
from urllib.parse import urlencode

from pydantic import TypeAdapter, ValidationError

from agentcore.errors import ServerError

T = TypeVar("T")


def read_answer(kind: type[T], content: bytes) -> T:
    """Return the value that an answer holds as JSON.

    Raises:
        ServerError: It is something else.
    """
    try:
        return _adapter(kind).validate_json(content)
    except ValidationError:
        # Not the error itself, whose text repeats what came.
        raise ServerError(
            "The server answered with what this version cannot read.", status=200, code="unreadable"
        ) from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    # Made at the first use, so that an import builds nothing.
    return TypeAdapter(kind)


def query_of(params: Mapping[str, str | int]) -> str:
    """Return the query of an address."""
    # A name may hold bytes that are not UTF-8.
    return urlencode({key: str(value) for key, value in params.items()}, errors="surrogateescape")


def base64_of(data: bytes | None) -> str | None:
    """Return bytes as they stand in JSON."""
    return None if data is None else b64encode(data).decode()
