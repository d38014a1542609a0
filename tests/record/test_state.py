"""The state as a fold: of any log, any part of it, in any number of sittings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.assessment import SecurityRisk
from agentcore.events import (
    ActionApproved,
    ActionAssessed,
    ActionEvent,
    ActionStarted,
    AgentErrorEvent,
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    ConversationStatus,
    Event,
    Fact,
    Forked,
    HeadMoved,
    InterruptEvent,
    LimitsSet,
    MessageEvent,
    ObservationEvent,
    PauseEvent,
    PolicySet,
    SecretsRegistered,
    StatusChanged,
    SystemPromptEvent,
    TagsSet,
    TitleSet,
    UnknownEvent,
    UsageEvent,
    UserRejectObservation,
    WorkspaceOpened,
    parse_event,
)
from agentcore.messages import Message, TextBlock
from agentcore.record import ConversationState, EventLog, FileStore, MemoryStore, Store, read_log
from agentcore.usage import Limits, Usage
from strategies import groups, logs

IDLE, RUNNING, PAUSED = ConversationStatus.IDLE, ConversationStatus.RUNNING, ConversationStatus.PAUSED
START = datetime(2026, 1, 1, tzinfo=UTC)


def fold(*groups: Event | Sequence[Event], state: ConversationState | None = None) -> ConversationState:
    """Fold groups of events; an event alone is a group of one."""
    state = state or ConversationState("c")
    for group in groups:
        events = list(group) if isinstance(group, Sequence) else [group]
        for event in events:
            numbered = event.model_copy(update={"seq": state.head + 1})
            state.apply(numbered, group_ends=event is events[-1])
    return state


def user(text: str = "go") -> MessageEvent:
    return MessageEvent(source="user", message=Message.user(text))


def agent(text: str = "done") -> MessageEvent:
    return MessageEvent(source="agent", message=Message.assistant(text))


def action(*, call_id: str = "c") -> ActionEvent:
    return ActionEvent(reply_id="r", tool_name="t", call_id=call_id, arguments={"n": 1})


def answer(to: ActionEvent, *, finished: bool = False, **data: str | bool) -> ObservationEvent:
    text = TextBlock(text="ok")
    return ObservationEvent(
        cause=to.id, tool_name="t", call_id=to.call_id, content=(text,), data=dict(data), finished=finished
    )


def fact(update: Fact, at: int = 0) -> ConversationStateUpdateEvent:
    return ConversationStateUpdateEvent(update=update, timestamp=START + timedelta(seconds=at))


def status(value: ConversationStatus, code: str | None = None, at: int = 0) -> ConversationStateUpdateEvent:
    return fact(StatusChanged(status=value, code=code), at)


@given(logs())
def test_the_fold_of_every_prefix_is_the_state_that_was_live_then(log: list[list[Event]]) -> None:
    live = ConversationState("c")
    snapshots = [live.snapshot()]
    for group in log:
        fold(group, state=live)
        snapshots.append(live.snapshot())
    for length, snapshot in enumerate(snapshots):
        assert fold(*log[:length]).snapshot() == snapshot


@given(logs())
def test_events_with_their_groups_sent_as_json_fold_to_the_same_state(log: list[list[Event]]) -> None:
    live = fold(*log)
    sent = [(event.model_dump_json(), live.group_of(event.seq)) for event in live.events]
    follower = ConversationState("c")
    for text, group in sent:
        event = parse_event(text)
        follower.apply(event, group_ends=event.seq == group)
    assert follower.snapshot() == live.snapshot()
    assert [group for _, group in sent] == [each[-1] for each in groups_of(log) for _ in each]


def groups_of(log: list[list[Event]]) -> list[list[int]]:
    """Return the seqs of each group."""
    seqs = iter(range(1, 1 + sum(map(len, log))))
    return [[next(seqs) for _ in group] for group in log]


def test_an_event_that_is_not_there_or_whose_group_is_not_complete_has_no_group() -> None:
    state = fold([user(), agent()], user())
    assert [state.group_of(seq) for seq in (1, 2, 3)] == [2, 2, 3]
    state.apply(user().model_copy(update={"seq": 4}), group_ends=False)
    for seq in (-1, 0, 4, 5):
        with pytest.raises(ValueError, match=f"seq={seq}"):
            state.group_of(seq)


@given(logs())
def test_the_branch_part_of_the_state_is_the_fold_of_the_branch_alone(log: list[list[Event]]) -> None:
    state = fold(*log)
    alone = ConversationState("c")
    for event in state.branch_events():
        if not isinstance(event, HeadMoved):
            alone.apply(event.model_copy(update={"seq": alone.head + 1}))
    ids = [event.id for event in state.shown]
    assert [event.id for event in alone.shown] == ids
    assert list(alone.open_actions) == list(state.open_actions)
    assert [event.id for event in alone.pending] == [event.id for event in state.pending]
    assert (alone.prompt and alone.prompt.id) == (state.prompt and state.prompt.id)
    assert alone.answer == state.answer


@given(logs())
def test_a_settled_point_is_one_that_the_head_can_move_to_with_nothing_open(log: list[list[Event]]) -> None:
    state = fold(*log)
    ends = {0}
    for group in log:
        ends.add(max(ends) + len(group))
    assert state.is_settled(0)
    assert not state.is_settled(-1)
    assert not state.is_settled(state.head + 1)
    for seq in range(1, state.head + 1):
        moved = fold(*log, HeadMoved(to=seq))
        assert state.is_settled(seq) == (seq in ends and not moved.open_actions)
        if state.is_settled(seq):
            assert moved.is_settled(moved.head)


@given(logs(), st.integers(-3, 90))
def test_the_nearest_settled_point_is_settled_and_none_is_nearer(log: list[list[Event]], seq: int) -> None:
    state = fold(*log)
    nearest = state.nearest_settled(seq)
    assert state.is_settled(nearest)
    for other in range(state.head + 1):
        if state.is_settled(other):
            assert (abs(nearest - seq), nearest) <= (abs(other - seq), other)


@given(logs())
def test_what_is_of_the_whole_log_is_not_rewound(log: list[list[Event]]) -> None:
    state = fold(*log)
    moved = fold(*log, HeadMoved(to=0))
    for name in (
        "usage",
        "limits",
        "policy",
        "secret_names",
        "title",
        "tags",
        "agent",
        "workspace",
        "forked_from",
        "read_only",
    ):
        assert getattr(moved, name) == getattr(state, name)
    assert dict(moved.usage_by_model) == dict(state.usage_by_model)
    assert (list(moved.shown), dict(moved.open_actions)) == ([], {})


async def reloaded(store: Store, log: list[list[Event]]) -> None:
    live = await EventLog.create(store, "c")
    for group in log:
        await live.append([group])
    await live.close()
    state = await read_log(store, "c")
    assert state.snapshot() == live.state.snapshot()
    if state.read_only is None:
        again = await EventLog.open(store, "c")
        assert again.state.snapshot() == live.state.snapshot()
        await again.close()


@given(st.one_of(logs(), groups))
def test_a_log_that_is_read_again_is_the_one_that_was_written(log: list[list[Event]]) -> None:
    anyio.run(reloaded, MemoryStore(), log)


@given(logs(max_groups=8))
def test_a_log_on_disk_that_is_read_again_is_the_one_that_was_written(
    tmp_path_factory: pytest.TempPathFactory, log: list[list[Event]]
) -> None:
    folder: Path = tmp_path_factory.mktemp("logs")
    anyio.run(reloaded, FileStore(folder, durability="flush"), log)


def test_a_new_conversation_is_idle_and_empty() -> None:
    state = ConversationState("c")
    assert (state.status, state.head, state.run.seq, state.run.steps, state.view_epoch) == (IDLE, 0, 0, 0, 0)
    assert (list(state.events), list(state.shown), dict(state.open_actions), state.pending) == ([], [], {}, ())
    assert (state.prompt, state.answer, state.title, state.policy, state.last_user_seq) == (None, None, None, None, 0)
    assert (state.usage, state.limits, state.secret_names, dict(state.tags)) == (Usage(), Limits(), (), {})


def test_an_action_is_open_until_its_first_answer() -> None:
    one, two = action(), action()
    assert one.call_id == two.call_id, "some providers use an id twice"
    state = fold(user(), [one, two])
    assert list(state.open_actions) == [one.id, two.id]
    assert [state.is_settled(seq) for seq in range(4)] == [True, True, False, False]
    fold(answer(two), state=state)
    assert list(state.open_actions) == [one.id]
    fold(UserRejectObservation(cause=one.id, tool_name="t", call_id="c", reason="no"), state=state)
    assert dict(state.open_actions) == {}
    assert state.is_settled(state.head)
    fold(AgentErrorEvent(cause=one.id, tool_name="t", call_id="c", error="late"), answer(action()), state=state)
    assert dict(state.open_actions) == {}


def test_an_action_waits_until_somebody_says_yes_or_it_starts() -> None:
    asked, free = action(), action()
    state = fold([asked, free])
    assert state.pending == ()
    assessed = ActionAssessed(cause=asked.id, verdict="ask", risk=SecurityRisk.HIGH)
    fold(
        assessed,
        ActionAssessed(cause=free.id, verdict="allow"),
        ActionAssessed(cause="ev_no", verdict="ask"),
        state=state,
    )
    assert [open_.risk for open_ in state.open_actions.values()] == [SecurityRisk.HIGH, SecurityRisk.UNKNOWN]
    assert [event.id for event in state.pending] == [asked.id]
    assert state.open_actions[asked.id].arguments == {"n": 1}
    fold(ActionApproved(cause=asked.id, arguments={"n": 2}), state=state)
    assert state.pending == ()
    assert state.open_actions[asked.id].arguments == {"n": 2}
    fold(
        ActionStarted(cause=asked.id), ActionStarted(cause="ev_nobody"), ActionApproved(cause="ev_nobody"), state=state
    )
    assert [open_.started for open_ in state.open_actions.values()] == [True, False]


def test_an_action_starts_with_what_a_check_made_of_its_arguments_unless_a_person_changed_them() -> None:
    changed = action()
    state = fold([changed, ActionAssessed(cause=changed.id, verdict="ask", arguments={"n": 3})])
    assert state.open_actions[changed.id].arguments == {"n": 3}
    fold(ActionApproved(cause=changed.id), state=state)
    assert state.open_actions[changed.id].arguments == {"n": 3}
    fold(ActionApproved(cause=changed.id, arguments={"n": 4}), state=state)
    assert state.open_actions[changed.id].arguments == {"n": 4}


def test_the_workspace_is_the_newest_one_whatever_the_branch() -> None:
    state = fold(user(), WorkspaceOpened(workspace="local", spec={"root": "/a"}), HeadMoved(to=1))
    assert state.workspace is not None
    assert state.workspace.spec == {"root": "/a"}
    fold(WorkspaceOpened(workspace="box"), state=state)
    assert state.workspace.workspace == "box"


def test_a_rewind_takes_back_what_the_branch_says() -> None:
    first, second = SystemPromptEvent(prompt="one"), SystemPromptEvent(prompt="two")
    state = fold(first, user("a"), agent("b"), second, user("c"), [action()])
    assert (state.prompt and state.prompt.prompt, state.last_user_seq, len(state.open_actions)) == ("two", 5, 1)
    fold(HeadMoved(to=3), state=state)
    assert (state.prompt and state.prompt.prompt, state.last_user_seq, len(state.open_actions)) == ("one", 2, 0)
    assert (state.answer, state.status, state.view_epoch) == ("b", IDLE, 1)
    fold(HeadMoved(to=5), state=state)
    assert (state.prompt and state.prompt.prompt, state.last_user_seq, state.view_epoch) == ("two", 5, 2)
    assert [event.seq for event in state.branch_events()] == [1, 2, 3, 4, 5, 8]
    assert [event.seq for event in state.branch_events(3)] == [1, 2, 3]
    assert state.head == len(state.events) == 8


def test_the_answer_is_what_was_said_last_or_finished_with() -> None:
    call = action()
    assert fold(user(), agent("first"), agent("last")).answer == "last"
    assert fold(agent("words"), [call], answer(call)).answer == "words"
    assert fold(agent("words"), [call], answer(call, finished=True, message="the end")).answer == "the end"
    assert fold(agent("words"), [call], answer(call, finished=True)).answer == "ok"


def test_usage_adds_up_by_model_over_branches_and_side_questions() -> None:
    one = Usage(requests=1, input_tokens=10, output_tokens=3, known_cost=Decimal("0.1"))
    two = Usage(requests=1, input_tokens=5, unpriced_requests=1)
    state = fold(
        status(RUNNING, "run"),
        UsageEvent(model="a", usage=one),
        UsageEvent(model="b", usage=two),
        HeadMoved(to=0),
        UsageEvent(model="a", usage=one, purpose="ask"),
    )
    assert state.usage == one + two + one
    assert (state.usage.total_tokens, state.usage.cost, state.usage.known_cost) == (31, None, Decimal("0.2"))
    assert dict(state.usage_by_model) == {"a": one + one, "b": two}
    assert (state.run.seq, state.run.steps) == (1, 2), "a side question is no step"
    fold(status(IDLE), status(RUNNING, "run"), state=state)
    assert (state.run.seq, state.run.steps) == (7, 0)
    fold(UsageEvent(model="a", usage=one), status(ConversationStatus.WAITING_FOR_CONFIRMATION), state=state)
    fold(status(RUNNING), UsageEvent(model="a", usage=one), state=state)
    assert (state.run.seq, state.run.steps) == (7, 2), "going on after an approval is the same run"


def test_time_is_counted_while_it_works_and_not_while_it_waits() -> None:
    state = fold(status(RUNNING, "run", 10))
    assert (state.working_since, state.worked_seconds) == (START + timedelta(seconds=10), 0)
    fold(status(ConversationStatus.WAITING_FOR_CONFIRMATION, at=14), status(RUNNING, at=100), state=state)
    assert (state.working_since, state.worked_seconds) == (START + timedelta(seconds=100), 4)
    fold(status(ConversationStatus.FINISHED, at=103), state=state)
    assert (state.working_since, state.worked_seconds) == (None, 7)
    fold(status(IDLE, at=900), status(RUNNING, "run", 1000), status(IDLE, at=990), state=state)
    assert state.worked_seconds == 7, "a clock that was set back takes nothing away"


def test_what_a_crash_cut_off_ended_with_its_last_event() -> None:
    said = agent().model_copy(update={"timestamp": START + timedelta(seconds=5)})
    state = fold(status(RUNNING, "run", 0), said, status(PAUSED, "recovered", 5000))
    assert (state.worked_seconds, state.status, state.status_code) == (5, PAUSED, "recovered")


def test_facts_replace_or_add_as_they_say() -> None:
    state = fold(
        fact(TitleSet(title="one")),
        fact(TitleSet(title="two")),
        fact(TagsSet(tags={"a": "1", "b": "2"})),
        fact(TagsSet(tags={"b": "3"})),
        fact(LimitsSet(limits=Limits(steps=7))),
        fact(PolicySet(policy={"name": "always"})),
        fact(SecretsRegistered(names=("A", "B"))),
        fact(SecretsRegistered(names=("B", "C"))),
        fact(Forked(conversation_id="other", at=3)),
    )
    assert (state.title, dict(state.tags), state.limits.steps) == ("two", {"b": "3"}, 7)
    assert (state.policy, state.secret_names) == ({"name": "always"}, ("A", "B", "C"))
    assert state.forked_from == Forked(conversation_id="other", at=3)


@pytest.mark.parametrize("before", [each for each in ConversationStatus if each is not RUNNING])
def test_an_interrupt_that_interrupts_nothing_changes_nothing(before: ConversationStatus) -> None:
    state = fold(status(before, "why"))
    fold(InterruptEvent(reason="enough"), state=state)
    if before is ConversationStatus.WAITING_FOR_CONFIRMATION:
        assert (state.status, state.status_code, state.status_detail) == (PAUSED, "interrupt", "enough")
    else:
        assert (state.status, state.status_code) == (before, "why")


def test_a_pause_while_it_runs_is_a_request_until_the_step_has_ended() -> None:
    state = fold(status(RUNNING, "run"), PauseEvent())
    assert (state.status, state.pause_requested) == (RUNNING, True)
    fold(status(PAUSED), state=state)
    assert (state.status, state.pause_requested) == (PAUSED, False)
    assert fold(PauseEvent()).status is PAUSED


def test_an_error_is_a_status_with_its_code_until_somebody_speaks() -> None:
    state = fold(status(RUNNING, "run"), ConversationErrorEvent(code="cost", detail="It cost too much."))
    assert (state.status, state.status_code, state.status_detail) == (
        ConversationStatus.ERROR,
        "cost",
        "It cost too much.",
    )
    fold(user(), state=state)
    assert (state.status, state.status_code, state.status_detail) == (IDLE, None, None)


def test_what_changes_nothing() -> None:
    assert fold(status(ConversationStatus.FINISHED), agent()).status is ConversationStatus.FINISHED
    for to in (3, 4, 99):
        state = fold(user("a"), user("b"), HeadMoved(to=to), user("c"))
        assert [event.seq for event in state.shown] == [1, 2, 4], "a head that is moved forward stays where it is"
    assert fold(UnknownEvent(kind="dream")).read_only is None
    assert "'dream'" in str(fold(UnknownEvent(kind="dream", critical=True)).read_only)


def test_a_snapshot_does_not_change_with_the_state() -> None:
    state = fold(user(), UsageEvent(model="a", usage=Usage(requests=1)), fact(TagsSet(tags={"a": "1"})), [action()])
    before = state.snapshot()
    again = state.snapshot()
    fold(UsageEvent(model="a", usage=Usage(requests=1)), HeadMoved(to=1), fact(TagsSet(tags={})), state=state)
    assert before == again
    assert state.snapshot() != before


def test_an_event_out_of_turn_is_a_mistake_of_the_owner() -> None:
    with pytest.raises(AssertionError):
        ConversationState("c").apply(user().model_copy(update={"seq": 2}))
