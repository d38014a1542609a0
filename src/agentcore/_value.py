"""The base of every value that is said, sent or stored.

Below: pydantic. Above: everything. A `Value` never changes; changing one means making another with `model_copy`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, cast, final

from pydantic import BaseModel, ConfigDict

DEEPEST: Final = 100
"""How deeply JSON may be nested. pydantic gives up at 255, and what walks through it in Python needs a stack that is left."""


def is_too_deep(value: object) -> bool:
    """Return whether lists and objects of a JSON value are nested more deeply than `DEEPEST`."""
    level: list[Any] = [value] if isinstance(value, list | dict) else []
    for _ in range(DEEPEST):
        level = [
            part
            for each in level
            for part in (cast("dict[str, Any]", each).values() if isinstance(each, dict) else each)
            if isinstance(part, list | dict)
        ]
        if not level:
            return False
    return True


class Value(BaseModel):
    """A frozen model that refuses fields it does not know."""

    # defer_build: a schema is built when a class is first used, so that importing agentcore stays cheap.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Recorded(Value):
    """A value that is kept on disk: fields that a newer version wrote are kept as they are, and written back."""

    # NaN and the infinities, which JSON has no word for, stay visible: left to itself, pydantic writes them as null.
    model_config = ConfigDict(extra="allow", ser_json_inf_nan="constants")


@final
class _VerbatimMark:
    """Marks a field in which secrets are never looked for."""


VERBATIM: Final = _VerbatimMark()

Verbatim = Annotated[str, VERBATIM]
"""A string that is stored as it is: an id, a kind, a signature, base64 media. Masking never touches it."""
