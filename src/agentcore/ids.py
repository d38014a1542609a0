"""Where ids come from: one place, so that their shapes can be relied on."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime

_CONVERSATION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def new_id(prefix: str) -> str:
    """Mint an id that no other log will hold: the prefix, then 80 random bits in hexadecimal."""
    return f"{prefix}_{os.urandom(10).hex()}"


def new_conversation_id() -> str:
    """Mint a conversation id that sorts by the time it was made and is short enough to type (`20261121-093000-…`)."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.urandom(5).hex()}"


def is_conversation_id(name: str) -> bool:
    """Return whether it could be a conversation's id."""
    return _CONVERSATION_ID.fullmatch(name) is not None


def check_conversation_id(conversation_id: str) -> str:
    """Return the id back, or raise `ValueError` where it could not be the name of a folder on every system."""
    if not is_conversation_id(conversation_id):
        raise ValueError(
            f"{conversation_id!r} can't be a conversation id: use 1 to 128 letters, digits, '.', '_' or '-', "
            "the first one a letter or a digit."
        )
    return conversation_id
