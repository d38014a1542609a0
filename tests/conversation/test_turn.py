"""The phases of a turn, held to their table."""

from __future__ import annotations

from contextvars import copy_context
from itertools import product
from typing import get_args

import pytest

from agentcore.conversation.calls import CallTable
from agentcore.conversation.result import RunResult
from agentcore.conversation.turn import PHASES, Phase, Turn
from agentcore.events import ConversationStatus

NAMES: tuple[Phase, ...] = get_args(Phase)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


def turn_in(phase: Phase) -> Turn:
    turn = Turn(1, copy_context(), CallTable())
    turn.phase = phase
    return turn


@pytest.mark.parametrize(("phase", "following"), list(product(NAMES, NAMES)))
async def test_a_turn_goes_where_the_table_says_and_nowhere_else(phase: Phase, following: Phase) -> None:
    turn = turn_in(phase)
    if following in PHASES[phase]:
        turn.enter(following)
        assert turn.phase == following
    else:
        with pytest.raises(AssertionError):
            turn.enter(following)
        assert turn.phase == phase


@pytest.mark.parametrize("phase", NAMES)
async def test_an_interrupt_stops_what_is_not_over_and_its_first_reason_counts(phase: Phase) -> None:
    turn = turn_in(phase)
    turn.interrupt("enough", command="cmd_1")
    turn.interrupt("really", command="cmd_2")
    over = phase == "settled"
    assert turn.phase == ("settled" if over else "stopping")
    assert turn.scope.cancel_called is not over
    expected = (None, None) if over or phase == "stopping" else ("enough", "cmd_1")
    assert (turn.reason, turn.command) == expected


async def test_the_last_one_who_leaves_interrupts() -> None:
    turn = turn_in("working")
    turn.waiters = {"a", "b"}
    turn.leave("a")
    turn.leave("a")
    turn.leave("somebody else")
    assert turn.phase == "working"
    turn.leave("b")
    assert turn.phase == "stopping"


async def test_a_turn_that_has_ended_has_its_result_and_wakes_who_waits() -> None:
    turn = turn_in("working")
    result = RunResult(status=ConversationStatus.FINISHED)
    turn.end(result)
    assert turn.settled
    assert turn.done.is_set()
    assert turn.result is result
