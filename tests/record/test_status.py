"""The table of statuses, as the design has it: every cell."""

from __future__ import annotations

from typing import get_args

import pytest

from agentcore.events import ConversationStatus
from agentcore.record import TRANSITIONS, Trigger, next_status

TRIGGERS: tuple[Trigger, ...] = ("send", "run", "pause", "interrupt", "approve", "reopen")

# Each row: the status, and where each trigger leads. A dot changes nothing. What stands behind a slash happens later, by
# a status change of its own: a pause while the agent runs takes effect when its step has ended; approving while others
# wait runs what was approved, and waits again.
TABLE = """
                          send   run      pause    interrupt  approve  reopen
idle                      .      running  paused   .          .        .
running                   .      .        ./paused paused     .        paused
paused                    .      running  .        .          .        .
waiting_for_confirmation  .      .        .        paused     running  .
finished                  idle   .        .        .          .        .
stuck                     idle   running  .        .          .        .
error                     idle   running  .        .          .        .
"""


def cells() -> list[tuple[str, Trigger, str]]:
    head, *rows = TABLE.strip().splitlines()
    assert tuple(head.split()) == TRIGGERS
    return [
        (name, trigger, name if cell.startswith(".") else cell)
        for name, *row in map(str.split, rows)
        for trigger, cell in zip(TRIGGERS, row, strict=True)
    ]


@pytest.mark.parametrize(("status", "trigger", "then"), cells())
def test_a_trigger_leads_where_the_table_says(status: str, trigger: Trigger, then: str) -> None:
    assert next_status(ConversationStatus(status), trigger) is ConversationStatus(then)


def test_the_table_has_every_status_and_every_trigger() -> None:
    assert {status for status, _, _ in cells()} == set(ConversationStatus)
    assert set(TRIGGERS) == set(get_args(Trigger))


def test_what_is_listed_changes_something_and_nothing_else_does() -> None:
    listed = {(status, trigger): then for (status, trigger), then in TRANSITIONS.items()}
    changing = {
        (ConversationStatus(status), trigger): ConversationStatus(then)
        for status, trigger, then in cells()
        if status != then
    }
    assert listed == changing
