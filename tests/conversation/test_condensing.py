"""Shortening the history: when a condenser is asked, what becomes of its answer, and what follows where it fails."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore import Agent, MemoryStore
from agentcore.condense import CondenserSpec, Outline, Window
from agentcore.context import LEFT_OUT, build_messages
from agentcore.errors import ContextWindowExceeded, InvalidCondensation, MalformedHistory, RunError
from agentcore.events import (
    Condensation,
    CondensationRequest,
    UsageEvent,
)
from agentcore.messages import Message, ToolResultBlock
from agentcore.testing import call, say
from agentcore.testing.script import Request, ScriptLine
from agentcore.usage import Usage
from cutting import Own, model, nothing, notices, read, working
from talks import events_of, scripted, talk


async def test_the_oldest_replies_go_and_the_first_and_the_newest_message_stay() -> None:
    llm = model(working(20))
    async with talk(scripted(llm, read, condenser=Window())) as conversation:
        result = await conversation.run("the task")
    assert result.text == "done"
    cuts = events_of(conversation, Condensation)
    assert len(cuts) >= 3
    assert all(cut.reason == "soft" and cut.condenser == "window" for cut in cuts)
    assert all(
        cut.tokens_before > 5_600 and cut.tokens_after <= 3_200
        for cut in cuts
        if cut.tokens_before and cut.tokens_after
    )
    for request in llm.requests:
        assert [message.text for message in request.messages[:2]][1] == "the task"
    assert not notices(conversation)


async def test_sizes_follow_what_the_provider_counted() -> None:
    seen = Own(nothing)
    usage = Usage(requests=1, input_tokens=3_000)
    async with talk(scripted(model([say("a", usage=usage), say("b")]), condenser=seen)) as conversation:
        await conversation.run("x" * 4_000)
        await conversation.run("y" * 400)
    first, second = seen.seen
    estimate = first.used
    assert 1_000 < estimate < 3_000
    # 100 tokens more by the estimate, and that is too little by a factor that is known now.
    assert 3_000 + 100 < second.used < 3_000 + 100 * 3_000 / estimate + 60
    assert (first.room, first.reason) == (8_000, "soft")


async def test_an_unknown_window_is_taken_for_a_hundred_thousand() -> None:
    seen = Own(nothing)
    async with talk(scripted(model([say("a")], features=None), condenser=seen)) as conversation:
        await conversation.run("go")
    assert seen.seen[0].room == 100_000 - 16_384


async def broken(outline: Outline) -> None:
    await outline.ask("Summarise.")
    raise ZeroDivisionError("a fault in it")


def small_cut(outline: Outline) -> Condensation:
    return outline.forget([item for item in outline.items if item.kind == "agent"][:1], summary="s")


def unknown(outline: Outline) -> Condensation:
    del outline
    return Condensation(forgotten=("ev_nowhere",), summary="s")


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (broken, "ZeroDivisionError: a fault in it"),
        (unknown, "ev_nowhere, which the model is not shown"),
        (nothing, "It left the history as it is"),
    ],
)
async def test_where_it_has_to_be_shorter_and_the_condenser_fails_the_oldest_part_goes(fault: Any, told: str) -> None:
    failing = Own(lambda outline: fault(outline) if outline.reason == "hard" else None)
    llm = model(lambda request: say("a summary") if request.messages[-1].text == "Summarise." else say("fine"))
    async with talk(scripted(llm, condenser=failing)) as conversation:
        for number in range(6):
            result = await conversation.run(f"{number} " + "long " * 1_600)
            assert result.text == "fine"
    (cut, *_) = events_of(conversation, Condensation)
    assert (cut.reason, cut.condenser) == ("hard", "window")
    assert told in notices(conversation)[0].detail
    assert notices(conversation)[0].code == "condenser_failed"
    purposes = [event.purpose for event in events_of(conversation, UsageEvent)]
    assert ("condense" in purposes) == (fault is broken)


class Odd:
    """A condenser that fails in odd ways."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.recorded = 0

    async def condense(self, outline: Outline) -> Condensation | None:
        del outline
        await checkpoint()
        raise self.error

    def record(self) -> CondenserSpec | None:
        self.recorded += 1
        if self.recorded > 1:  # opening the conversation asks first
            raise RuntimeError("it can't say")
        return None


async def test_a_condenser_that_raises_a_timeout_or_a_cancellation_of_its_own_ends_nothing(
    anyio_backend_name: str,
) -> None:
    errors: list[BaseException] = [TimeoutError("of its own")]
    if anyio_backend_name == "asyncio":  # on trio, only trio can make one
        errors.append(anyio.get_cancelled_exc_class()("of a task of its own"))
    for error in errors:
        async with talk(scripted(model([say("ok")]), condenser=Odd(error))) as conversation:
            assert (await conversation.run("go")).text == "ok"
            (notice,) = notices(conversation)
            assert (notice.name, notice.code) == ("Odd", "condenser_failed")
            assert "It failed with" in notice.detail


async def test_where_it_need_not_be_shorter_a_failing_condenser_is_left_alone_until_there_is_more() -> None:
    failing = Own(lambda outline: unknown(outline) if outline.used > 5_600 else None)
    async with talk(scripted(model([say("ok")] * 12), condenser=failing)) as conversation:
        await conversation.run("long " * 4_600)
        for _ in range(8):
            assert (await conversation.run("go on")).text == "ok"
    assert len(notices(conversation)) == 1
    assert not events_of(conversation, Condensation)
    assert len(failing.seen) == 1


async def test_a_cut_that_frees_too_little_is_not_made() -> None:
    async with talk(scripted(model([say("ok")] * 4), condenser=Own(small_cut_later))) as conversation:
        await conversation.run("long " * 2_000)
        await conversation.run("and")
        assert await conversation.condense() is None
    assert not events_of(conversation, Condensation)


def small_cut_later(outline: Outline) -> Condensation | None:
    return small_cut(outline) if any(item.kind == "agent" for item in outline.items) else None


async def test_a_request_that_was_too_large_is_made_again_with_less() -> None:
    def answer(request: Request) -> ScriptLine:
        if sum(len(message.text) for message in request.messages[1:]) > 20_000:
            return ContextWindowExceeded("too large")
        return say("ok")

    async with talk(scripted(model(answer, features=None), condenser=Window())) as conversation:
        for _ in range(7):
            assert (await conversation.run("long " * 600)).text == "ok"
    assert [cut.reason for cut in events_of(conversation, Condensation)] == ["hard"]
    assert len(events_of(conversation, CondensationRequest)) == 1


async def test_two_cuts_without_a_reply_between_them_end_the_run_as_stuck() -> None:
    def answer(request: Request) -> ScriptLine:
        return ContextWindowExceeded("too large") if len(request.messages) > 3 else say("ok")

    def one(outline: Outline) -> Condensation | None:
        free = [item for item in outline.items[1:] if item.kind == "user" and not item.protected]
        return outline.forget(free[:1]) if outline.reason == "hard" else None

    agent = scripted(model([say("ok"), say("ok"), say("ok"), answer, answer, answer, answer], None), condenser=Own(one))
    async with talk(agent) as conversation:
        for _ in range(3):
            await conversation.run("long " * 2_000)
        result = await conversation.run("long")
    assert (result.status, conversation.state.status_code) == ("stuck", "context_window")
    assert len(events_of(conversation, Condensation)) == 2


async def test_a_history_that_is_refused_as_malformed_is_repaired_once() -> None:
    llm = model(
        [
            call("read", size=9),
            say("one"),
            MalformedHistory("no"),
            say("two"),
            MalformedHistory("no"),
            MalformedHistory("no"),
        ]
    )
    async with talk(scripted(llm, read)) as conversation:
        await conversation.run("the task")
        assert (await conversation.run("more")).text == "two"
        assert [message.text[:20] for message in llm.requests[-1].messages[1:]] == [
            "the task",
            "(The steps up to her",
            "more",
        ]
        with pytest.raises(RunError, match="MalformedHistory"):
            await conversation.run("again")
    assert [cut.reason for cut in events_of(conversation, Condensation)] == ["repair", "repair"]


async def test_a_refused_history_with_nothing_to_forget_is_an_error() -> None:
    async with talk(scripted(model([MalformedHistory("no")]))) as conversation:
        with pytest.raises(RunError):
            await conversation.run("go")
    assert not events_of(conversation, Condensation)


async def test_what_was_cut_is_cut_after_a_restart_and_comes_back_with_a_rewind() -> None:
    store = MemoryStore()
    agent = scripted(model([say("none"), say("one"), say("two"), say("three")]), condenser=Window())
    async with talk(agent, store=store, id="c") as conversation:
        await conversation.run("zero")
        await conversation.run("first " * 900)
        before = conversation.state.head
        await conversation.run("second " * 900)
        assert await conversation.condense() is not None
        shown = list(build_messages(conversation.state))
    async with talk(agent, store=store, id="c") as conversation:
        assert list(build_messages(conversation.state)) == shown
        await conversation.rewind(before)
        texts = [message.text for message in build_messages(conversation.state)]
        assert any(text.startswith("first ") for text in texts)
        assert "one" in texts


async def test_illegal_cuts_are_refused_by_name() -> None:
    problems: list[str] = []

    def probe(outline: Outline) -> None:
        first, reply, *_ = outline.items
        newest = outline.items[-1]
        (_, answer) = reply.ids
        for cut in (
            Condensation(),
            Condensation(forgotten=("ev_x",)),
            Condensation(forgotten=(answer,), summary="s"),
            Condensation(forgotten=newest.ids, summary="s"),
            Condensation(forgotten=first.ids),
            Condensation(forgotten=reply.ids, summary="  "),
            Condensation(masked=first.ids),
            Condensation(masked=(answer, "ev_x")),
            Condensation(masked=(answer,), summary="s"),
        ):
            with pytest.raises(InvalidCondensation) as caught:
                outline.check(cut)
            problems.append(str(caught.value))
        outline.check(Condensation(masked=(answer,)))
        outline.check(Condensation(forgotten=(*first.ids, *reply.ids), summary="s"))

    llm = model([call("read", size=5), say("a"), say("b")])
    async with talk(
        scripted(llm, read, condenser=Own(lambda o: probe(o) if len(o.items) == 4 else None))
    ) as conversation:
        await conversation.run("one")
        await conversation.run("two")
    expected = [
        "empty",
        "ev_x, which the model is not shown",
        "part of a reply",
        "newest message of the user",
        "begins with the agent",
        "blank",
        "only answers",
        "ev_x",
        "stands for nothing",
    ]
    assert [word in problem for word, problem in zip(expected, problems, strict=True)] == [True] * 9


async def test_a_masked_answer_is_shown_as_left_out_and_is_masked_once() -> None:
    def mask(outline: Outline) -> Condensation | None:
        answers = [event for item in outline.items for event in item.observations if outline.mask_frees(event) > 100]
        return outline.mask(answers) if answers else None

    llm = model([call("read", size=900), say("a")])
    async with talk(scripted(llm, read, condenser=Own(mask))) as conversation:
        await conversation.run("go")
    (cut,) = events_of(conversation, Condensation)
    assert len(cut.masked) == 1
    assert not cut.forgotten
    (answer,) = llm.requests[-1].messages[-1].content
    assert isinstance(answer, ToolResultBlock)
    assert answer.text == LEFT_OUT
    assert Message.user("go") in llm.requests[-1].messages


async def test_usage_of_a_whole_conversation_with_no_condenser_is_as_ever() -> None:
    async with talk(Agent(llm=model([ContextWindowExceeded("too large")]))) as conversation:
        with pytest.raises(RunError):
            await conversation.run("go")
    assert not events_of(conversation, CondensationRequest)
