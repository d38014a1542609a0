"""The table of escape attempts in the reference is that of the tests. AGENTCORE_WRITE_DOCS=1 writes it anew."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import boxes_escapes as escapes

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "escapes.md"
BEGIN, END = "<!-- table: written by tests/docs/test_escapes.py -->\n", "<!-- end of the table -->\n"

STOPPED = {
    "FILES": "nothing of the machine is mounted but the project and the system's programs, read-only; the root is read-only",
    "KERNEL_FILES": "`/proc` and `/sys` are read-only, hidden or missing; no devices; no capabilities",
    "NAMESPACES": "the filter of system calls, no capabilities; in bubblewrap also `--disable-userns`",
    "CALLS": "the filter of system calls, no capabilities",
    "RIGHTS": "no new privileges, no capabilities, process ids of its own, limits",
}


def table() -> Iterator[str]:
    """Return the lines of the table."""
    yield "| attempt | what stops it | in Docker |\n"
    yield "| --- | --- | --- |\n"
    for group, stopped in STOPPED.items():
        attempts: tuple[escapes.Attempt, ...] = getattr(escapes, group)
        for attempt in attempts:
            docker = "the same" if attempt.in_docker else "allowed by its profile, and no way out by itself"
            yield f"| {attempt.name} | {stopped} | {docker} |\n"


def test_the_reference_has_each_attempt() -> None:
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    written, after = rest.split(END)
    wanted = "".join(table())
    if os.environ.get("AGENTCORE_WRITE_DOCS"):
        PAGE.write_text(f"{before}{BEGIN}\n{wanted}\n{END}{after}", encoding="utf-8")
        return
    assert written.strip() == wanted.strip(), "run this test with AGENTCORE_WRITE_DOCS=1"


def test_no_attempt_is_left_out() -> None:
    names = [attempt.name for group in STOPPED for attempt in getattr(escapes, group)]
    assert names == [attempt.name for attempt in escapes.ATTEMPTS]
