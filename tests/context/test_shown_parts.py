"""The parts of context that a model is shown now, as cuts, prompts and rewinds leave them."""

from __future__ import annotations

from hypothesis import given

from agentcore.context import PART_KEY, ShownParts
from agentcore.events import ActionEvent, Condensation, ContextAdded, Event, ObservationEvent, SystemPromptEvent
from agentcore.messages import TextBlock
from agentcore.record import ConversationState
from strategies import logs


def fold(*events: Event, state: ConversationState | None = None) -> ConversationState:
    state = state or ConversationState("c")
    for event in events:
        state.apply(event.model_copy(update={"seq": state.head + 1}))
    return state


def test_a_part_that_an_answer_shows_counts_until_the_answer_is_left_out() -> None:
    action = ActionEvent(reply_id="r", tool_name="skill", call_id="c", arguments={})
    answer = ObservationEvent(
        cause=action.id, tool_name="skill", call_id="c", content=(TextBlock(text="x"),), data={PART_KEY: "skill:deploy"}
    )
    shown = ShownParts()
    state = fold(action, answer)
    assert set(shown.update(state)) == {"skill:deploy"}
    for summary in (None, "So far."):
        cut = fold(action, answer, Condensation(masked=(answer.id,), summary=summary))
        assert set(ShownParts().update(cut)) == set()
    assert set(shown.update(fold(Condensation(masked=(answer.id,)), state=state))) == set()
    again = answer.model_copy(update={"id": "ev_again"})
    assert set(shown.update(fold(again, state=state))) == {"skill:deploy"}


def test_what_was_forgotten_and_what_an_earlier_prompt_held_is_not_shown() -> None:
    added = ContextAdded(name="file:b", text="b", digest="2")
    state = fold(SystemPromptEvent(prompt="p", parts={"file:a": "1"}), added)
    assert dict(ShownParts().update(state)) == {"file:a": "1", "file:b": "2"}
    fold(SystemPromptEvent(prompt="q", parts={"file:c": "3"}), Condensation(forgotten=(added.id,)), state=state)
    assert dict(ShownParts().update(state)) == {"file:c": "3"}


@given(logs())
def test_following_a_log_is_reading_all_of_it(log: list[list[Event]]) -> None:
    shown, state = ShownParts(), ConversationState("c")
    for event in (event for group in log for event in group):
        fold(event, state=state)
        assert dict(shown.update(state)) == dict(ShownParts().update(state))
