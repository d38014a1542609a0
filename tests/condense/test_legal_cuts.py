"""Whatever the history looks like: what a condenser answers is a cut that leaves a history that a model accepts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.condense import Amortised, Masking, Measure, Outline, Pipeline, Structured, Summary, Window, repair
from agentcore.context import View
from agentcore.events import (
    ActionEvent,
    Condensation,
    CondensationReason,
    ContextAdded,
    Event,
    MessageEvent,
    ObservationEvent,
    SystemPromptEvent,
)
from agentcore.llm import Model, Reply
from agentcore.messages import Message, TextBlock
from agentcore.record import ConversationState
from agentcore.usage import Usage
from strategies import logs

WRITTEN = "## Goal\nShip it."


def outline_of(state: ConversationState, reason: CondensationReason, room: int, answer: str = WRITTEN) -> Outline:
    async def ask(messages: Sequence[Message], llm: Model | None) -> Reply:
        del messages, llm
        return Reply(message=Message.assistant(answer), usage=Usage(), stop_reason="end", model="m")

    view = View()
    view.update(state)
    sizes = Measure().request(state, view)
    return Outline(
        reason=reason,
        room=room,
        state=state,
        epoch=state.view_epoch,
        sizes=sizes,
        head=view.prompt,
        ask_model=ask,
    )


def folded(groups: Sequence[Sequence[Event]]) -> ConversationState:
    state = ConversationState("c")
    for group in groups:
        for event in group:
            number = state.head + 1
            state.apply(event.model_copy(update={"seq": number, "id": f"ev_{number}"}))
    return state


CONDENSERS: list[tuple[Any, str]] = [
    (Summary(), WRITTEN),
    (Window(), ""),
    (Window(facts=False), ""),
    (Masking(), ""),
    (Amortised(replies=2), ""),
    (Structured({"type": "object"}), "{}"),
    (Pipeline(Masking(), Amortised(replies=3), Summary()), WRITTEN),
]

_KINDS = st.sampled_from(["user", "agent", "calls", "context", "environment", "skill"])


@st.composite
def histories(draw: st.DrawFn) -> ConversationState:
    """Histories as conversations write them, cut now and then."""
    events: list[Event] = [
        SystemPromptEvent(prompt="You work."),
        MessageEvent(source="user", message=Message.user("go")),
    ]
    state = folded([events])

    def add(event: Any) -> Any:
        number = state.head + 1
        event = event.model_copy(update={"seq": number, "id": f"ev_{number}"})
        state.apply(event)
        return event

    for kind, size in draw(st.lists(st.tuples(_KINDS, st.integers(0, 400)), max_size=25)):
        text = f"{kind} " + "word " * size
        match kind:
            case "calls":
                actions = [
                    add(ActionEvent(reply_id=f"r{state.head}", tool_name="t", call_id=f"c{state.head}", arguments={}))
                ]
                if size % 2:
                    again = ActionEvent(
                        reply_id=actions[0].reply_id, tool_name="u", call_id=f"c{state.head}", arguments={}
                    )
                    actions.append(add(again))
                for action in actions:
                    answer = ObservationEvent(
                        cause=action.id,
                        tool_name=action.tool_name,
                        call_id=action.call_id,
                        content=(TextBlock(text=text),),
                        data={"path": f"/{size}", "lines": 1},
                    )
                    add(answer)
            case "context" | "skill":
                add(ContextAdded(name=f"{kind}:{size}", text=text, digest=str(size)))
            case "user" | "environment":
                add(MessageEvent(source=kind, message=Message.user(text)))
            case _:
                add(MessageEvent(source="agent", message=Message.assistant(text)))
    return state


@pytest.mark.parametrize(("condenser", "answer"), CONDENSERS, ids=lambda value: type(value).__name__)
@given(
    state=histories(),
    reasons=st.lists(st.sampled_from(["soft", "hard", "asked"]), min_size=1, max_size=4),
    room=st.integers(50, 8_000),
)
def test_each_answer_is_a_legal_cut_of_any_history(
    condenser: Any, answer: str, state: ConversationState, reasons: Sequence[CondensationReason], room: int
) -> None:
    for reason in reasons:
        outline = outline_of(state, reason, room, answer)
        cut = cast("Condensation | None", anyio.run(condenser.condense, outline))
        if cut is None:
            continue
        outline.check(cut)
        number = state.head + 1
        state.apply(cut.model_copy(update={"seq": number, "id": f"ev_{number}"}))
        summaries = [item for item in outline_of(state, reason, room).items if item.kind == "summary"]
        if cut.summary:
            assert [item.ids for item in summaries][-1:] == [(f"ev_{number}",)]
            assert len(summaries) == 1 or not isinstance(condenser, Summary | Structured)


@given(groups=logs(), reason=st.sampled_from(["soft", "hard", "asked"]), room=st.integers(20, 500))
def test_each_answer_is_a_legal_cut_of_an_odd_log_too(
    groups: list[list[Event]], reason: CondensationReason, room: int
) -> None:
    state = folded(groups)
    for condenser, answer in CONDENSERS:
        outline = outline_of(state, reason, room, answer)
        try:
            cut = anyio.run(condenser.condense, outline)
        except ValueError as error:
            # A log that begins with the agent cannot be cut without a summary: the conversation says so and goes on.
            assert "begins with the agent" in str(error)  # noqa: PT017 only some logs are so
            continue
        if cut is not None:
            outline.check(cut)
    if (cut := repair(outline_of(state, "repair", room))) is not None:
        outline_of(state, "repair", room).check(cut)
