"""What is typed into a program that runs: text and Enter, or one key."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["KEYS", "is_key", "key_name", "typed"]

KEYS: Final = {
    "ENTER": b"\r",
    "TAB": b"\t",
    "ESC": b"\x1b",
    "BS": b"\x7f",
    "UP": b"\x1b[A",
    "DOWN": b"\x1b[B",
    "RIGHT": b"\x1b[C",
    "LEFT": b"\x1b[D",
    "HOME": b"\x1b[H",
    "END": b"\x1b[F",
    "PGUP": b"\x1b[5~",
    "PGDN": b"\x1b[6~",
}
"""What a terminal sends for the keys that have a name."""

_WITH_CONTROL: Final = re.compile(r"(?:C-|c-|\^|Ctrl-|Ctrl\+|ctrl-|ctrl\+)([A-Za-z\\\]\[^_])")


def is_key(text: str) -> bool:
    """Say whether this is the name of a key, and not text."""
    return text.strip() in KEYS or _WITH_CONTROL.fullmatch(text.strip()) is not None


def key_name(text: str) -> str | None:
    """Return the name of a key as a keyboard has it ("Ctrl-C", "UP"); None of text."""
    text = text.strip()
    if (control := _WITH_CONTROL.fullmatch(text)) is not None:
        return f"Ctrl-{control[1].upper()}"
    return text if text in KEYS else None


def typed(text: str) -> bytes:
    """Give the bytes for a key (`C-c`, `UP`), or for text with Enter behind it."""
    if (key := KEYS.get(text.strip())) is not None:
        return key
    if (control := _WITH_CONTROL.fullmatch(text.strip())) is not None:
        return bytes([ord(control[1].upper()) & 0x1F])
    # Enter sends a carriage return; the terminal makes a line end of it where a program reads lines.
    return text.removesuffix("\n").replace("\n", "\r").encode(errors="replace") + b"\r"
