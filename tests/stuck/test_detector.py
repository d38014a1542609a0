from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError

from agentcore.events import (
    ActionEvent,
    AgentErrorEvent,
    Condensation,
    CondensationRequest,
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    ConversationStatus,
    Event,
    MessageEvent,
    ObservationEvent,
    StatusChanged,
    UserRejectObservation,
)
from agentcore.ids import new_id
from agentcore.messages import Message, TextBlock
from agentcore.stuck import STILL_RUNNING, WAITS_FOR_INPUT, StuckDetector, StuckThresholds, Verdict

Answer = ObservationEvent | AgentErrorEvent | UserRejectObservation
Call = tuple[str, dict[str, JsonValue]]

LS: Call = ("terminal", {"command": "ls"})
CAT: Call = ("terminal", {"command": "cat notes"})


def saw(text: str, *, running: bool = False, is_error: bool = False) -> ObservationEvent:
    data: dict[str, JsonValue] = {STILL_RUNNING: True} if running else {"exit_code": 0}
    return ObservationEvent(tool_name="?", call_id="c", content=(TextBlock(text=text),), data=data, is_error=is_error)


def failed(error: str) -> AgentErrorEvent:
    return AgentErrorEvent(tool_name="?", call_id="c", error=error)


def reply(*pairs: tuple[Call, Answer], thought: str = "") -> list[Event]:
    """A reply that asks for all calls at once, and its answers, the last one first."""
    reply_id = new_id("reply")
    actions = [
        ActionEvent(
            reply_id=reply_id,
            tool_name=tool,
            arguments=arguments,
            call_id=new_id("call"),
            before=(TextBlock(text=thought),),
        )
        for (tool, arguments), _ in pairs
    ]
    answers = [
        answer.model_copy(update={"cause": action.id, "id": new_id("ev"), "tool_name": action.tool_name})
        for action, (_, answer) in zip(actions, pairs, strict=True)
    ]
    return [*actions, *reversed(answers)]


def user(text: str) -> MessageEvent:
    return MessageEvent(source="user", message=Message.user(text))


def agent(text: str) -> MessageEvent:
    return MessageEvent(source="agent", message=Message.assistant(text), reply_id="r")


def nudged(verdict: Verdict) -> MessageEvent:
    assert verdict.nudge is not None
    return MessageEvent(source="environment", message=Message.user(verdict.nudge), code=verdict.code)


def after(*groups: Event | list[Event], thresholds: StuckThresholds | None = None) -> StuckDetector:
    detector = StuckDetector(thresholds)
    for group in groups:
        for event in group if isinstance(group, list) else [group]:
            detector.observe(event)
    return detector


def code_of(detector: StuckDetector) -> str | None:
    verdict = detector.verdict()
    return verdict.code if verdict else None


def test_four_equal_actions_with_equal_answers_are_stuck() -> None:
    rounds = [reply((LS, saw("a b")), thought=f"thinking of {number}") for number in range(4)]

    assert after(user("go"), *rounds[:3]).verdict() is None
    assert after(user("go"), *rounds).verdict() == Verdict(
        code="repeated_action",
        detail="The agent called 'terminal' 4 times in a row with the same arguments and the same result.",
        action="stuck",
    )


X = saw("x")


def same(number: int, call: Call = LS, answer: Answer = X) -> list[Event]:
    """The same call with the same answer, again and again."""
    return [event for _ in range(number) for event in reply((call, answer))]


def data(number: int) -> Answer:
    return saw("x").model_copy(update={"data": {"took": number, STILL_RUNNING: False}})


def no(reason: str) -> UserRejectObservation:
    return UserRejectObservation(tool_name="?", call_id="c", reason=reason)


POLL: Call = ("terminal", {"wait": True})
RUNS = saw("still compiling", running=True)
ASKS = saw("name?").model_copy(update={"data": {STILL_RUNNING: True, WAITS_FOR_INPUT: True}})
FRO = [*same(1), *same(1, CAT)]
STUCK = ConversationStateUpdateEvent(update=StatusChanged(status=ConversationStatus.STUCK, code="repeated_action"))
HOOK = MessageEvent(source="environment", message=Message.user("not yet"), code="stop_hook")
CONDENSED: list[Event] = [CondensationRequest(), Condensation(forgotten=("ev_1",), reason="hard")]
TOO_LARGE = ConversationErrorEvent(code="ContextWindowExceeded", detail="too large")
SLOW = ConversationErrorEvent(code="ModelTimeout", detail="slow")
BEFORE = reply((LS, failed("stopped")))

HISTORIES: dict[str, tuple[Sequence[Event | list[Event]], str | None]] = {
    "an answer that changes": ([reply((LS, saw(f"{number} files"))) for number in range(10)], None),
    "an answer that turned into an error": ([same(3), reply((LS, saw("x", is_error=True)))], None),
    "polling a command that runs": ([same(50, POLL, RUNS)], None),
    "polling a command that waits for input": ([same(4, POLL, ASKS)], "repeated_action"),
    "polling, with other calls between": ([same(1, POLL, RUNS) + same(1) for _ in range(20)], None),
    "data other than running": ([reply((LS, data(number))) for number in range(4)], "repeated_action"),
    "equal calls in one reply": ([reply(*[(LS, saw("x"))] * 3), same(1)], None),
    "equal replies of two calls": ([reply((LS, saw("a b")), (CAT, saw("notes"))) for _ in range(4)], "repeated_action"),
    "other arguments between": ([same(3), same(1, CAT), same(3)], None),
    "being refused the same thing": ([same(4, LS, no("not in production"))], "repeated_action"),
    "being refused for other reasons": ([same(1, LS, no(f"no, {number}")) for number in range(4)], None),
    "a call that works beside one that fails": (
        [reply((LS, failed("no")), (CAT, saw(f"line {number}"))) for number in range(6)],
        None,
    ),
    "two messages": ([user("go"), agent("a"), agent("b")], None),
    "three messages without an action": ([user("go"), agent("a"), agent("b"), agent("c")], "monologue"),
    "an action between messages": ([agent("a"), agent("b"), same(1), agent("c")], None),
    "what the environment says between": ([agent("a"), HOOK, agent("b"), HOOK, agent("c")], "monologue"),
    "going to and fro five times": ([FRO, FRO, same(1)], None),
    "going to and fro six times": ([[*same(1), *same(1, CAT)] for _ in range(3)], "alternation"),
    "an answer that flickers": ([same(1, LS, saw("|-"[number % 2])) for number in range(12)], None),
    "condensing once": ([CONDENSED], None),
    "condensing twice": ([CONDENSED] * 2, "context_window"),
    "condensing as often as somebody asks for it": ([Condensation(forgotten=("ev_1",), reason="asked")] * 4, None),
    "condensing, with calls between": ([[*CONDENSED, *same(1, LS, saw(f"{number}"))] for number in range(4)], None),
    "being too large twice": ([TOO_LARGE] * 2, "context_window"),
    "another error": ([SLOW] * 9, None),
    "the user speaking between calls": ([same(3), user("try again"), same(3)], None),
    "the user speaking between messages": ([agent("a"), agent("b"), user("well?"), agent("c")], None),
    "an answer to what was asked before the user spoke": (
        [BEFORE[0], user("wait"), BEFORE[1], same(2, LS, failed("no"))],
        None,
    ),
    "running on after being stuck": ([same(4), STUCK, same(3)], None),
    "being stuck again": ([same(4), STUCK, same(4)], "repeated_action"),
    "an action that waits for its answer": ([same(4), reply((LS, saw("x")))[0]], None),
}


@pytest.mark.parametrize(("history", "code"), HISTORIES.values(), ids=HISTORIES)
def test_a_history_is_stuck_or_not(history: Sequence[Event | list[Event]], code: str | None) -> None:
    assert code_of(after(*history)) == code


def test_the_third_error_is_told_to_the_model_once_and_the_fourth_ends_it() -> None:
    rounds = [reply((LS, failed(f"no such folder {number}"))) for number in range(4)]
    detector = after(user("go"), *rounds[:2])
    assert detector.verdict() is None

    for event in rounds[2]:
        detector.observe(event)
    nudge = detector.verdict()
    assert nudge is not None
    assert (nudge.code, nudge.action) == ("repeated_error", "nudge")
    assert nudge.nudge is not None
    for part in ("'terminal'", "3 times", "no such folder 2"):
        assert part in nudge.nudge
    assert detector.verdict() == nudge, "until it is written down, it is still to be sent"

    detector.observe(nudged(nudge))
    assert detector.verdict() is None
    detector.observe(agent("hm"))
    assert detector.verdict() is None, "the row is as it was: nothing new to say"

    for event in rounds[3]:
        detector.observe(event)
    end = detector.verdict()
    assert end is not None
    assert (end.code, end.action, end.nudge) == ("repeated_error", "stuck", None)
    assert "no such folder 3" in end.detail


def test_a_new_row_of_errors_is_a_new_nudge() -> None:
    row = [reply((LS, failed("no"))) for _ in range(3)]
    detector = after(*row)
    first = detector.verdict()
    assert first is not None

    for event in (nudged(first), *reply((CAT, saw("notes"))), *row[0], *row[1], *row[2]):
        detector.observe(event)

    second = detector.verdict()
    assert second is not None
    assert second.action == "nudge"


def test_a_long_error_is_shortened_in_the_nudge() -> None:
    verdict = after(*(reply((LS, failed("e" * 10_000))) for _ in range(3))).verdict()

    assert verdict is not None
    assert verdict.nudge is not None
    assert len(verdict.nudge) < 1_000


def test_every_scenario_can_be_turned_off_or_made_stricter() -> None:
    off = StuckThresholds(
        repeated_action=None, repeated_error=None, monologue=None, alternation=None, context_window=None
    )
    everything: list[Event] = [
        *(event for _ in range(9) for event in reply((LS, saw("x")))),
        *(event for _ in range(9) for event in reply((LS, failed("x")))),
        *(event for _ in range(9) for event in (*reply((LS, saw("x"))), *reply((CAT, saw("y"))))),
        *[agent("x")] * 9,
        *[Condensation(forgotten=("ev_1",), reason="hard")] * 9,
    ]
    detector = StuckDetector(off)
    for event in everything:
        detector.observe(event)
        assert detector.verdict() is None

    strict = StuckThresholds(repeated_action=2)
    assert code_of(after(reply((LS, saw("x"))), reply((LS, saw("x"))), thresholds=strict)) == "repeated_action"
    only_actions = StuckThresholds(repeated_error=None)
    assert code_of(after(*(reply((LS, failed("x"))) for _ in range(4)), thresholds=only_actions)) == "repeated_action"
    with pytest.raises(ValidationError):
        StuckThresholds(repeated_action=1)


# -- Against the definition, written out over the whole list of events -------------------------------------------------

calls = st.sampled_from([LS, CAT])
answers = st.sampled_from([saw("a"), saw("b"), saw("a", running=True), failed("e"), failed("f")])
replies = st.lists(st.tuples(calls, answers), min_size=1, max_size=2).map(lambda pairs: reply(*pairs))
others = st.sampled_from(
    [
        [agent("so")],
        [user("go on")],
        [CondensationRequest(), Condensation(forgotten=("ev_1",), reason="hard")],
        [ConversationErrorEvent(code="ContextWindowExceeded", detail="")],
        [MessageEvent(source="environment", message=Message.user("hm"), code="empty_reply")],
    ]
)
# Mostly one reply again and again: what comes out of chance alone is hardly ever a loop.
moves = st.lists(
    st.one_of(
        replies.map(lambda events: [events]),
        st.tuples(calls, answers, st.integers(1, 5)).map(lambda row: [reply((row[0], row[1])) for _ in range(row[2])]),
        st.tuples(answers, answers, st.integers(1, 4)).map(
            lambda row: [reply(pair) for _ in range(row[2]) for pair in ((LS, row[0]), (CAT, row[1]))]
        ),
        st.tuples(others, st.integers(1, 4)).map(lambda row: [list(row[0]) for _ in range(row[1])]),
    ),
    max_size=6,
).map(lambda rows: [group for row in rows for group in row])


@given(groups=moves)
def test_what_is_counted_on_the_way_is_what_the_whole_history_says(groups: list[list[Event]]) -> None:
    live = StuckDetector()
    history: list[Event] = []
    for group in groups:
        for event in group:
            live.observe(event)
            history.append(event)
        verdict = live.verdict()
        said = (verdict.code, verdict.action) if verdict else None

        assert after(history).verdict() == verdict, "replayed"
        assert said == by_definition(history)

        if verdict and verdict.nudge:
            live.observe(nudged(verdict))
            history.append(nudged(verdict))
            assert live.verdict() == after(history).verdict()
            assert by_definition(history) is None

    live.reset()
    for event in history:
        live.observe(event)
    assert live.verdict() == after(history).verdict()


def by_definition(history: list[Event]) -> tuple[str, str] | None:
    since = max((at for at, event in enumerate(history) if event.source == "user"), default=-1)
    events = history[since + 1 :]

    trailing = list(_until(reversed(events), lambda event: isinstance(event, ActionEvent) or is_agent(event)))
    for kind in (Condensation, ConversationErrorEvent):
        if sum(isinstance(event, kind) for event in trailing) >= 2:
            return ("context_window", "stuck")

    said = list(_until(reversed(events), lambda event: isinstance(event, ActionEvent)))
    if sum(is_agent(event) for event in said) >= 3:
        return ("monologue", "stuck")

    actions = [event for event in events if isinstance(event, ActionEvent)]
    rounds = [
        [action for action in actions if action.reply_id == one]
        for one in dict.fromkeys(action.reply_id for action in actions)
    ]
    asked = [[(action.tool_name, action.arguments) for action in one] for one in rounds]
    got = [[next(event for event in events if event.cause == action.id) for action in one] for one in rounds]
    shown = [[shown_of(answer) for answer in answers] for answers in got]
    both = list(zip(asked, shown, strict=True))

    row = 0
    for asks, answers in zip(reversed(asked), reversed(got), strict=True):
        if asks != asked[-1] or not all(isinstance(answer, AgentErrorEvent) for answer in answers):
            break
        row += 1
    if row > 3:
        return ("repeated_error", "stuck")
    if row == 3 and not any(isinstance(event, MessageEvent) and event.code == "repeated_error" for event in said):
        return ("repeated_error", "nudge")
    if len(both) >= 4 and all(one == both[-1] for one in both[-4:]):
        return ("repeated_action", "stuck")
    if len(both) >= 6 and asked[-1] != asked[-2] and both[-6:] == both[-2:] * 3:
        return ("alternation", "stuck")
    return None


def is_agent(event: Event) -> bool:
    return isinstance(event, MessageEvent) and event.source == "agent"


def shown_of(answer: Event) -> object:
    if isinstance(answer, AgentErrorEvent):
        return answer.error
    assert isinstance(answer, ObservationEvent)
    runs = answer.data.get("running") is True and answer.data.get("waits_for_input") is not True
    return object() if runs else (answer.text, "seen")


def _until(events: Iterable[Event], ends: Callable[[Event], bool]) -> Iterable[Event]:
    for event in events:
        if ends(event):
            return
        yield event


def test_a_detector_keeps_no_more_than_it_compares() -> None:
    detector = StuckDetector()
    sizes: list[int] = []
    for number in range(200):
        for event in reply((LS, saw(str(number)))):
            detector.observe(event)
        sizes.append(len(detector._rounds))  # pyright: ignore[reportPrivateUsage]

    assert max(sizes) == 7
