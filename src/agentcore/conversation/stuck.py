"""Letting the stuck detector see the log: each event of the active branch once, and all of it anew after a rewind."""

from __future__ import annotations

from agentcore.record import ConversationState
from agentcore.stuck import StuckDetector, StuckThresholds, Verdict


class StuckTracker:
    """Owned by the driver."""

    def __init__(self, thresholds: StuckThresholds | None) -> None:
        self._detector = None if thresholds is None else StuckDetector(thresholds)
        self._seen = 0
        """The head up to which the detector has seen the log."""
        self._epoch = -1
        """The view's epoch then: after a rewind it has to see the other branch."""

    def verdict(self, state: ConversationState) -> Verdict | None:
        """Show the detector what is new, and give what it says."""
        detector = self._detector
        if detector is None:
            return None
        if self._epoch != state.view_epoch:
            detector.reset()
            for event in state.branch_events():
                detector.observe(event)
            self._epoch = state.view_epoch
        else:
            for event in state.events[self._seen :]:
                detector.observe(event)
        self._seen = state.head
        return detector.verdict()
