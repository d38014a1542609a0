from __future__ import annotations

from collections.abc import Callable, Iterable

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
from agentcore.stuck import STILL_RUNNING, StuckDetector, StuckThresholds, Verdict

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


def test_an_answer_that_changes_is_no_repetition() -> None:
    assert after(*(reply((LS, saw(f"{number} files"))) for number in range(10))).verdict() is None


def test_an_answer_that_turned_into_an_error_is_no_repetition() -> None:
    same = [reply((LS, saw("x"))) for _ in range(3)]

    assert after(*same, reply((LS, saw("x", is_error=True)))).verdict() is None


def test_polling_a_command_that_runs_is_never_stuck() -> None:
    poll: Call = ("terminal", {"wait": True})

    assert after(*(reply((poll, saw("still compiling", running=True))) for _ in range(50))).verdict() is None
    between = [reply((poll, saw("...", running=True))) + reply((LS, saw("a b"))) for _ in range(20)]
    assert after(*between).verdict() is None


def test_data_other_than_running_makes_no_difference() -> None:
    answers = [
        saw("same words").model_copy(update={"data": {"took": number, STILL_RUNNING: False}}) for number in range(4)
    ]

    assert code_of(after(*(reply((LS, answer)) for answer in answers))) == "repeated_action"


def test_equal_calls_in_one_reply_are_no_loop_and_equal_replies_are() -> None:
    thrice = [((LS), saw("a b"))] * 3
    assert after(reply(*thrice), reply((LS, saw("a b")))).verdict() is None

    two_at_once = [(LS, saw("a b")), (CAT, saw("notes"))]
    assert code_of(after(*(reply(*two_at_once) for _ in range(4)))) == "repeated_action"


def test_other_arguments_break_a_row() -> None:
    same = [reply((LS, saw("x"))) for _ in range(3)]

    assert after(*same, reply((CAT, saw("x"))), *same).verdict() is None


def test_being_refused_the_same_thing_again_and_again_is_stuck() -> None:
    no = UserRejectObservation(tool_name="?", call_id="c", reason="not in production")

    assert code_of(after(*(reply((LS, no)) for _ in range(4)))) == "repeated_action"
    other = [reply((LS, no.model_copy(update={"reason": f"no, {number}"}))) for number in range(4)]
    assert after(*other).verdict() is None


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


def test_a_reply_of_which_one_call_works_is_no_row_of_errors() -> None:
    rounds = [reply((LS, failed("no")), (CAT, saw(f"line {number}"))) for number in range(6)]

    assert after(*rounds).verdict() is None


def test_three_messages_without_an_action_are_stuck() -> None:
    assert after(user("go"), agent("a"), agent("b")).verdict() is None
    assert code_of(after(user("go"), agent("a"), agent("b"), agent("c"))) == "monologue"
    assert after(agent("a"), agent("b"), *reply((LS, saw("x"))), agent("c")).verdict() is None


def test_what_the_environment_says_does_not_end_a_monologue() -> None:
    hook = MessageEvent(source="environment", message=Message.user("not yet"), code="stop_hook")

    assert code_of(after(agent("a"), hook, agent("b"), hook, agent("c"))) == "monologue"


def test_going_to_and_fro_six_times_is_stuck() -> None:
    there, back = reply((LS, saw("a b"))), reply((CAT, saw("notes")))

    assert after(there, back, there, back, there).verdict() is None
    verdict = after(*(reply((LS, saw("a b"))) + reply((CAT, saw("notes"))) for _ in range(3))).verdict()
    assert verdict is not None
    assert verdict.code == "alternation"


def test_an_answer_that_flickers_is_no_alternation() -> None:
    spinner = [reply((LS, saw("|-"[number % 2]))) for number in range(12)]

    assert after(*spinner).verdict() is None


def test_condensing_without_a_reply_in_between_is_stuck() -> None:
    turn: list[Event] = [CondensationRequest(), Condensation(forgotten=("ev_1",))]

    assert after(*[turn] * 3).verdict() is None
    assert code_of(after(*[turn] * 4)) == "context_window"
    assert after(*[turn, reply((LS, saw("x")))] * 4).verdict() is None
    too_large = ConversationErrorEvent(code="ContextWindowExceeded", detail="too large")
    assert code_of(after(*[too_large] * 4)) == "context_window"
    assert after(*[ConversationErrorEvent(code="ModelTimeout", detail="slow")] * 9).verdict() is None


def test_a_message_of_the_user_starts_afresh() -> None:
    rounds = [reply((LS, saw("a b"))) for _ in range(3)]

    assert after(*rounds, user("try again"), *rounds).verdict() is None
    assert after(agent("a"), agent("b"), user("well?"), agent("c")).verdict() is None


def test_an_answer_to_what_was_asked_before_the_user_spoke_counts_for_nothing() -> None:
    action, answer = reply((LS, failed("stopped")))
    rounds = [reply((LS, failed("no"))) for _ in range(2)]

    assert after(action, user("wait"), answer, *rounds).verdict() is None


def test_who_runs_a_stuck_conversation_on_gives_it_another_chance() -> None:
    rounds = [reply((LS, saw("a b"))) for _ in range(4)]
    stuck = ConversationStateUpdateEvent(update=StatusChanged(status=ConversationStatus.STUCK, code="repeated_action"))

    assert after(*rounds, stuck, *rounds[:3]).verdict() is None
    assert code_of(after(*rounds, stuck, *rounds)) == "repeated_action"


def test_nothing_is_said_while_actions_wait_for_answers() -> None:
    rounds = [reply((LS, saw("a b"))) for _ in range(4)]
    action, _ = reply((LS, saw("a b")))

    assert after(*rounds, action).verdict() is None


def test_every_scenario_can_be_turned_off_or_made_stricter() -> None:
    off = StuckThresholds(
        repeated_action=None, repeated_error=None, monologue=None, alternation=None, context_window=None
    )
    everything: list[Event] = [
        *(event for _ in range(9) for event in reply((LS, saw("x")))),
        *(event for _ in range(9) for event in reply((LS, failed("x")))),
        *(event for _ in range(9) for event in (*reply((LS, saw("x"))), *reply((CAT, saw("y"))))),
        *[agent("x")] * 9,
        *[Condensation(forgotten=())] * 9,
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
        [CondensationRequest(), Condensation(forgotten=())],
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
    for kind in (Condensation, CondensationRequest, ConversationErrorEvent):
        if sum(isinstance(event, kind) for event in trailing) >= 4:
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
    return object() if answer.data.get("running") is True else (answer.text, "seen")


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
