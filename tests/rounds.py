"""How long the long runs are: whole by hand and in `nox -s faults`, a tenth of it where `AGENTCORE_BOUNDED` is set, as in CI."""

from __future__ import annotations

import os

__all__ = ["rounds"]


def rounds(full: int) -> int:
    """Return how many rounds to do of a long run that does so many."""
    return max(1, full // 10) if os.environ.get("AGENTCORE_BOUNDED") else full
