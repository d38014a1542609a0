"""Masks of secrets in text that a model quotes or writes: `<secret:NAME>` is what it is shown, never what is in a file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from typing import Final

from agentcore.errors import ToolError

_MASK: Final = re.compile(r"<secret:([A-Za-z_][A-Za-z0-9_]*)(?::encoded)?>")


def refuse_masks(new: str, old: str, names: Collection[str], path: str) -> None:
    """Refuse new text that has more masks of these names than the old text in its place: they would destroy the values."""
    more = _masks(new, names) - _masks(old, names)
    if more:
        mask = next(iter(more))
        found = _MASK.fullmatch(mask)
        assert found is not None, "it was found by this expression"
        raise ToolError(
            f"{mask} stands for the value of a secret, which you are not shown. {path!r} would hold these characters in place of "
            "the value, so nothing was written. Leave that line as it is and edit other lines, or write it with a command in the "
            f"terminal, where ${found[1]} is the value."
        )


def _masks(text: str, names: Collection[str]) -> Counter[str]:
    return Counter(found[0] for found in _MASK.finditer(text) if found[1] in names)


def mask_hint(sought: str) -> str:
    """Return a hint for text that was not found, if there is a mask in it."""
    found = _MASK.search(sought)
    if found is None:
        return ""
    return (
        f"{found[0]} is shown in place of a secret's value, which is what the file has. Leave that line as it is and edit "
        f"other lines, or change it with a command in the terminal, where ${found[1]} is the value."
    )
