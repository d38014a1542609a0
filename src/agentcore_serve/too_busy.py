"""`TooBusy`: the refusal of what there is no room for just now."""

from __future__ import annotations

from agentcore_serve.refused import Refused


class TooBusy(Refused):
    """There is no room: for a run (429), or for one more open conversation (503)."""

    def __init__(self, status: int, detail: str, *, retry_after: float) -> None:
        super().__init__(status, "too_busy", detail, retry_after=retry_after)
