"""JSON as a server takes it: UTF-8, finite numbers, whole characters, and not nested so deeply that reading it hurts."""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json

from agentcore._value import DEEPEST, is_too_deep
from agentcore_serve.refused import Refused


def check_json(body: bytes) -> None:
    """Check a body before a model reads it.

    The place of a fault is named, never what stands there.

    Raises:
        Refused: It is not JSON (400), or nested too deeply (422).
    """
    try:
        value: Any = from_json(body, allow_inf_nan=False, cache_strings="none")
    except ValueError as error:
        # Of the parser's own words, which hold no input: "expected value at line 1 column 3".
        if "recursion limit" in str(error):
            raise _too_deep() from None
        raise Refused(400, "invalid_json", f"The body is not JSON in UTF-8: {error}.") from None
    if is_too_deep(value):
        raise _too_deep()


def _too_deep() -> Refused:
    text = f"Objects and arrays are nested more than {DEEPEST} deep."
    return Refused(422, "invalid_request", text, errors=[{"loc": ("body",), "msg": text}])
