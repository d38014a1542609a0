"""How checks are kept in a log, and read from one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import JsonValue, TypeAdapter, ValidationError

from agentcore.security.adapt import Checks
from agentcore.security.policies import AlwaysConfirm, ConfirmRisky, NeverConfirm, RecordedPolicy

__all__ = ["read_checks", "record_checks"]


@cache
def _adapter() -> TypeAdapter[NeverConfirm | AlwaysConfirm | ConfirmRisky]:
    # Built when the first policy is read, so that importing agentcore stays cheap.
    return TypeAdapter(RecordedPolicy)


def record_checks(checks: Checks) -> dict[str, JsonValue]:
    """Return a policy's name and parameters; of anything else, "custom" and the name of its class."""
    check = checks[0] if isinstance(checks, list | tuple) and len(checks) == 1 else checks
    # The class itself, not a subclass: that may ask about more, and must not come back as one that asks about less.
    if type(check) is NeverConfirm or type(check) is AlwaysConfirm or type(check) is ConfirmRisky:
        return check.model_dump(mode="json")
    parts = checks if isinstance(checks, list | tuple) else (checks,)
    return {"name": "custom", "class": ", ".join(type(part).__qualname__ for part in parts)}


def read_checks(recorded: Mapping[str, Any]) -> NeverConfirm | AlwaysConfirm | ConfirmRisky | None:
    """Return the policy that was recorded, or None where it can't be had from the log.

    That is so for checks of the program's own, and for what only a newer version can read. None says that the program
    has to pass its checks again, and not that nothing needs to be confirmed.
    """
    try:
        return _adapter().validate_python(dict(recorded))
    except ValidationError:
        return None
