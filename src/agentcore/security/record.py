"""How a policy is kept in a log, and read from one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import JsonValue, TypeAdapter, ValidationError

from agentcore.security.policies import AlwaysConfirm, ConfirmationPolicy, ConfirmRisky, NeverConfirm, RecordedPolicy

__all__ = ["read_policy", "record_policy"]


@cache
def _adapter() -> TypeAdapter[NeverConfirm | AlwaysConfirm | ConfirmRisky]:
    # Built when the first policy is read, so that importing agentcore stays cheap.
    return TypeAdapter(RecordedPolicy)


def record_policy(policy: ConfirmationPolicy) -> dict[str, JsonValue]:
    """Give the policy's name and parameters; of one of the program's own, "custom" and the name of its class."""
    # The class itself, not a subclass: that may ask about more, and must not come back as one that asks about less.
    if type(policy) is NeverConfirm or type(policy) is AlwaysConfirm or type(policy) is ConfirmRisky:
        return policy.model_dump(mode="json")
    return {"name": "custom", "class": type(policy).__qualname__}


def read_policy(recorded: Mapping[str, Any]) -> ConfirmationPolicy | None:
    """Give the policy that was recorded, or None where it can't be had from the log.

    That is so for a custom one, and for one that only a newer version can read. None says that the program has to pass
    a policy again, and not that nothing needs to be confirmed.
    """
    try:
        return _adapter().validate_python(dict(recorded))
    except ValidationError:
        return None
