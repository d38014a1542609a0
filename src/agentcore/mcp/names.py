"""The names of a server's tools as a model sees them: `mcp__server__tool`, and never one name for two tools."""

from __future__ import annotations

import hashlib
import re
from typing import Final

_LONGEST: Final = 64
_HASHED: Final = 8
_ODD: Final = re.compile(r"[^a-zA-Z0-9_-]")
_LOOKS_HASHED: Final = re.compile(r"_[0-9a-f]{8}\Z")


def tool_name(server: str, tool: str) -> str:
    """Return the name of a server's tool: 1 to 64 letters, digits, `_` or `-`.

    Where the two names can't be read back from it (a character had to be replaced, it was cut, or the border between them would be
    unclear) it ends in a hash of both.
    """
    plain = f"mcp__{server}__{tool}"
    clear = "__" not in server and not server.endswith("_") and not _LOOKS_HASHED.search(plain)
    if clear and len(plain) <= _LONGEST and not _ODD.search(plain):
        return plain
    digest = hashlib.sha256(f"{server}\0{tool}".encode(errors="surrogatepass")).hexdigest()[:_HASHED]
    return f"{_ODD.sub('_', plain)[: _LONGEST - _HASHED - 1]}_{digest}"
