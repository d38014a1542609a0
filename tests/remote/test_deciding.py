"""Callbacks of a client decide on what waits in a conversation that is held elsewhere."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
from anyio.lowlevel import checkpoint

from agentcore import Conversation, QuestionAnswered, QuestionAsked, ToolContext, UserRejectObservation, ask_user
from agentcore.commands import Answer, Command
from agentcore.conversation import Answered, Declined
from agentcore.conversation.guards import LoopAffinity
from agentcore.conversation.link import Link
from agentcore.conversation.watch import HeadSignal
from agentcore.errors import AnswerRefused, ReentrantCall
from agentcore.events import (
    ActionEvent,
    ActionStarted,
    ConversationStateUpdateEvent,
    ConversationStatus,
    Event,
    StatusChanged,
)
from agentcore.record import ASKING, ConversationState
from agentcore.remote.deciding import Deciding
from agentcore.security import Approve, RatedAction, Reject
from agentcore.testing import call, calls, say
from agentcore.tools import tool
from agentcore_serve.asks import ClientAsks
from agentcore_serve.decisions import ClientDecisions
from asking import ASK, ASK_PORT
from deploying import DEPLOY, SURE, WHERE, deploying
from talks import BOUND, PAUSED, WAITING, change, events_of, ran, running, talk, until


@tool(resources=())
async def port(ctx: ToolContext) -> str:
    """Ask for the port."""
    return f"port {await ctx.question('Which port?', {'type': 'integer'})}"


def yes(action: RatedAction) -> bool:
    return bool(action.tool_name)


def eighty(question: QuestionAsked) -> str:
    del question
    return "eighty"


class Clock:
    def __init__(self) -> None:
        self.passed = anyio.Event()

    async def sleep(self, seconds: float) -> None:
        del seconds
        await self.passed.wait()


@asynccontextmanager
async def deciding(
    script: Any, *tools: Any, confirm: Any = None, on_question: Any = None, asks: ClientAsks | None = None
) -> AsyncGenerator[tuple[Conversation, list[Exception]]]:
    """Open a conversation as a server would, with a client beside it that has these callbacks."""
    clients = asks or ClientAsks()
    if asks is None:
        clients.attach("client")
    there = ClientDecisions(clients)
    options: dict[str, Any] = {"confirm": there.confirm if confirm else None}
    options["on_question"] = there.on_question if on_question else None
    errors: list[Exception] = []
    async with talk(script, *tools, **options) as conversation:

        async def fail(error: Exception) -> None:
            errors.append(error)
            await conversation.interrupt(str(error))

        half = Deciding(conversation.link, confirm=confirm, on_question=on_question, on_error=fail)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(half.run)
            yield conversation, errors
            await conversation.close()
        # It ended by itself with the conversation.


NAMES = ("Rome", "Oslo", "Perth")


async def test_it_decides_on_one_action_after_another() -> None:
    asked: list[str] = []

    async def confirm(action: RatedAction) -> bool | Approve | Reject:
        await checkpoint()
        asked.append(str(action.arguments["name"]))
        return {"Rome": True, "Oslo": Approve({"name": "Bergen"}), "Perth": Reject("too far", by="Ada")}[asked[-1]]

    script = [calls(*(call("change", name=name) for name in NAMES)), say("done")]
    async with deciding(script, change, confirm=confirm) as (conversation, errors):
        assert (await conversation.run("go")).text == "done"
        (rejected,) = events_of(conversation, UserRejectObservation)
        assert (rejected.reason, rejected.by) == ("too far", "Ada")
    assert asked == list(NAMES)
    assert sorted(ran) == ["Bergen", "Rome"]
    assert not errors


async def test_a_callback_that_is_not_async_is_called_in_a_thread() -> None:
    async with deciding([call("change", name="Rome"), say("done")], change, confirm=yes) as (talking, _):
        assert (await talking.run("go")).text == "done"
    assert ran == ["Rome"]


async def test_a_decision_from_elsewhere_ends_the_question_to_the_callback() -> None:
    asked, ended = anyio.Event(), anyio.Event()

    async def confirm(action: RatedAction) -> bool:
        del action
        asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        return False

    async with deciding([call("change", name="Rome"), say("done")], change, confirm=confirm) as (conversation, _):
        async with running(conversation) as begun:
            await asked.wait()
            await conversation.approve(by="Bob")
            await ended.wait()
        assert begun.result.text == "done"
    assert ran == ["Rome"]


async def test_a_pause_ends_the_question_and_the_next_run_asks_again() -> None:
    asked: list[str] = []
    released = anyio.Event()

    async def confirm(action: RatedAction) -> bool:
        asked.append(action.id)
        await released.wait()
        return True

    async with deciding([call("change", name="Rome"), say("done")], change, confirm=confirm) as (conversation, _):
        async with running(conversation) as begun:
            await until(lambda: asked)
            await conversation.pause()
        assert begun.result.status == WAITING
        assert ran == []
        released.set()
        await checkpoint()
        assert ran == []
        assert (await conversation.run()).text == "done"
    assert len(asked) == 2
    assert ran == ["Rome"]


async def test_questions_at_rest_and_live_ones_are_answered() -> None:
    asked: list[tuple[str, bool]] = []

    async def answer(question: QuestionAsked) -> Any:
        await checkpoint()
        asked.append((question.text, question.live))
        return Answered(80, by="Ada") if question.answer_schema else None

    script = [ASK_PORT, ASK, call("port"), say("thanks")]
    async with deciding(script, ask_user, port, on_question=answer) as (conversation, _):
        assert (await conversation.run("go")).text == "thanks"
        ended = [(each.outcome, each.answer, each.by) for each in events_of(conversation, QuestionAnswered)]
    assert ended == [("answered", 80, "Ada"), ("declined", None, None), ("answered", 80, "Ada")]
    assert asked == [("Which port?", False), ("Which port?", False), ("Which port?", True)]


async def test_a_callback_that_raises_ends_the_run_and_is_not_asked_again_in_it() -> None:
    asked: list[str] = []

    def confirm(action: RatedAction) -> bool:
        asked.append(action.id)
        if len(asked) == 1:
            raise ZeroDivisionError("a fault of the program")
        return True

    async with deciding([call("change", name="Rome"), say("done")], change, confirm=confirm) as (conversation, errors):
        result = await conversation.run("go")
        assert result.status == PAUSED
        assert [type(error) for error in errors] == [ZeroDivisionError]
        assert (await conversation.run()).text == "done"
    assert len(asked) == 2
    assert ran == ["Rome"]


async def test_an_answer_that_does_not_fit_is_the_callbacks_fault() -> None:
    async with deciding([ASK_PORT], ask_user, on_question=eighty) as (conversation, errors):
        await conversation.run("go")
        assert [type(error) for error in errors] == [AnswerRefused]
        assert conversation.state.questions


async def test_a_run_from_inside_of_a_callback_is_refused() -> None:
    refused: list[Exception] = []
    open_now: list[Conversation] = []

    async def confirm(action: RatedAction) -> bool:
        del action
        try:
            await open_now[0].run()
        except ReentrantCall as error:
            refused.append(error)
        return True

    async with deciding([call("change", name="Rome"), say("done")], change, confirm=confirm) as (conversation, _):
        open_now.append(conversation)
        assert (await conversation.run("go")).text == "done"
    assert len(refused) == 1


async def test_a_live_question_is_declined_once_no_client_is_left_and_an_action_stays_pending() -> None:
    clock = Clock()
    asks = ClientAsks(sleep=clock.sleep)
    connection = asks.attach("client")

    async def never(question: QuestionAsked) -> Declined:
        del question
        connection.close()  # the program is gone
        clock.passed.set()
        await anyio.sleep_forever()
        return Declined()

    async with deciding([call("port"), say("without")], port, on_question=never, asks=asks) as (conversation, _):
        assert (await conversation.run("go")).text == "without"
        (ended,) = events_of(conversation, QuestionAnswered)
        assert ended.outcome == "declined"
        assert "nobody to ask" in (ended.reason or "")


async def test_an_action_and_a_question_at_rest_wait_for_as_long_as_nobody_comes() -> None:
    clock = Clock()
    clock.passed.set()
    there = ClientDecisions(ClientAsks(sleep=clock.sleep))
    script = [calls(call("change", name="Rome"), ASK), say("done")]
    async with talk(script, change, ask_user, confirm=there.confirm, on_question=there.on_question) as conversation:
        async with running(conversation) as begun:
            await until(lambda: conversation.state.is_asking)
            await anyio.wait_all_tasks_blocked()
            assert len(conversation.state.pending) == 2
            await conversation.approve()
            await anyio.wait_all_tasks_blocked()
            assert conversation.state.questions
            await conversation.answer(conversation.state.questions[0].id, "80")
        assert begun.result.text == "done"


async def test_a_call_that_asks_twice_is_asked_about_twice_though_the_first_callback_never_returned() -> None:
    asked: list[str] = []
    begun = anyio.Event()

    async def on_question(question: QuestionAsked) -> bool:
        asked.append(question.text)
        if question.options:
            begun.set()
            await anyio.sleep_forever()
        return True

    tool = deploying(questions=(WHERE, SURE))
    async with deciding([DEPLOY, say("done")], tool, on_question=on_question) as (conversation, errors):
        async with running(conversation) as run:
            await begun.wait()
            await conversation.answer(conversation.state.questions[0].id, "staging", by="Bob")
        assert run.result.text == "done"
        assert [event.answer for event in events_of(conversation, QuestionAnswered)] == ["staging", True]
    assert asked == ["Where to?", "Sure?"]
    assert not errors


class FollowedLink:
    """A log that is followed: several groups may arrive together."""

    def __init__(self) -> None:
        self.state = ConversationState("c")
        self.head_signal = HeadSignal(LoopAffinity(None))
        self.executed: list[Command] = []

    def receive(self, *events: Event) -> None:
        for event in events:
            self.state.apply(event.model_copy(update={"seq": self.state.head + 1}))
        self.head_signal.notify()

    async def execute(self, command: Command) -> None:
        self.executed.append(command)
        await checkpoint()


async def test_the_callback_for_a_question_ends_where_the_next_one_of_the_call_arrives_with_its_answer() -> None:
    def asking(code: str) -> ConversationStateUpdateEvent:
        status = WAITING if code == ASKING else ConversationStatus.RUNNING
        return ConversationStateUpdateEvent(update=StatusChanged(status=status, code=code))

    link, asked = FollowedLink(), anyio.Event()
    action = ActionEvent(reply_id="r", tool_name="deploy", arguments={}, call_id="c")
    first, second = (QuestionAsked(cause=action.id, text=text, resumes=True) for text in ("Where?", "Sure?"))
    started = ActionStarted(cause=action.id)

    async def on_question(question: QuestionAsked) -> str:
        if question.id == first.id:
            asked.set()
            await anyio.sleep_forever()
        return "yes"

    half = Deciding(cast("Link", link), on_question=on_question, on_error=lambda _: checkpoint())
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            link.receive(asking("run"), action, started, first, asking(ASKING))
            tasks.start_soon(half.run)
            await asked.wait()
            ended = QuestionAnswered(cause=action.id, question=first.id, outcome="answered", answer="here")
            link.receive(ended, asking("approved"), started, second, asking(ASKING))
            await until(lambda: link.executed)
            link.head_signal.close()
            tasks.cancel_scope.cancel()
    (command,) = link.executed
    assert isinstance(command, Answer)
    assert (command.question, command.value) == (second.id, "yes")
