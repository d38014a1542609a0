"""The labels of what a box is made of: containers and volumes are found, judged and removed by them alone.

They are set when a thing is made, so that nothing is ever without; all of them, so that those of an image do not count.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

PREFIX: Final = "agentcore."
BOX: Final = "agentcore.box"
"""The box's id; see `name_of`."""
OWNER: Final = "agentcore.owner"
CONVERSATION: Final = "agentcore.conversation"
EPOCH: Final = "agentcore.epoch"
"""The opening of the conversation that made the box: labels cannot be changed, so a later one is known to the helper's fence alone.

This and the conversation are empty where a program itself enters the workspace, before any conversation does.
"""
EXPIRES: Final = "agentcore.expires"
"""In seconds since 1970, when what is not used any more may be removed, or "never"."""
FINGERPRINT: Final = "agentcore.fingerprint"
"""Of all that decides what a box may do: a log cannot say that it was made otherwise."""
FREE: Final = ("owner", "conversation", "epoch")
"""Those that a program may set, without the prefix."""
_LONGEST: Final = 200


def check_free(labels: Mapping[str, str]) -> None:
    """Refuse labels that a program cannot set.

    Raises:
        ValueError: It names those that it can.
    """
    for name, value in labels.items():
        if name not in FREE:
            raise ValueError(f"labels= has no {name!r}: it may have {', '.join(map(repr, FREE))}.")
        if not value.isprintable() or len(value) > _LONGEST:
            raise ValueError(f"The label {name!r} must be one short line, not {value[:_LONGEST]!r}.")


def default_owner() -> str:
    """Return the owner where the program names none: this user."""
    return f"uid {os.getuid()}"


def name_of(box: str) -> str:
    """Return the name of a box's container. Its volumes are named by it too."""
    return f"agentcore-{box}"


def fingerprint_of(params: Mapping[str, Any]) -> str:
    """Return a short digest of a box's parameters."""
    return hashlib.sha256(json.dumps(params, sort_keys=True).encode()).hexdigest()[:32]


def make_labels(box: str, free: Mapping[str, str], *, fingerprint: str, seconds: float | None) -> dict[str, str]:
    """Return the labels of a new box.

    Args:
        box: Its id.
        free: What the program sets: owner, conversation, epoch.
        fingerprint: See `fingerprint_of`.
        seconds: After which it may be removed if nobody uses it; None if it is kept.
    """
    return {
        BOX: box,
        OWNER: free.get("owner") or default_owner(),
        CONVERSATION: free.get("conversation", ""),
        EPOCH: free.get("epoch", ""),
        EXPIRES: "never" if seconds is None else str(int(time.time() + seconds) + 1),
        FINGERPRINT: fingerprint,
    }


def expiry_of(labels: Mapping[str, str]) -> datetime | None:
    """Return when a box expires, or None if it never does. What cannot be read has expired."""
    text = labels.get(EXPIRES, "")
    if text == "never":
        return None
    try:
        return datetime.fromtimestamp(int(text), UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)


def is_box(name: str, labels: Mapping[str, str]) -> bool:
    """Return True if a container is a box. An image may bring labels of any kind, but not the name."""
    return labels.get(BOX, "") != "" and name.removeprefix("/") == name_of(labels[BOX])
