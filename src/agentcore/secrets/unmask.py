"""Putting values back where masks stand: for an action that was written down, waited, and is to be carried out."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from agentcore.errors import SecretError
from agentcore.secrets.leaves import LeafMap

__all__ = ["unmask"]

_Json = TypeVar("_Json")
_MASK = re.compile(r"<secret:([A-Za-z_][A-Za-z0-9_]*)(:encoded)?>")


async def unmask(
    value: _Json, lookup: Callable[[str], Awaitable[str]], *, names: Collection[str] | None = None
) -> _Json:
    """Give the value with every `<secret:NAME>` in it replaced by what `lookup` (as `SecretRegistry.get`) says.

    With `names`, masks of other names are words that somebody wrote, and stay.

    Raises:
        SecretError: what can't be put back, all of it named: no such secret, no value to be had, or the value stood
            there in an encoding that the mask does not tell.
    """
    masks: dict[str, bool] = {}

    def collect(text: str) -> str:
        for match in _MASK.finditer(text):
            if names is None or match[1] in names:
                masks[match[1]] = masks.get(match[1], False) or match[2] is not None
        return text

    LeafMap(collect)(value)
    if not masks:
        return value

    found: dict[str, str] = {}
    missing: list[str] = []
    for name, encoded in masks.items():
        if encoded:
            missing.append(f"{name!r} (it stood there encoded, or together with others, and can't be rebuilt)")
            continue
        try:
            found[name] = await lookup(name)
        except SecretError as error:
            missing.append(f"{name!r} ({error})")
    if missing:
        raise SecretError(
            f"Secrets stood here that can't be put back: {', '.join(missing)}. "
            "Register what is missing and try again, or reject the action and have it asked for anew."
        )

    def put_back(text: str) -> str:
        return _MASK.sub(lambda match: found.get(match[1], match[0]), text)

    complete: _Json = LeafMap(put_back)(value)
    return complete
