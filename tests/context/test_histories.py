"""Histories as conversations make them, cut and rewound at random: the view, the view built anew, and what providers demand."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agentcore.condense import Measure, Outline, OutlineItem, Window, repair
from agentcore.context import View, build_messages
from agentcore.errors import InvalidCondensation
from agentcore.events import (
    ActionEvent,
    ActionStarted,
    AgentConfigured,
    AgentErrorEvent,
    Condensation,
    ContextAdded,
    Event,
    HeadMoved,
    MessageEvent,
    ObservationEvent,
    QuestionAnswered,
    QuestionAsked,
    QuestionOutcome,
    SystemPromptEvent,
    UsageEvent,
    UserRejectObservation,
    WrittenCall,
)
from agentcore.llm import Features
from agentcore.llm.model import CallContext
from agentcore.llm.native.anthropic import AnthropicWire
from agentcore.llm.native.chat import ChatWire
from agentcore.llm.native.gemini import GeminiWire
from agentcore.llm.native.responses import ResponsesWire
from agentcore.llm.native.wire import Call, Wire
from agentcore.llm.providers import HOSTS
from agentcore.llm.settings import LLMSettings
from agentcore.messages import ImageBlock, Message, TextBlock, ThinkingBlock
from agentcore.record import ConversationState
from agentcore.usage import Usage

WRITTEN = st.sampled_from(
    [
        None,
        WrittenCall(name="Read"),
        WrittenCall(name="read a file"),
        WrittenCall(name="cat", arguments={"file": "x", "n": "1"}),
        WrittenCall(arguments={}),
    ]
)
"""A call as the model wrote it, where that is not the one that ran."""

PICTURE = ImageBlock(data="aGk=", media_type="image/png")


class History:
    """A conversation without a conversation: its state, and the view that follows it."""

    def __init__(self) -> None:
        self.state = ConversationState("c")
        self.view = View()
        self.measure = Measure()
        self.count = 0

    def add(self, *events: Event) -> None:
        for event in events:
            self.state.apply(event.model_copy(update={"seq": self.state.head + 1}))
            self.view.update(self.state)
            self.measure.request(self.state, self.view)

    def name(self) -> str:
        self.count += 1
        return f"n{self.count}"

    def outline(self) -> Outline:
        return Outline(
            reason="hard",
            room=100,
            state=self.state,
            epoch=self.state.view_epoch,
            sizes=self.measure.request(self.state, self.view),
            head=self.view.prompt,
            ask_model=None,  # pyright: ignore[reportArgumentType] no model is asked here
        )

    def reply(self, draw: st.DrawFn) -> None:
        """Add a reply with calls, and their answers in any order, with messages between them."""
        reply_id = self.name()
        words = (ThinkingBlock(text="hm", signature="s"), TextBlock(text="I look."))
        actions = [
            ActionEvent(
                reply_id=reply_id,
                tool_name="read",
                arguments={"n": number},
                call_id=self.name(),
                before=words if number == 0 else (),
                written=draw(WRITTEN),
            )
            for number in range(draw(st.integers(1, 3)))
        ]
        question = draw(st.sampled_from(["none", "none", "at rest", "live", "resumes"]))
        if question == "at rest":
            last = actions[-1].model_copy(update={"tool_name": "ask_user", "written": None})
            actions[-1] = last
        usage = UsageEvent(
            model="m",
            reply_id=reply_id,
            usage=Usage(requests=1, input_tokens=draw(st.sampled_from([0, 10, 40, 10**6]))),
            view_seq=self.state.head,
        )
        self.add(*actions, usage)
        if question == "resumes":
            self.add(ActionStarted(cause=actions[-1].id))
            self.add(QuestionAsked(cause=actions[-1].id, text="Sure?", resumes=True, note="n"))
        elif question != "none":
            self.add(QuestionAsked(cause=actions[-1].id, text="Which port?", live=question == "live"))
        if question == "at rest":
            actions.pop()  # answered later, by `end_questions`
        for action in draw(st.permutations(actions)):
            if draw(st.booleans()):
                self.add(*self.note(draw))
            self.add(*self.ended_questions(draw, action.id), self.answer(draw, action))

    def answer(self, draw: st.DrawFn, action: ActionEvent) -> Event:
        about: dict[str, Any] = {"cause": action.id, "tool_name": action.tool_name, "call_id": action.call_id}
        return draw(
            st.sampled_from(
                [
                    ObservationEvent(**about, content=(TextBlock(text=f"found {self.name()} " * 9),)),
                    AgentErrorEvent(**about, error="it broke"),
                    UserRejectObservation(**about, reason="no"),
                ]
            )
        )

    def ended_questions(self, draw: st.DrawFn, action_id: str) -> list[Event]:
        """Return the ends of the questions of an action."""
        outcome: QuestionOutcome = draw(st.sampled_from(["answered", "declined", "withdrawn"]))
        return [
            QuestionAnswered(cause=action_id, question=each.id, outcome=outcome)
            for each in self.state.questions
            if each.cause == action_id
        ]

    def end_questions(self, draw: st.DrawFn) -> None:
        """Answer the calls that wait for a person: the model is not asked before."""
        for action in list(self.state.open_actions.values()):
            self.add(*self.ended_questions(draw, action.event.id), self.answer(draw, action.event))

    def note(self, draw: st.DrawFn) -> list[Event]:
        name = self.name()
        return draw(
            st.sampled_from(
                [
                    [MessageEvent(source="user", message=Message.user(name))],
                    [MessageEvent(source="environment", message=Message.user(name), code="nudge")],
                    [ContextAdded(name=f"file:{name}", text=name, digest=name)],
                    [AgentConfigured(agent={"n": name})],
                    [AgentConfigured(agent={"n": name}, command=name), SystemPromptEvent(prompt=name)],
                    [MessageEvent(source="user", message=Message.user(name), prefix="before", suffix="behind")],
                    [MessageEvent(source="user", message=Message.user(PICTURE), prefix="before", suffix="behind")],
                ]
            )
        )

    def cut(self, draw: st.DrawFn) -> None:
        """Cut what is legal to cut: a random choice, or what a condenser and the repair choose."""
        outline = self.outline()
        way = draw(st.sampled_from(["some", "mask", "window", "repair"]))
        free = [item for item in outline.items if not item.protected]
        try:
            if way == "window":
                _, condensation = _send(Window().condense(outline))
            elif way == "repair":
                condensation = repair(outline)
            elif way == "mask":
                condensation = outline.mask([event for item in free for event in item.observations][-2:])
            else:
                chosen: list[OutlineItem] = draw(st.lists(st.sampled_from(free), max_size=4)) if free else []
                summary = draw(st.none() | st.just(self.name()))
                condensation = outline.forget(chosen, summary=summary)
        except InvalidCondensation:
            return
        if condensation is not None:
            self.add(condensation)


def _send(coroutine: Any) -> tuple[bool, Condensation | None]:
    """Return the result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return True, end.value
    raise AssertionError("it waited")


@st.composite
def histories(draw: st.DrawFn) -> tuple[History, list[tuple[int, list[Message]]]]:
    """A history, and what a request would have held at each of its settled points."""
    history = History()
    history.add(SystemPromptEvent(prompt="P"), MessageEvent(source="user", message=Message.user("begin")))
    points: list[tuple[int, list[Message]]] = []
    settled: list[int] = []
    for _ in range(draw(st.integers(0, 14))):
        step = draw(st.sampled_from(["reply", "reply", "reply", "note", "cut", "cut", "prompt", "words", "rewind"]))
        if step in ("reply", "prompt", "words"):
            history.end_questions(draw)
        if step == "reply":
            history.reply(draw)
        elif step == "note":
            history.add(*history.note(draw))
        elif step == "cut":
            history.cut(draw)
        elif step == "prompt":
            history.add(SystemPromptEvent(prompt=history.name()))
        elif step == "words":
            history.add(
                MessageEvent(source="agent", message=Message.assistant("So.")),
                MessageEvent(source="user", message=Message.user(history.name())),
            )
        elif settled:
            history.add(HeadMoved(to=draw(st.sampled_from(settled))))
            history.add(MessageEvent(source="environment", message=Message.user("rewound"), code="rewound"))
        points.append((history.state.head, list(history.view.messages)))
        if not history.state.open_actions:
            settled.append(history.state.head)
    return history, points


@settings(max_examples=50)
@given(histories())
def test_a_view_that_was_added_to_is_the_one_that_is_built_anew_and_an_earlier_one_can_be_rebuilt(
    made: tuple[History, list[tuple[int, list[Message]]]],
) -> None:
    history, points = made
    assert list(history.view.messages) == list(build_messages(history.state))
    shown = [message for item in history.view.items for message in item.messages]
    assert [*history.view.prompt, *shown] == list(history.view.messages)
    for head, messages in points:
        past = ConversationState("c")
        for event in history.state.events[:head]:
            past.apply(event)
        assert list(build_messages(past)) == messages


@settings(max_examples=50)
@given(histories())
def test_measuring_as_it_grows_is_measuring_all_of_it(made: tuple[History, list[tuple[int, list[Message]]]]) -> None:
    history, _ = made
    outline = history.outline()
    assert [item.view for item in outline.items] == list(history.view.items)
    fresh = Measure().request(history.state, history.view)
    assert list(fresh.estimates) == list(outline.sizes.estimates[: outline.sizes.length])
    assert outline.used >= 0


WIRES: dict[str, Wire] = {
    "openai/gpt-4o": ChatWire(HOSTS["openai"]),
    "mistral/mistral-large-latest": ChatWire(HOSTS["mistral"]),
    "openai/gpt-5": ResponsesWire(HOSTS["openai"]),
    "anthropic/claude-sonnet-4-5": AnthropicWire(LLMSettings(model="anthropic/claude-sonnet-4-5")),
    "gemini/gemini-2.5-pro": GeminiWire(LLMSettings(model="gemini/gemini-2.5-pro"), streamed=True),
}


@settings(max_examples=50)
@given(histories())
def test_providers_accept_it(made: tuple[History, list[tuple[int, list[Message]]]]) -> None:
    _, points = made
    for _, messages in points:
        if messages[-1].role == "assistant":
            continue  # the agent has finished: no request is made of it
        for model, wire in WIRES.items():
            call = Call(LLMSettings(model=model), messages, (), CallContext(), Features(), streamed=True)
            _check(json.loads(wire.body(call)))


def _check(body: dict[str, Any]) -> None:
    """Check what providers refuse requests for: orphans, calls without answers, a first turn of the model, two turns in a row."""
    if "contents" in body:
        turns = body["contents"]
        assert turns[0]["role"] == "user"
        for before, turn in pairwise(turns):
            assert before["role"] == "user" or turn["role"] == "user"
            names = [part["functionCall"]["name"] for part in before["parts"] if "functionCall" in part]
            assert [part["functionResponse"]["name"] for part in turn["parts"] if "functionResponse" in part] == names
    elif "input" in body:
        open_calls: list[str] = []
        assert body["input"][0].get("role") == "user"
        for item in body["input"]:
            if item.get("type") == "function_call":
                open_calls.append(item["call_id"])
            elif item.get("type") == "function_call_output":
                open_calls.remove(item["call_id"])
            elif item.get("role") == "user":
                assert not open_calls
        assert not open_calls
    elif "system" in body:
        turns = body["messages"]
        assert [turn["role"] for turn in turns] == [("user", "assistant")[n % 2] for n in range(len(turns))]
        asked: list[str] = []
        for turn in turns:
            answered = [part["tool_use_id"] for part in turn["content"] if part["type"] == "tool_result"]
            assert answered == asked
            assert all(part["type"] == "tool_result" for part in turn["content"][: len(answered)])
            asked = [part["id"] for part in turn["content"] if part["type"] == "tool_use"]
        assert not asked
    else:
        asked = []
        assert [message["role"] for message in body["messages"][:2]] == ["system", "user"]
        for message in body["messages"][1:]:
            if message["role"] == "tool":
                asked.remove(message["tool_call_id"])
            else:
                assert not asked
                asked = [call["id"] for call in message.get("tool_calls") or ()]
        assert not asked
