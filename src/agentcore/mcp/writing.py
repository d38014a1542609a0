"""Writing a file that only its user may read, whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from tempfile import mkstemp


def write_private(path: str, text: str) -> None:
    """Write a file of mode 0600 in the place of what is there; its folder is made. A link to it stays one.

    Raises:
        OSError: It cannot be written; what was there stays.
    """
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    descriptor, unfinished = mkstemp(dir=folder, prefix=f".{os.path.basename(path)}.")
    try:
        with open(descriptor, "w", encoding="utf-8") as file:  # mkstemp makes it with mode 0600
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished)
        raise
