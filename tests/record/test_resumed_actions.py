"""Folding the questions of actions that had started: they wait, and are resumed with the end of the question."""

from __future__ import annotations

from typing import Any

import pytest

from agentcore.events import (
    ActionApproved,
    ActionAssessed,
    ActionEvent,
    ActionStarted,
    AgentErrorEvent,
    Event,
    QuestionAnswered,
    QuestionAsked,
)
from agentcore.record import ConversationState, OpenAction

ACTION = ActionEvent(reply_id="re", tool_name="t", arguments={"a": 1}, call_id="c")
STARTED = ActionStarted(cause=ACTION.id)
ASKED = QuestionAsked(cause=ACTION.id, text="?", resumes=True, note={"n": 1})
ANSWERED = QuestionAnswered(cause=ACTION.id, question=ASKED.id, outcome="answered", answer="yes")


def fold(*events: Event) -> ConversationState:
    state = ConversationState("c")
    for event in events:
        state.apply(event.model_copy(update={"seq": state.head + 1}))
    return state


def opened(state: ConversationState) -> OpenAction:
    return state.open_actions[ACTION.id]


def flags(state: ConversationState) -> tuple[bool, bool, bool]:
    action = opened(state)
    assert state.has_approved is action.runs_next
    assert [event.id for event in state.pending] == [ACTION.id] * action.waits
    return action.started, action.waits, action.runs_next


def test_an_action_that_had_started_waits_on_its_question_and_is_then_resumed() -> None:
    assert flags(fold(ACTION, STARTED)) == (True, False, False)
    waits = fold(ACTION, STARTED, ASKED)
    assert flags(waits) == (False, True, False)
    assert [question.id for question in waits.questions] == [ASKED.id]
    ended = fold(ACTION, STARTED, ASKED, ANSWERED)
    assert flags(ended) == (False, False, True)
    assert ended.questions == ()
    again = fold(ACTION, STARTED, ASKED, ANSWERED, STARTED)
    assert flags(again) == (True, False, False)
    for state in (ended, again):
        asked, end = opened(state).resumption or (None, None)
        assert (asked and asked.note, end and end.answer) == ({"n": 1}, "yes")


def test_the_next_question_takes_the_place_of_the_one_before() -> None:
    second = QuestionAsked(cause=ACTION.id, text="And?", resumes=True, note={"n": 2})
    log = (ACTION, STARTED, ASKED, ANSWERED, STARTED, second)
    assert flags(fold(*log)) == (False, True, False)
    assert opened(fold(*log)).resumption is None
    declined = QuestionAnswered(cause=ACTION.id, question=second.id, outcome="declined", reason="no")
    asked, end = opened(fold(*log, declined)).resumption or (None, None)
    assert (asked and asked.note, end and end.reason) == ({"n": 2}, "no")


def test_an_action_that_was_approved_waits_on_its_question_all_the_same() -> None:
    before = (ACTION, ActionAssessed(cause=ACTION.id, verdict="ask"), ActionApproved(cause=ACTION.id), STARTED)
    assert flags(fold(*before, ASKED)) == (False, True, False)
    assert flags(fold(*before, ASKED, ANSWERED)) == (False, False, True)


def test_an_answer_ends_the_action_with_its_question() -> None:
    error = AgentErrorEvent(cause=ACTION.id, tool_name="t", call_id="c", error="x")
    state = fold(ACTION, STARTED, ASKED, error)
    assert (state.questions, dict(state.open_actions)) == ((), {})


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param((ACTION, ASKED), id="an action that never started has nothing to resume"),
        pytest.param((ACTION, STARTED, QuestionAsked(cause=ACTION.id, text="?")), id="nor is a call's own answer one"),
        pytest.param((ACTION, STARTED, QuestionAsked(cause="ev_other", text="?", resumes=True)), id="of no action"),
    ],
)
def test_a_question_that_cannot_be_is_read_as_none(odd: tuple[Any, ...]) -> None:
    state = fold(*odd)
    assert state.questions == ()
    assert opened(state).question is None


def test_a_question_that_waits_already_is_the_only_one() -> None:
    second = QuestionAsked(cause=ACTION.id, text="And?", resumes=True)
    state = fold(ACTION, STARTED, ASKED, second)
    assert [question.id for question in state.questions] == [ASKED.id]
    ended = QuestionAnswered(cause=ACTION.id, question=second.id, outcome="answered", answer="x")
    assert flags(fold(ACTION, STARTED, ASKED, ended)) == (False, True, False)
