"""A cut that a program asks for, and a condenser that is stopped."""

from __future__ import annotations

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore import Limits
from agentcore.condense import Facts, Outline, Summary, Window, Words, oldest
from agentcore.errors import LimitReached
from agentcore.events import (
    Condensation,
    InterruptEvent,
    UsageEvent,
)
from agentcore.testing import call, say
from agentcore.testing.script import Request, ScriptLine
from agentcore.usage import Usage
from cutting import Own, model, notices, read
from talks import events_of, running, scripted, talk, until


async def summarise(outline: Outline) -> Condensation | None:
    if outline.reason != "asked":
        return None
    items = oldest(outline)
    reply = await outline.ask("Summarise.", before=outline.items.index(items[-1]) + 1)
    return outline.forget(items, summary=reply.message.text)


async def test_a_program_may_ask_for_a_cut_and_its_cost_counts() -> None:
    llm = model(
        [*[say("ok", usage=Usage(input_tokens=1))] * 3, say("In short.", usage=Usage(input_tokens=7)), say("end")]
    )
    async with talk(scripted(llm, condenser=Own(summarise))) as conversation:
        for number in range(3):
            await conversation.run(f"{number} " + "word " * 500)
        asked = llm.requests[-1]
        cut = await conversation.condense()
        assert cut is not None
        assert (cut.reason, cut.summary) == ("asked", "In short.")
        # The step's own messages and one more: the provider has them in its cache.
        request = llm.requests[-1]
        assert list(asked.messages[: len(request.messages) - 1]) == list(request.messages[:-1])
        assert request.tools == asked.tools
        assert conversation.state.usage.input_tokens == 10
        usage = events_of(conversation, UsageEvent)[-1]
        assert (usage.purpose, usage.usage.input_tokens, conversation.state.run.steps) == ("condense", 7, 1)
        await conversation.run("go on")
        assert "In short." in [message.text for message in llm.requests[-1].messages]
        assert conversation.state.last_user_seq in [event.seq for event in conversation.state.shown]


async def test_it_returns_the_cut_as_the_log_has_it() -> None:
    agent = scripted(model([say("My token is correct-horse-battery.")] * 3), condenser=Own(with_a_secret))
    async with talk(agent, secrets={"TOKEN": "correct-horse-battery"}) as conversation:
        for _ in range(3):
            await conversation.run("word " * 500)
        cut = await conversation.condense()
        assert cut is not None
        assert cut == events_of(conversation, Condensation)[-1]
        assert (cut.seq, cut.summary) == (conversation.state.head, "Use <secret:TOKEN>.")


def with_a_secret(outline: Outline) -> Condensation | None:
    return outline.forget(oldest(outline), summary="Use correct-horse-battery.") if outline.reason == "asked" else None


async def test_a_summary_names_recall_only_where_the_agent_has_it() -> None:
    for condenser, named in ((None, False), (Summary(), True)):
        llm = model([*[say("ok")] * 3, say("## Goal\nShip it.")])
        async with talk(scripted(llm, condenser=condenser)) as conversation:
            for _ in range(3):
                await conversation.run("word " * 1_200)
            cut = await conversation.condense()
        assert cut is not None
        assert cut.condenser == "summary"
        assert ("`recall`" in (cut.summary or "")) is named
        assert "is not shown any more" in (cut.summary or "")
    facts = Facts(words=[Words(3, "long", clipped=True)], left_out=2).to_text(recall=False)
    assert "(2 older messages are left out here.)" in facts
    assert "(The rest is left out.)" in facts


async def test_asking_obeys_budgets_and_time_and_raises_what_it_failed_with() -> None:
    async def slow(outline: Outline) -> None:
        del outline
        await anyio.sleep_forever()

    llm = model([say("ok", usage=Usage(input_tokens=50))] * 3)
    async with talk(scripted(llm, condenser=Own(summarise))) as conversation:
        for _ in range(3):
            await conversation.run("word " * 500)
        await conversation.set_limits(Limits(tokens=10))
        with pytest.raises(LimitReached):
            await conversation.condense()
    async with talk(
        scripted(model([say("ok")]), condenser=Own(lambda o: slow(o) if o.reason == "asked" else None))
    ) as conversation:
        await conversation.run("go")
        await conversation.set_limits(Limits(step_seconds=0.01))
        with pytest.raises(TimeoutError):
            await conversation.condense()
        assert conversation.state.status == "finished"


async def test_asked_for_during_a_step_it_waits_for_the_step_to_end() -> None:
    gate = anyio.Event()

    async def held(request: Request) -> ScriptLine:
        del request
        await gate.wait()
        return call("read", size=3)

    llm = model([say("ok"), say("ok"), held, say("done"), say("never")])
    async with talk(scripted(llm, read, condenser=Window())) as conversation:
        await conversation.run("word " * 1_200)
        await conversation.run("word " * 1_200)
        cuts: list[Condensation | None] = []
        async with running(conversation, "word"), anyio.create_task_group() as tasks:
            await until(lambda: len(llm.requests) == 3)

            async def cut() -> None:
                cuts.append(await conversation.condense())

            tasks.start_soon(cut)
            for _ in range(20):
                await checkpoint()
            assert not cuts
            gate.set()
    assert cuts[0] is not None


async def test_an_interrupt_ends_a_condenser_that_hangs_and_a_step_that_takes_too_long_goes_on_without() -> None:
    async def hang(outline: Outline) -> None:
        del outline
        await anyio.sleep_forever()

    hanging = Own(hang)
    async with talk(scripted(model([say("ok")]), condenser=hanging)) as conversation:
        async with running(conversation) as begun:
            await until(lambda: hanging.seen)
            await conversation.interrupt()
        assert begun.outcome is not None
        assert events_of(conversation, InterruptEvent)
        await conversation.set_limits(Limits(step_seconds=0.01))
        assert (await conversation.run()).text == "ok"
        assert "longer than the 0.01 s" in notices(conversation)[0].detail
