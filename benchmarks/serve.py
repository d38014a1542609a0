"""What the server costs: its streams, working conversations that are watched, its start, and its requests."""

from __future__ import annotations

import anyio
from _report import Report, Settings, report
from _serve_requests import measure_requests
from _serve_start import measure_start
from _serve_streams import measure_stalled, measure_streams
from _serve_work import measure_idle, measure_work


def measure(settings: Settings) -> Report:
    """Measure all of it."""
    found = Report(
        "What does the server cost beside a bare Starlette on the same hypercorn, and beside conversations here?"
    )
    measure_start(settings, found)
    for part in (measure_streams, measure_stalled, measure_work, measure_idle, measure_requests):
        anyio.run(part, settings, found)
    return found


if __name__ == "__main__":
    report(measure)
