"""What commands come to, as a property: any commands in any order over logs of any kind."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from agentcore import commands as c
from agentcore.commands import Command
from agentcore.conversation.decide import decide
from agentcore.errors import ConversationError
from agentcore.events import ConversationStatus as Status
from agentcore.events import Event
from agentcore.messages import Message
from agentcore.record import ConversationState
from agentcore.usage import Limits
from strategies import logs

ALLOWED: dict[str, set[tuple[Status, Status]]] = {
    "send": {(Status.FINISHED, Status.IDLE), (Status.STUCK, Status.IDLE), (Status.ERROR, Status.IDLE)},
    "run": {(status, Status.RUNNING) for status in Status if status is not Status.RUNNING}
    | {(Status.PAUSED, Status.WAITING_FOR_CONFIRMATION)},
    "pause": {(Status.IDLE, Status.PAUSED)},
    "interrupt": {(Status.WAITING_FOR_CONFIRMATION, Status.PAUSED)},
    "approve": {(status, Status.RUNNING) for status in Status},
    "reject": {(Status.WAITING_FOR_CONFIRMATION, Status.IDLE)} | {(status, Status.RUNNING) for status in Status},
    "answer": {(status, Status.RUNNING) for status in Status},
    "decline": {(Status.WAITING_FOR_CONFIRMATION, Status.IDLE)} | {(status, Status.RUNNING) for status in Status},
    "rewind": {(status, Status.IDLE) for status in Status},
}
"""Where a command may lead from each status; all others leave it as it is. (What waits in a status in which nothing
should wait, as only a damaged or foreign log has it, may be approved all the same.)"""


@st.composite
def commands(draw: st.DrawFn, state: ConversationState) -> Command:
    """Any command, about this state or about nothing in it."""
    pending = [event.id for event in state.pending]
    ids = tuple(draw(st.lists(st.sampled_from([*pending, "no such action"]), min_size=1, max_size=3)))
    everything = draw(st.booleans())
    question = draw(st.sampled_from([*(each.id for each in state.questions), "no such question"]))
    message = Message.user("go")
    possible: list[st.SearchStrategy[Command]] = [
        st.builds(c.Send, message=st.just(message)),
        st.builds(c.Run, message=st.none() | st.just(message), attended=st.booleans()),
        st.builds(c.Pause),
        st.builds(c.Approve, ids=st.just(ids), all_that_wait=st.just(everything)),
        st.builds(c.Reject, ids=st.just(ids), all_that_wait=st.just(everything), reason=st.just("no")),
        st.builds(c.Answer, question=st.just(question), value=st.just("yes")),
        st.builds(c.Decline, question=st.just(question), reason=st.just("no")),
        st.builds(c.Rewind, to=st.integers(-1, state.head + 1)),
        st.builds(c.SetLimits, limits=st.builds(Limits, steps=st.integers(1, 3))),
        st.builds(c.SetPolicy, policy=st.just({"name": "always_confirm"})),
        st.builds(c.SetAgent, agent=st.sampled_from([{"n": 1}, {"n": 2}]), missing=st.sampled_from([(), ("a tool",)])),
        st.builds(c.SetTitle, title=st.sampled_from(["a", "b"])),
        st.builds(c.SetTags, tags=st.just({"a": "b"})),
        st.builds(c.AddSecrets, names=st.just(("TOKEN",))),
        st.builds(c.Interrupt, run=st.sampled_from([state.run.seq, state.run.seq + 1])),
        st.builds(c.Leave, waiter=st.just("cmd_of_nobody")),
    ]
    return draw(draw(st.sampled_from(possible)))


def fold(state: ConversationState, group: Sequence[Event]) -> None:
    for event in group:
        state.apply(event.model_copy(update={"seq": state.head + 1}), group_ends=event is group[-1])


def state_of(log: list[list[Event]]) -> ConversationState:
    state = ConversationState("c")
    for group in log:
        fold(state, group)
    return state


def carry_out(state: ConversationState, command: Command) -> bool:
    """Decide on a command as the recorder does; say whether it was refused."""
    if state.receipt(command.id) is not None:
        return False
    try:
        events = decide(command, state)
    except ConversationError:
        return True
    fold(state, events)
    return False


@given(st.data(), logs(), st.integers(1, 8))
def test_no_order_of_commands_leaves_the_status_table_and_a_known_id_changes_nothing(
    data: st.DataObject, log: list[list[Event]], count: int
) -> None:
    state = state_of(log)
    given_before: list[Command] = []
    for _ in range(count):
        command = data.draw(commands(state))
        before, head = state.status, state.head
        carry_out(state, command)
        if state.status is not before:
            assert (before, state.status) in ALLOWED[command.kind], command
        receipt = state.receipt(command.id)
        assert (receipt is not None) == (state.head > head), "what is written names its command, and nothing else does"
        given_before.append(command)
        if data.draw(st.booleans()):
            # The agent's side goes on between two commands.
            for group in data.draw(logs(max_groups=3)):
                fold(state, group)
    known = [(command, receipt) for command in given_before if (receipt := state.receipt(command.id)) is not None]
    snapshot = state.snapshot()
    for command, receipt in known:
        carry_out(state, command)
        assert state.receipt(command.id) == receipt
    assert state.snapshot() == snapshot


@given(st.data(), logs())
def test_a_run_that_was_decided_on_works_or_returns(data: st.DataObject, log: list[list[Event]]) -> None:
    state = state_of(log)
    command = c.Run(message=Message.user("go"), attended=data.draw(st.booleans()))
    assert not carry_out(state, command)
    waits = state.status is Status.WAITING_FOR_CONFIRMATION and state.pending
    assert state.is_working or waits
