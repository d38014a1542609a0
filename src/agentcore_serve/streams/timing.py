"""The bounds of streams, in seconds. Tests shorten them."""

from __future__ import annotations

from typing import NamedTuple


class Timing(NamedTuple):
    """How long a stream waits for what."""

    ping: float = 15
    """A silence of this length is broken by a `ping`."""
    stall: float = 30
    """A send may block for so long: the other side does not read. No server bounds it."""
    goodbye: float = 3
    """A watcher has so long to send its `bye`."""
    deltas: float = 0.025
    """The shortest time between two frames of deltas."""
    sweep: float = 1
    """How often pings and stalled sends are looked for."""
