"""Tools and secrets of a client: who is asked, who is asked again, and what a call comes to where nobody is there."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest
from pydantic import SecretStr

from agentcore import AgentErrorEvent, Conversation, ObservationEvent
from agentcore.conversation import StreamDelta
from agentcore.errors import SecretError
from agentcore.messages import TextBlock, ToolSchema
from agentcore.testing import call, cancel_everywhere, say
from agentcore.tools import ToolAnnotations
from agentcore.wire import AskFrame, SecretAnswer, ToolAnswer, ToolFailed, ToolProgress, Withdraw
from agentcore_serve.asks import ClientAsks, ClientConnection
from talks import Begun, error_of, events_of, running, talk, until

SCHEMA = ToolSchema(
    name="look",
    description="Look.",
    parameters={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
)
READ_ONLY = ToolAnnotations(read_only=True)
CALL = call("look", name="Rome")


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.passed = anyio.Event()
        self.sleeping = 0

    async def sleep(self, seconds: float) -> None:
        assert seconds == 60
        self.sleeping += 1
        try:
            await self.passed.wait()
        finally:
            self.sleeping -= 1


def observed(text: str, **fields: Any) -> ToolAnswer:
    return ToolAnswer(content=(TextBlock(text=text),), **fields)


async def next_ask(connection: ClientConnection) -> AskFrame:
    """Take the next frame, which is an ask."""
    (frame,) = await frames(connection)
    assert isinstance(frame, AskFrame)
    return frame


async def frames(connection: ClientConnection) -> list[AskFrame | Withdraw]:
    with anyio.fail_after(30):
        await connection.news.wait()
    return connection.take()


@asynccontextmanager
async def asking(
    asks: ClientAsks, annotations: ToolAnnotations | None = None, **options: Any
) -> AsyncGenerator[tuple[Conversation, Begun]]:
    """Run a conversation that calls the client's tool once."""
    tool = asks.tool_for(SCHEMA, annotations=annotations)
    async with talk([CALL, say("done")], tool, **options) as conversation, running(conversation) as begun:
        yield conversation, begun


async def test_a_call_is_asked_and_its_observation_is_the_answer() -> None:
    asks = ClientAsks()
    connection = asks.attach("one")
    async with asking(asks) as (conversation, begun):
        frame = await next_ask(connection)
        (action,) = conversation.state.open_actions
        assert (frame.kind, frame.name, frame.action_id, frame.arguments) == ("tool", "look", action, {"name": "Rome"})
        assert frame.id == f"ask_{action}"
        assert asks.answer(frame.id, observed("seen", data={"size": 3}, is_error=True))
        assert not asks.answer(frame.id, observed("twice"))
    assert begun.result.text == "done"
    (answer,) = events_of(conversation, ObservationEvent)
    assert (answer.text, answer.data, answer.is_error) == ("seen", {"size": 3}, True)
    assert connection.take() == [Withdraw(id=frame.id)], "so that the client can forget its result"
    assert not asks.answer(frame.id, observed("late"))


async def test_what_the_tool_raised_is_the_error_of_the_call() -> None:
    asks = ClientAsks()
    connection = asks.attach("one")
    async with asking(asks) as (conversation, _):
        asks.answer((await next_ask(connection)).id, ToolFailed(error="The tool raised KeyError: 'x'", code="KeyError"))
    error = error_of(conversation)
    assert (error.error, error.code, error.outcome) == ("The tool raised KeyError: 'x'", "KeyError", "failed")


async def test_progress_is_shown_while_it_runs_and_the_rest_with_the_answer() -> None:
    asks = ClientAsks()
    connection = asks.attach("one")
    shown: list[str] = []
    async with asking(asks) as (conversation, _):
        deltas = conversation.deltas()

        async def piece() -> StreamDelta:
            while (delta := await anext(deltas)).type != "progress":
                pass
            return delta

        frame = await next_ask(connection)
        asks.answer(frame.id, ToolProgress(text="half"))
        shown.append((await piece()).text)
        asks.answer(frame.id, observed("seen", progress=" and all"))
        shown.append((await piece()).text)
    assert shown == ["half", " and all"]


async def test_a_client_that_comes_back_is_asked_again_with_the_same_id() -> None:
    clock = Clock()
    asks = ClientAsks(sleep=clock.sleep)
    connection = asks.attach("one")
    async with asking(asks) as (conversation, begun):
        first = await next_ask(connection)
        connection.close()
        await until(lambda: clock.sleeping)
        again = asks.attach("one")
        assert await next_ask(again) == first
        asks.answer(first.id, observed("seen"))
    assert begun.result.text == "done"
    assert events_of(conversation, ObservationEvent)[0].text == "seen"


async def test_a_new_connection_of_a_client_ends_the_one_before() -> None:
    asks = ClientAsks()
    before = asks.attach("one")
    async with asking(asks):
        first = await next_ask(before)
        after = asks.attach("one")
        assert before.closed
        assert before.news.is_set()
        assert before.take() == []
        before.close()
        assert asks.has_client
        assert await next_ask(after) == first
        asks.answer(first.id, observed("seen"))


async def test_another_client_never_gets_what_one_may_have_begun() -> None:
    clock = Clock()
    asks = ClientAsks(sleep=clock.sleep)
    connection = asks.attach("one")
    async with asking(asks) as (conversation, _):
        await next_ask(connection)
        connection.close()
        other = asks.attach("two")
        await until(lambda: clock.sleeping)
        assert other.take() == []
        clock.passed.set()
    error = error_of(conversation)
    assert (error.outcome, error.code) == ("unknown", "ClientLost")
    assert "may have happened" in error.error


async def test_another_client_gets_what_was_not_taken() -> None:
    asks = ClientAsks()
    connection = asks.attach("one")
    async with asking(asks) as (conversation, _):
        await connection.news.wait()
        connection.close()
        other = asks.attach("two")
        asks.answer((await next_ask(other)).id, observed("seen by another"))
    assert events_of(conversation, ObservationEvent)[0].text == "seen by another"


async def test_another_client_gets_what_only_reads_and_the_first_learns_that_it_is_void() -> None:
    asks = ClientAsks()
    connection = asks.attach("one")
    async with asking(asks, READ_ONLY) as (conversation, _):
        frame = await next_ask(connection)
        connection.close()
        other = asks.attach("two")
        assert await next_ask(other) == frame
        asks.answer(frame.id, observed("seen by another"))
    assert events_of(conversation, ObservationEvent)[0].text == "seen by another"
    assert asks.attach("one").take() == [Withdraw(id=frame.id)]


async def test_without_a_client_the_call_fails_and_was_not_begun() -> None:
    clock = Clock()
    asks = ClientAsks(sleep=clock.sleep)
    async with asking(asks) as (conversation, begun):
        await until(lambda: clock.sleeping)
        clock.passed.set()
    error = error_of(conversation)
    assert (error.outcome, error.code) == ("failed", "ClientGone")
    assert "Nothing was done" in error.error
    assert begun.result.text == "done", "the model goes on without it"


async def test_a_client_that_comes_in_time_starts_the_waiting_over() -> None:
    clock = Clock()
    asks = ClientAsks(sleep=clock.sleep)
    async with asking(asks) as (conversation, _):
        await until(lambda: clock.sleeping)
        connection = asks.attach("one")
        frame = await next_ask(connection)
        await until(lambda: not clock.sleeping)
        clock.passed.set()  # it counts no more
        asks.answer(frame.id, observed("seen"))
    assert events_of(conversation, ObservationEvent)[0].text == "seen"


async def test_a_call_that_is_cancelled_is_withdrawn() -> None:
    asks = ClientAsks()
    connection = asks.attach("one")
    async with asking(asks) as (conversation, _):
        frame = await next_ask(connection)
        await conversation.interrupt("enough")
        assert await frames(connection) == [Withdraw(id=frame.id)]
    assert events_of(conversation, AgentErrorEvent)[0].outcome == "interrupted"
    assert not asks.answer(frame.id, observed("late"))


async def test_an_ask_that_was_not_taken_is_withdrawn_without_a_word() -> None:
    asks = ClientAsks()
    connection = asks.attach("one")
    async with asking(asks) as (conversation, _):
        await connection.news.wait()
        await conversation.interrupt("enough")
    assert connection.take() == []


async def test_a_client_that_was_away_learns_what_was_withdrawn_meanwhile() -> None:
    clock = Clock()
    asks = ClientAsks(sleep=clock.sleep)
    connection = asks.attach("one")
    async with asking(asks) as (conversation, _):
        frame = await next_ask(connection)
        connection.close()
        await conversation.interrupt("enough")
    again = asks.attach("one")
    assert again.take() == [Withdraw(id=frame.id)]
    again.close()
    assert asks.attach("one").take() == []


async def test_clients_that_never_come_back_are_forgotten() -> None:
    asks = ClientAsks()
    for number in range(100):
        asks.attach(f"client {number}").close()
    await anyio.lowlevel.checkpoint()
    assert len(asks._clients) <= 17  # pyright: ignore[reportPrivateUsage] what is kept is the point


async def test_a_secret_is_asked_of_any_client_and_is_masked_from_then_on() -> None:
    asks = ClientAsks()
    one = asks.attach("one")
    async with asking(asks, secrets={"TOKEN": asks.secret("TOKEN")}) as (conversation, _):
        frame = await next_ask(one)
        asks.answer(frame.id, observed("used", secrets=("TOKEN",)))
        withdraw, secret = await frames_until(one, 2)
        assert isinstance(withdraw, Withdraw)
        assert isinstance(secret, AskFrame)
        assert (secret.kind, secret.name, secret.arguments) == ("secret", "TOKEN", {})
        one.close()
        two = asks.attach("two")
        again = await next_ask(two)
        assert again == secret
        with pytest.raises(ValueError, match="for a secret"):
            asks.answer(again.id, observed("not that"))
        answer = SecretAnswer(value=SecretStr("tok-1234567"))
        assert "tok" not in repr(answer)
        assert "tok-1234567" in answer.model_dump_json()
        asks.answer(again.id, answer)
        await until(lambda: conversation.state.answer)
        await conversation.send("It is tok-1234567.")
    assert "tok-1234567" not in str(list(conversation.state.events))


async def frames_until(connection: ClientConnection, count: int) -> list[AskFrame | Withdraw]:
    taken: list[AskFrame | Withdraw] = []
    while len(taken) < count:
        taken += await frames(connection)
    return taken


async def test_a_secret_that_no_client_gives_is_an_error_that_names_it() -> None:
    asks = ClientAsks()
    connection = asks.attach("one")

    async def refuse() -> None:
        asks.answer(
            (await next_ask(connection)).id, ToolFailed(error="Secret 'TOKEN' can't be had.", code="SecretError")
        )

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(refuse)
        with pytest.raises(SecretError, match="can't be had"):
            await asks.secret("TOKEN")()


async def test_a_caller_that_is_cancelled_anywhere_leaves_no_ask_behind() -> None:
    async def ask_once(asks: ClientAsks) -> None:
        connection = asks.attach("one")

        async def answer() -> None:
            asks.answer((await next_ask(connection)).id, SecretAnswer(value=SecretStr("tok-1234567")))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer)
            assert await asks.secret("TOKEN")() == "tok-1234567"

    with anyio.fail_after(60):
        for attempt in cancel_everywhere():
            asks = ClientAsks()
            await attempt(partial(ask_once, asks))
            assert not asks._open  # pyright: ignore[reportPrivateUsage] what is left is the point
