"""A crash at the question of a call that had begun, or while it is resumed: one outcome, and nothing happens twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from agentcore import (
    AgentErrorEvent,
    Conversation,
    FileStore,
    MemoryStore,
    ObservationEvent,
    QuestionAnswered,
    QuestionAsked,
)
from agentcore.errors import ConversationNotFound
from agentcore.events import (
    ActionEvent,
    ActionStarted,
    Event,
    MessageEvent,
)
from agentcore.messages import Message
from agentcore.record import read_log
from agentcore.testing import Request, ScriptedLLM, ScriptLine, cancel_everywhere, crash_everywhere, say
from agentcore.tools import Resumption
from deploying import DEPLOY, deploying
from programs import start_python
from talks import BOUND, FINISHED, WAITING, answers_of, events_of, log_of, ran, scripted, talk

PROGRAM = Path(__file__).with_name("deploying_program.py")


@pytest.fixture(autouse=True)
def counted_anew() -> Iterator[None]:
    ran.clear()
    yield
    ran.clear()


def asking() -> ScriptedLLM:
    """Return a model that deploys once, and then is done; however often its process died."""

    def reply(request: Request) -> ScriptLine:
        return say("done") if any(message.role == "tool" for message in request.messages) else DEPLOY

    return ScriptedLLM(reply)


async def go_on(conversation: Conversation) -> None:
    """Answer what waits, to the end."""
    result = await conversation.run("again")
    for question in result.questions:
        await conversation.answer(question.id, "production")
        result = await conversation.run()
    assert (result.status, result.text) == (FINISHED, "done")


@pytest.mark.parametrize("declined", [False, True])
async def test_where_the_power_is_lost_the_call_has_one_outcome_and_is_resumed_at_most_once(
    tmp_path: Path, declined: bool
) -> None:
    agent = scripted(asking(), deploying())
    outcomes: set[tuple[int, str]] = set()

    async def ask(store: FileStore, acknowledged: list[str]) -> None:
        async with talk(agent, store=store, id="a") as conversation:
            (question,) = (await conversation.run("go")).questions
            acknowledged.append("asked")
            if declined:
                await conversation.decline(question.id, "ask Bob")
            else:
                await conversation.answer(question.id, "staging")
            acknowledged.append("ended")
            await conversation.run()
            acknowledged.append("done")

    for attempt in crash_everywhere(tmp_path):
        acknowledged: list[str] = []
        ran.clear()
        found = await attempt(ask, acknowledged)
        try:
            state = await read_log(found.store, "a")
        except ConversationNotFound:
            assert not acknowledged
            continue
        asked, ended = events_of(state, QuestionAsked), events_of(state, QuestionAnswered)
        assert asked or "asked" not in acknowledged, "an acknowledged question is lost"
        assert ended or "ended" not in acknowledged, "an acknowledged answer is lost"
        async with talk(agent, store=found.store, id="a") as again:
            assert [question.id for question in again.state.questions] == (
                [question.id for question in asked] if not ended else []
            )
            await go_on(again)
            (action,) = events_of(again, ActionEvent)
            (answer,) = answers_of(again)
            assert answer.cause == action.id
        began, resumed = ([each for each in ran if len(each) == size] for size in (2, 3))
        assert len(began) <= 1
        assert len(resumed) <= 1
        outcome = answer.outcome if isinstance(answer, AgentErrorEvent) else answer.kind
        outcomes.add((len(acknowledged), outcome))
        if isinstance(answer, ObservationEvent):
            assert resumed[0][2].declined == ("ask Bob" if ended and declined else None)
            assert resumed[0][2].answer == (None if ended and declined else "staging" if ended else "production")
    assert outcomes >= {(0, "unknown"), (1, "observation"), (2, "unknown"), (2, "observation"), (3, "observation")}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("killed_while_resumed", [False, True])
async def test_a_call_is_asked_about_in_one_process_and_resumed_in_another(
    surroundings: dict[str, str], tmp_path: Path, killed_while_resumed: bool
) -> None:
    async with start_python(PROGRAM, tmp_path, "ask", env=surroundings, cwd=tmp_path) as program:
        assert await program.line() == "Where to?"
        await program.kill()
    state = await read_log(FileStore(tmp_path / "logs"), "victim")
    assert (state.status, len(state.pending), len(state.questions)) == (WAITING, 1, 1)
    if killed_while_resumed:
        async with start_python(PROGRAM, tmp_path, "answer", env=surroundings, cwd=tmp_path) as program:
            assert await program.line() == "Where to?"
            assert await program.line() == "resumed"
            await program.kill()
    async with start_python(PROGRAM, tmp_path, "go on", env=surroundings, cwd=tmp_path) as program:
        (words,) = await program.rest()
        assert await program.wait() == 0
    assert ("it may have happened" if killed_while_resumed else "deployed 2.0 to production") in words
    state = await read_log(FileStore(tmp_path / "logs"), "victim")
    (answer,) = answers_of(state)
    if killed_while_resumed:
        assert isinstance(answer, AgentErrorEvent)
        assert (answer.outcome, answer.code) == ("unknown", "recovered")
    else:
        assert isinstance(answer, ObservationEvent)
    effects = (await anyio.Path(tmp_path / "effects.txt").read_text()).split()
    assert effects == ["began-2.0", "resumed-2.0-staging" if killed_while_resumed else "resumed-2.0-production"]


def cut_off_while_resumed() -> list[Event]:
    """Return what a process leaves that died in the resumed call."""
    action = ActionEvent(reply_id="re", tool_name="deploy", arguments={"version": "2.0"}, call_id="c")
    asked = QuestionAsked(cause=action.id, text="Where to?", resumes=True, note={"asked": 1, "own": None})
    ended = QuestionAnswered(cause=action.id, question=asked.id, outcome="answered", answer="staging")
    started = [ActionStarted(cause=action.id) for _ in range(2)]
    task = MessageEvent(source="user", message=Message.user("go"))
    return [task, action, started[0], asked, ended, started[1]]


async def test_a_read_only_call_that_was_cut_off_while_it_was_resumed_is_resumed_again() -> None:
    store = await log_of(*cut_off_while_resumed())
    async with talk([say("done")], deploying(read_only=True), store=store, id="c") as conversation:
        assert (await conversation.run()).text == "done"
    assert [each[2] for each in ran] == [Resumption(note={"asked": 1, "own": None}, answer="staging")]
    assert len(answers_of(conversation)) == 1


async def test_any_other_call_that_was_cut_off_while_it_was_resumed_is_unknown() -> None:
    store = await log_of(*cut_off_while_resumed())
    async with talk([say("done")], deploying(), store=store, id="c") as conversation:
        assert (await conversation.run()).text == "done"
    assert ran == []
    (answer,) = answers_of(conversation)
    assert isinstance(answer, AgentErrorEvent)
    assert answer.outcome == "unknown"


async def test_a_conversation_that_is_cancelled_anywhere_resumes_its_call_at_most_once() -> None:
    agent = scripted(asking(), deploying())
    outcomes: set[str] = set()

    async def work(store: MemoryStore) -> None:
        async with Conversation(agent, store=store, id="a", on_question=lambda _: "staging") as conversation:
            await conversation.run("go")

    for attempt in cancel_everywhere():
        store = MemoryStore()
        ran.clear()
        with anyio.fail_after(BOUND):
            await attempt(work, store)
        try:
            await read_log(store, "a")
        except ConversationNotFound:
            continue
        async with talk(agent, store=store, id="a") as again:
            await go_on(again)
            (answer,) = answers_of(again)
        assert all(len([each for each in ran if len(each) == size]) <= 1 for size in (2, 3)), "something ran twice"
        outcomes.add(answer.outcome if isinstance(answer, AgentErrorEvent) else answer.kind)
    assert outcomes >= {"interrupted", "observation"}
