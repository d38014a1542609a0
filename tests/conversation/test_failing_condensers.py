"""Condensers of a program's own that fail: the notice in the log, and the error of who asks."""

from __future__ import annotations

from typing import Any, Final, cast

import pytest

from agentcore import Agent, Conversation, Limits
from agentcore.agent import record_agent
from agentcore.condense import Condenser, Outline, Pipeline, Structured, Window
from agentcore.errors import InvalidCondensation
from agentcore.events import Condensation
from agentcore.testing import say
from agentcore.testing.script import Request, ScriptLine
from agentcore.usage import Usage
from cutting import Own, model, notices
from talks import events_of, scripted, talk


class NotAsync:
    """A condenser whose author forgot the `async`."""

    def condense(self, outline: Outline) -> Condensation | None:
        del outline
        return None


def failing(answer: Any) -> Condenser:
    """Return a condenser that answers so where the history is large."""
    return Own(lambda outline: answer if outline.used > 5_600 or outline.reason == "asked" else None)


def raising(outline: Outline) -> None:
    if outline.used > 5_600:
        raise ZeroDivisionError("a fault in it")


async def grow(conversation: Conversation, first: int, more: int = 0) -> None:
    """Have a history of so many tokens, about, and then let it grow by 5 % and more of the room as often."""
    await conversation.run("long " * round(first * 0.8))
    for _ in range(more):
        await conversation.run("long " * 360)


WRONG: list[tuple[Condenser, str]] = [
    (failing("a summary"), "Own: its condense() returned a str, not a Condensation or None."),
    (failing(5), "Own: its condense() returned an int, not a Condensation or None."),
    (
        cast("Condenser", NotAsync()),
        "NotAsync: its condense() is not async: write `async def condense(self, outline)`.",
    ),
    (Pipeline(cast("Any", NotAsync()), Window()), "NotAsync: its condense() is not async"),
    (Own(raising), "It failed with ZeroDivisionError: a fault in it"),
]


@pytest.mark.parametrize(("condenser", "told"), WRONG)
async def test_one_that_fails_is_noticed_once_until_it_answers(condenser: Condenser, told: str) -> None:
    async with talk(scripted(model([say("ok")] * 9), condenser=condenser)) as conversation:
        await grow(conversation, 5_800, more=3)
        (notice,) = notices(conversation)
    assert notice.code == "condenser_failed"
    assert told in notice.detail
    assert notice.detail.endswith("The history stays as it is.")
    assert not events_of(conversation, Condensation)


async def test_it_is_noticed_also_where_nothing_can_be_forgotten_instead() -> None:
    async with talk(scripted(model([say("ok")] * 3), condenser=failing("a summary"))) as conversation:
        await grow(conversation, 7_600)
        (notice,) = notices(conversation)
        assert "its condense() returned a str" in notice.detail
        assert notice.detail.endswith("Nothing else can be forgotten: the history stays as it is.")
        await conversation.run("long " * 400)
        assert len(notices(conversation)) == 1


async def test_one_that_answers_and_fails_again_is_noticed_again_and_asked_also_after_the_fallback() -> None:
    fails = True

    def answer(outline: Outline) -> Any:
        return "a summary" if fails and outline.used > 5_600 else None

    own = Own(answer)
    async with talk(scripted(model([say("ok")] * 30), condenser=own)) as conversation:
        await grow(conversation, 1_000)
        while not events_of(conversation, Condensation):
            await conversation.run("long " * 360)
        first = [notice.detail for notice in notices(conversation)]
        assert [detail.rpartition(". ")[2] for detail in first] == [
            "The history stays as it is.",
            "The oldest part of the history was forgotten instead.",
        ]
        asked = len(own.seen)
        fails = False
        await conversation.run("go on")
        assert len(own.seen) > asked
        fails = True
        while len(notices(conversation)) == 2:
            await conversation.run("long " * 360)
        assert notices(conversation)[-1].detail.endswith("The history stays as it is.")


async def test_who_asks_for_a_cut_gets_the_error() -> None:
    for condenser, told in WRONG[:4]:
        async with talk(scripted(model([say("ok")]), condenser=condenser)) as conversation:
            await conversation.run("go")
            with pytest.raises(TypeError, match=told.partition("(")[0]):
                await conversation.condense()


# Here, since what checks a schema is imported at the first one, which an event loop would wait for.
RECORD: Final = Structured({"type": "object"})


async def test_a_budget_that_a_summary_uses_up_is_a_notice_in_a_run() -> None:
    def answer(request: Request) -> ScriptLine:
        asked = "replaced by a record" in request.last.text
        return say("not JSON", usage=Usage(input_tokens=100_000)) if asked else say("ok")

    async with talk(scripted(model(answer), condenser=RECORD), limits=Limits(tokens=100_000)) as conversation:
        for _ in range(5):
            await conversation.run("long " * 1_200)
        (notice,) = notices(conversation)
        assert conversation.state.status_code == "tokens"
    assert (notice.name, notice.code) == ("structured", "condenser_failed")
    assert "its limit is 100000. The model was not asked." in notice.detail
    assert notice.detail.endswith("The history stays as it is.")
    assert not events_of(conversation, Condensation)


async def test_a_timeout_within_a_condenser_is_not_taken_for_that_of_the_step() -> None:
    def late(outline: Outline) -> None:
        del outline
        raise TimeoutError("of its own request")

    async with talk(scripted(model([say("ok")]), condenser=Own(late))) as conversation:
        await conversation.run("go")
        assert "It failed with TimeoutError: of its own request" in notices(conversation)[0].detail


async def test_what_an_outline_cannot_forget_is_refused_in_a_sentence() -> None:
    problems: list[str] = []

    def probe(outline: Outline) -> None:
        any_of: Any = outline
        for make, error in (
            (lambda: any_of.forget(["nope"]), TypeError),
            (lambda: any_of.forget(outline.items[0]), TypeError),
            (lambda: any_of.forget(outline.items[:1], summary=5), TypeError),
            (lambda: any_of.forget(outline.items[:1], summary="s", fields=5), TypeError),
            (lambda: any_of.mask(["nope"]), TypeError),
            (lambda: any_of.forget([]), InvalidCondensation),
        ):
            with pytest.raises(error) as caught:
                make()
            problems.append(str(caught.value))

    async with talk(scripted(model([say("ok")]), condenser=Own(probe))) as conversation:
        await conversation.run("go")
        assert not notices(conversation)
    expected = [
        "`items` must be a list of items of `outline.items`, not ['nope'].",
        "`items` must be a list of items of `outline.items`, not an object of type OutlineItem.",
        "`summary` must be text, or None, not 5.",
        "`fields` must be a dict, or None, not 5.",
        "`mask` must be a list of answers, as `item.observations` has them, not ('nope',).",
        "It is empty: it neither forgets nor masks anything.",
    ]
    assert problems == expected


def test_one_whose_record_is_of_a_wrong_type_is_refused_by_name() -> None:
    class Recorded(NotAsync):
        def record(self) -> Any:
            return {"name": "recorded"}

    agent = Agent(llm=model([say("ok")]), condenser=cast("Any", Recorded()))
    with pytest.raises(TypeError, match=r"Recorded: its record\(\) returned a dict, not a CondenserSpec or None"):
        record_agent(agent)
