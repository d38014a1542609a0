"""A crash at a question: it waits or it has its one answer, nothing runs twice, and another process may answer it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from agentcore import (
    Conversation,
    FileStore,
    QuestionAnswered,
    QuestionAsked,
    ToolContext,
    ask_user,
)
from agentcore.errors import ConversationNotFound
from agentcore.events import ActionEvent
from agentcore.record import ConversationState, read_log
from agentcore.testing import Request, ScriptedLLM, ScriptLine, call, calls, crash_everywhere, say
from agentcore.tools import tool
from programs import start_python
from talks import FINISHED, answers_of, change, events_of, ran, running, scripted, talk, until

PROGRAM = Path(__file__).with_name("asking_program.py")


@tool(resources=())
async def port(ctx: ToolContext) -> str:
    """Ask while it runs."""
    ran.append("port")
    return str(await ctx.question("Which port?"))


def asking(first: ScriptLine) -> ScriptedLLM:
    """Return a model that asks first, then changes something, and then is done; however often its process died."""

    def reply(request: Request) -> ScriptLine:
        answered = sum(message.role == "tool" for message in request.messages)
        return (first, call("change", name="after"), say("done"))[min(answered, 2)]

    return ScriptedLLM(reply)


def check(state: ConversationState) -> None:
    """Check that each action and each question ends once, and that no tool ran twice."""
    actions = [event.id for event in events_of(state, ActionEvent)]
    assert sorted(str(answer.cause) for answer in answers_of(state)) == sorted(actions)
    (question,) = events_of(state, QuestionAsked)
    assert [ended.question for ended in events_of(state, QuestionAnswered)] == [question.id]
    assert set(Counter(ran).values()) == {1}, "something ran twice"


async def go_on(conversation: Conversation) -> None:
    """Answer what waits, to the end."""
    result = await conversation.run("again")
    for question in result.questions:
        await conversation.answer(question.id, "late")
        result = await conversation.run()
    assert (result.status, result.text) == (FINISHED, "done")


@pytest.fixture(autouse=True)
def counted_anew() -> Iterator[None]:
    ran.clear()
    yield
    ran.clear()


@pytest.mark.slow
@pytest.mark.parametrize("declined", [False, True])
async def test_where_the_power_is_lost_a_question_at_rest_waits_or_is_ended(tmp_path: Path, declined: bool) -> None:
    agent = scripted(
        asking(calls(call("change", name="before"), call("ask_user", text="Which port?"))), ask_user, change
    )
    outcomes: set[tuple[int, int, int]] = set()

    async def ask(store: FileStore, acknowledged: list[str]) -> None:
        async with talk(agent, store=store, id="a") as conversation:
            (question,) = (await conversation.run("go")).questions
            acknowledged.append("asked")
            if declined:
                await conversation.decline(question.id, "ask Bob")
            else:
                await conversation.answer(question.id, "8080")
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
        asked, ended = len(events_of(state, QuestionAsked)), events_of(state, QuestionAnswered)
        assert asked or "asked" not in acknowledged, "an acknowledged question is lost"
        assert ended or "ended" not in acknowledged, "an acknowledged answer is lost"
        outcomes.add((len(acknowledged), asked, len(ended)))
        async with talk(agent, store=found.store, id="a") as again:
            await go_on(again)
            check(again.state)
            (end,) = events_of(again, QuestionAnswered)
        if ended:
            assert end == ended[0]
            assert (end.outcome, end.answer) == (("declined", None) if declined else ("answered", "8080"))
        else:
            assert end.answer == "late"
    assert outcomes >= {(0, 0, 0), (0, 1, 0), (1, 1, 0), (2, 1, 1), (3, 1, 1)}


async def test_where_the_power_is_lost_a_live_question_is_answered_or_withdrawn_and_its_call_does_not_run_again(
    tmp_path: Path,
) -> None:
    agent = scripted(asking(call("port")), port, change)
    outcomes: set[tuple[int, str]] = set()

    async def ask(store: FileStore, acknowledged: list[str]) -> None:
        async with talk(agent, store=store, id="a", attended=True) as conversation, running(conversation):
            question = await until(conversation, QuestionAsked)
            acknowledged.append("asked")
            await conversation.answer(question.id, "8080")
            acknowledged.append("answered")

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
        assert ended or "answered" not in acknowledged, "an acknowledged answer is lost"
        async with talk(agent, store=found.store, id="a") as again:
            assert again.state.questions == ()
            if asked:
                (end,) = events_of(again, QuestionAnswered)
                assert end.outcome == ("answered" if ended else "withdrawn")
                outcomes.add((len(acknowledged), end.outcome))
            await go_on(again)
            if asked:
                check(again.state)
    assert outcomes >= {(1, "withdrawn"), (2, "answered")}


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_question_that_one_process_asks_is_answered_by_another_and_carried_out_by_a_third(
    surroundings: dict[str, str], tmp_path: Path
) -> None:
    async with start_python(PROGRAM, tmp_path, "ask", env=surroundings, cwd=tmp_path) as program:
        assert await program.line() == "Which port?"
        await program.kill()
    async with start_python(PROGRAM, tmp_path, "answer", env=surroundings, cwd=tmp_path) as program:
        assert await program.line() == "Which port?"
        assert await program.line() == "answered"
        await program.kill()
    async with start_python(PROGRAM, tmp_path, "go on", env=surroundings, cwd=tmp_path) as program:
        assert await program.rest() == ["done"]
        assert await program.wait() == 0
    state = await read_log(FileStore(tmp_path / "logs"), "victim")
    (answer,) = events_of(state, QuestionAnswered)
    assert (answer.answer, answer.by) == (8080, "Ada")
    effects = (await anyio.Path(tmp_path / "effects.txt").read_text()).split()
    # The effect after the answer may have been cut off by the kill before it happened, and does not come twice.
    assert effects in (["before"], ["before", "after"])
    assert [event.arguments.get("name") for event in events_of(state, ActionEvent)] == ["before", None, "after"]
    assert len(answers_of(state)) == 3
