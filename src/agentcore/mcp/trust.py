"""The project files that a person allowed to start their servers: remembered by path and content, in a file of this user.

A project's file comes from whoever wrote the project. A file that changes is asked about again.
"""

from __future__ import annotations

import json
import os
from typing import Any, Final, cast, final

from agentcore.mcp.writing import write_private

_FILE: Final = "trusted-mcp-files.json"


@final
class TrustedFiles:
    """The project files that are trusted."""

    def __init__(self, folder: str) -> None:
        """Keep them in this folder, which need not be there yet."""
        self._path = os.path.join(folder, _FILE)

    def contains(self, path: str, digest: str) -> bool:
        """Return whether this file is trusted as it is now."""
        return self._read().get(os.path.realpath(path)) == digest

    def add(self, path: str, digest: str) -> None:
        """Trust a file as it is now.

        Raises:
            OSError: It cannot be remembered.
        """
        kept = {known: digest for known, digest in self._read().items() if os.path.lexists(known)}
        files = {**kept, os.path.realpath(path): digest}
        write_private(self._path, json.dumps({"files": files}, indent=2, sort_keys=True) + "\n")

    def _read(self) -> dict[str, str]:
        try:
            with open(self._path, encoding="utf-8") as file:
                content: Any = json.load(file)
        except (OSError, ValueError, RecursionError):
            return {}  # nothing is trusted, and the next answer writes it anew
        files: Any = cast("dict[str, Any]", content).get("files") if isinstance(content, dict) else None
        if not isinstance(files, dict):
            return {}
        pairs = cast("dict[str, Any]", files).items()
        return {path: digest for path, digest in pairs if isinstance(digest, str) and digest}
