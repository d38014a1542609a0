"""The view: what the model is shown, whatever order the log has, added to as events come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.context import View, build_messages
from agentcore.events import (
    ActionEvent,
    AgentErrorEvent,
    Condensation,
    Event,
    HeadMoved,
    MessageEvent,
    ObservationEvent,
    SystemPromptEvent,
    UserRejectObservation,
    WrittenCall,
)
from agentcore.messages import Message, TextBlock, ToolResultBlock
from agentcore.record import ConversationState
from strategies import logs as any_logs


def fold(events: list[Event], view: View | None = None) -> ConversationState:
    state = ConversationState("c")
    for event in events:
        state.apply(event.model_copy(update={"seq": state.head + 1}))
        if view is not None:
            view.update(state)
    return state


def user(text: str) -> MessageEvent:
    return MessageEvent(source="user", message=Message.user(text))


def action(reply: str, call: str) -> ActionEvent:
    return ActionEvent(
        reply_id=reply,
        tool_name="t",
        arguments={"n": call},
        call_id=call,
        written=WrittenCall(arguments={"N": call}) if call.endswith("1") else None,
        before=(TextBlock(text=f"thinking of {call}"),),
    )


def answer(to: ActionEvent) -> ObservationEvent:
    return ObservationEvent(
        cause=to.id, tool_name="t", call_id=to.call_id, content=(TextBlock(text=f"re {to.call_id}"),)
    )


def shape(state: ConversationState) -> list[str]:
    return [
        f"{m.role}:{','.join(getattr(b, 'text', None) or b.type for b in m.content)}" for m in build_messages(state)
    ]


A, B, ONE, TWO = action("r", "a"), action("r", "b"), user("one"), user("two")
RE_A = answer(A)
LATE = RE_A.model_copy(update={"content": (TextBlock(text="late"),)})
BOTH = "assistant:thinking of a,tool_call,thinking of b,tool_call"


@pytest.mark.parametrize(
    ("events", "shown"),
    [
        # Answers stand in the order of the calls, and messages behind them.
        (
            [SystemPromptEvent(prompt="P"), ONE, A, B, answer(B), TWO, RE_A],
            ["system:P", "user:one", BOTH, "tool:re a,re b", "user:two"],
        ),
        # A reply that is not answered yet is not shown, nor a second answer to one action.
        ([ONE, A, B, RE_A, TWO], ["user:one"]),
        ([A, RE_A, LATE], ["assistant:thinking of a,tool_call", "tool:re a"]),
        # The newest prompt stands first.
        ([SystemPromptEvent(prompt="old"), ONE, SystemPromptEvent(prompt="new")], ["system:new", "user:one"]),
        # What was forgotten is replaced by its summary; forgetting a part of a reply forgets all of it.
        (
            [ONE, TWO, user("three"), Condensation(forgotten=(ONE.id, TWO.id), summary="two things")],
            ["user:two things", "user:three"],
        ),
        ([ONE, A, B, RE_A, answer(B), Condensation(forgotten=(RE_A.id,), summary=None)], ["user:one"]),
    ],
)
def test_the_model_is_shown_what_it_can_take(events: list[Event], shown: list[str]) -> None:
    assert shape(fold(events)) == shown


def test_rejections_and_errors_are_answers_that_say_so() -> None:
    a, b = action("r", "a"), action("r", "b")
    state = fold(
        [
            a,
            b,
            UserRejectObservation(cause=a.id, tool_name="t", call_id="a", reason="not that"),
            AgentErrorEvent(cause=b.id, tool_name="t", call_id="b", error="it broke"),
        ]
    )
    blocks = [block for block in build_messages(state)[-1].content if isinstance(block, ToolResultBlock)]
    assert all(block.is_error for block in blocks)
    assert "not that" in blocks[0].text
    assert blocks[1].text == "it broke"


def test_a_snapshot_of_the_messages_does_not_change_when_more_come() -> None:
    view = View()
    state = fold([user("one")], view)
    before = view.messages
    state.apply(user("two").model_copy(update={"seq": 2}))
    view.update(state)
    assert [m.text for m in before] == ["one"]
    assert (len(before), before[-1].text, [m.text for m in before[:5]]) == (1, "one", ["one"])
    assert [m.text for m in view.messages] == ["one", "two"]


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """Logs as conversations write them, and some as they do not."""
    events: list[Event] = []
    pending: list[ActionEvent] = []
    for number in range(draw(st.integers(0, 25))):
        kind = draw(st.sampled_from(["user", "agent", "calls", "answer", "answer", "prompt", "forget", "move"]))
        if kind == "user":
            events.append(user(f"u{number}"))
        elif kind == "agent":
            events.append(MessageEvent(source="agent", message=Message.assistant(f"a{number}")))
        elif kind == "calls":
            batch = [action(f"r{number}", f"{number}-{n}") for n in range(draw(st.integers(1, 3)))]
            events.extend(batch)
            pending.extend(batch)
        elif kind == "answer" and pending:
            events.append(answer(pending.pop(draw(st.integers(0, len(pending) - 1)))))
        elif kind == "prompt":
            events.append(SystemPromptEvent(prompt=f"p{number}"))
        elif kind == "forget" and events:
            chosen = draw(st.lists(st.sampled_from(events), min_size=1, max_size=3))
            events.append(Condensation(forgotten=tuple(event.id for event in chosen), summary=f"s{number}"))
        elif kind == "move" and events:
            events.append(HeadMoved(to=draw(st.integers(0, len(events)))))
            pending.clear()
    return events


@given(logs())
def test_a_view_that_was_added_to_is_the_view_that_is_built_anew(events: list[Event]) -> None:
    view = View()
    state = ConversationState("c")
    for event in events:
        state.apply(event.model_copy(update={"seq": state.head + 1}))
        view.update(state)
        rebuilt = build_messages(state)
        assert list(view.messages) == list(rebuilt)


@given(logs())
def test_every_call_that_is_shown_has_its_answer_right_behind(events: list[Event]) -> None:
    messages = list(build_messages(fold(events)))
    for index, message in enumerate(messages):
        if message.tool_calls:
            results = [block for block in messages[index + 1].content if isinstance(block, ToolResultBlock)]
            assert [block.call_id for block in results] == [call.id for call in message.tool_calls]
        assert message.role != "tool" or messages[index - 1].tool_calls


@given(any_logs())
def test_it_follows_any_log_there_is(log: list[list[Event]]) -> None:
    view = View()
    state = ConversationState("c")
    for event in (event for group in log for event in group):
        state.apply(event.model_copy(update={"seq": state.head + 1}))
        view.update(state)
        assert list(view.messages) == list(build_messages(state))
