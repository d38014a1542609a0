"""The other condensers: what each leaves out and when, and that each is recorded and made again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from pydantic import BaseModel

from agentcore import Agent, Conversation, tool
from agentcore.agent import record_agent, restore_agent
from agentcore.condense import (
    FACTS,
    SUMMARY,
    Amortised,
    Condenser,
    CondenserSpec,
    Masking,
    Outline,
    Pipeline,
    Structured,
    Summary,
    Window,
    register_condenser,
    resolve_condenser,
)
from agentcore.context import LEFT_OUT
from agentcore.errors import ToolNotFound
from agentcore.events import Condensation, ContextNotice, ConversationStateUpdateEvent, ObservationEvent
from agentcore.llm import LLM, Features
from agentcore.messages import ToolResultBlock
from agentcore.testing import ScriptedLLM, call, say
from agentcore.testing.script import Request, ScriptLine
from talks import events_of, scripted, talk

SMALL = Features(context_window=10_000, max_output_tokens=2_000)
"""A model with room for 8,000 tokens."""


@tool
async def read(size: int) -> str:
    """Return so many words."""
    return "word " * size


@tool
async def browse(size: int) -> str:
    """Return a page."""
    return "page " * size


def working(*lines: ScriptLine, summary: ScriptLine = "## Goal\nShip it.") -> ScriptedLLM:
    script = iter([*lines, say("done")])

    def answer(request: Request) -> ScriptLine:
        return summary if "You go on with the work from it" in request.last.text else next(script)

    return ScriptedLLM(answer, features=SMALL)


def reading(count: int, name: str = "read", size: int = 800) -> list[ScriptLine]:
    return [call(name, size=size + number) for number in range(count)]


def cuts_of(conversation: Conversation) -> list[Condensation]:
    return events_of(conversation, Condensation)


def notices_of(conversation: Conversation) -> list[ContextNotice]:
    facts = [event.update for event in events_of(conversation, ConversationStateUpdateEvent)]
    return [fact for fact in facts if isinstance(fact, ContextNotice)]


async def test_masking_leaves_out_old_answers_and_keeps_every_call_and_the_newest_answers() -> None:
    llm = working(*reading(6))
    async with talk(scripted(llm, read, condenser=Masking())) as conversation:
        await conversation.run("the task")
        (cut,) = cuts_of(conversation)
        answers = events_of(conversation, ObservationEvent)
    assert cut.masked == tuple(answer.id for answer in answers[: len(cut.masked)])
    assert not cut.forgotten
    assert cut.tokens_before is not None
    assert cut.tokens_after is not None
    assert cut.tokens_after <= 0.8 * cut.tokens_before
    messages = llm.requests[-1].messages
    texts = [b.text for message in messages for b in message.content if isinstance(b, ToolResultBlock)]
    assert len(texts) == 6
    assert [text == LEFT_OUT for text in texts] == [True] * len(cut.masked) + [False] * (6 - len(cut.masked))


async def test_masking_of_one_tool_leaves_the_others_alone_and_waits_until_it_frees_a_fifth() -> None:
    llm = working(*reading(2, "browse", 200), *reading(5))
    async with talk(scripted(llm, read, browse, condenser=Masking(tools=["browse"]))) as conversation:
        await conversation.run("the task")
        assert [cut for cut in cuts_of(conversation) if cut.masked] == []
    llm = working(*reading(3, "browse"), *reading(4))
    async with talk(scripted(llm, read, browse, condenser=Masking(tools=["browse"]))) as conversation:
        await conversation.run("the task")
        masked = {event_id for cut in cuts_of(conversation) for event_id in cut.masked}
        answers = events_of(conversation, ObservationEvent)
    assert [answer.tool_name for answer in answers if answer.id in masked] == ["browse"] * 3


async def test_masking_that_is_asked_for_does_not_wait() -> None:
    llm = working(say("long " * 3_000), *reading(1, size=550), say("long " * 900))
    async with talk(scripted(llm, read, condenser=Masking(soft=1))) as conversation:
        await conversation.run("the task")
        await conversation.run("read it")
        await conversation.run("and go on")
        cut = await conversation.condense()
    assert cut is not None
    assert cut.tokens_before is not None
    assert cut.tokens_after is not None
    assert 0.8 * cut.tokens_before < cut.tokens_after < 0.9 * cut.tokens_before
    assert len(cut.masked) == 1


async def test_amortised_forgets_the_older_half_of_the_replies() -> None:
    llm = working(*reading(12, size=150))
    async with talk(scripted(llm, read, condenser=Amortised(replies=8))) as conversation:
        await conversation.run("the task")
        (cut,) = cuts_of(conversation)
    assert len(cut.forgotten) == 2 * 4  # of nine replies: four calls with their answers
    assert cut.summary == (
        "(A part of the conversation that stood here is not shown any more; `recall` searches and reads it.)"
    )
    assert llm.requests[-1].messages[1].text == "the task"


async def test_a_pipeline_takes_the_first_answer_and_goes_on_where_that_is_not_enough() -> None:
    agent = scripted(working(*reading(9)), read, condenser=Pipeline(Masking(), Summary()))
    async with talk(agent) as conversation:
        await conversation.run("the task")
        first, *_ = cuts_of(conversation)
        assert first.masked
        assert first.condenser == "pipeline"
    # Nothing of a tool to mask: the summary is asked.
    agent = scripted(working(*reading(9)), read, condenser=Pipeline(Masking(tools=["other"]), Summary()))
    async with talk(agent) as conversation:
        await conversation.run("the task")
        assert all(cut.summary for cut in cuts_of(conversation))
        assert cuts_of(conversation)


class Fixed:
    """Forgets so many items after the first one."""

    def __init__(self, count: int) -> None:
        self.count = count

    async def condense(self, outline: Outline) -> Condensation | None:
        items = [item for item in outline.items[1 : self.count + 1] if not item.protected]
        return outline.forget(items) if outline.reason == "hard" and items else None


async def test_where_it_has_to_be_small_a_pipeline_takes_what_makes_it_small_enough_or_else_frees_most() -> None:
    for condensers, forgotten in (
        ((Fixed(1), Fixed(6)), 12),
        ((Fixed(6), Fixed(1)), 12),
        ((Fixed(2), Fixed(1)), 4),
    ):
        llm = working(*reading(6, size=1_200))
        condenser = Pipeline(*cast("list[Condenser]", condensers))
        async with talk(scripted(llm, read, condenser=condenser)) as conversation:
            await conversation.run("the task")
            cut = cuts_of(conversation)[0]
        assert cut.reason == "hard"
        assert len(cut.forgotten) <= forgotten
        if forgotten == 12:
            assert cut.tokens_after is not None
            assert cut.tokens_after < 0.9 * 8_000


class Record(BaseModel):
    """Where it stands."""

    goal: str
    open: list[str]


async def test_a_structured_summary_is_an_object_of_the_schema_and_corrected_once() -> None:
    answers = iter(['{"goal": 5}', '```json\n{"goal": "Ship", "open": ["tests"]}\n```'])
    asked: list[Request] = []

    def summary(request: Request) -> ScriptLine:
        asked.append(request)
        return say(next(answers))

    agent = scripted(working(*reading(6), summary=summary), read, condenser=Structured(Record))
    async with talk(agent) as conversation:
        await conversation.run("the task")
        (cut,) = cuts_of(conversation)
    assert cut.fields[SUMMARY] == {"goal": "Ship", "open": ["tests"]}
    assert FACTS in cut.fields
    assert '"goal": "Ship"' in (cut.summary or "")
    assert "did not fit" in asked[1].last.text
    assert "'open' is a required property" in asked[1].last.text


async def test_a_structured_summary_that_never_fits_is_a_failure() -> None:
    agent = scripted(working(*reading(6), summary=say("No JSON.")), read, condenser=Structured({"type": "object"}))
    async with talk(agent) as conversation:
        assert (await conversation.run("the task")).text == "done"
        assert "does not fit its schema: It is not JSON" in notices_of(conversation)[0].detail


async def test_the_window_that_stands_in_for_a_failed_summary_keeps_what_earlier_ones_knew() -> None:
    """The user's words are facts: they are carried over by code, also where no model writes a summary."""
    good = iter([True])

    def summary(_: Request) -> ScriptLine:
        return say("## Goal\nShip it.") if next(good, False) else say(" ")

    llm = working(*([say("long " * 900)] * 20), summary=summary)
    async with talk(scripted(llm, condenser=Summary())) as conversation:
        for number in range(14):
            await conversation.run(f"Remember the number {number}.")
        cuts = cuts_of(conversation)
        assert [cut.condenser for cut in cuts[:2]] == ["summary", "window"]
        facts = cast("dict[str, Any]", cuts[-1].fields[FACTS])
        assert [each["text"] for each in facts["words"]][:3] == [f"Remember the number {n}." for n in (1, 2, 3)]
        shown = "\n".join(message.text for message in llm.requests[-1].messages)
        assert all(f"Remember the number {number}." in shown for number in range(14))


CONDENSERS: list[Any] = [
    Summary(),
    Summary(llm=LLM(model="openai/gpt-5-mini"), fields={"Goal": "the goal"}, soft=0.5, down_to=0.2),
    Window(),
    Window(facts=False),
    Masking(),
    Masking(tools=["browse"], keep=0.1, soft=0.3),
    Amortised(replies=7),
    Structured({"type": "object"}),
    Pipeline(Masking(), Summary(), Window()),
]


@pytest.mark.parametrize("condenser", CONDENSERS, ids=repr)
def test_each_is_made_again_from_its_record(condenser: Any) -> None:
    agent = Agent(llm=LLM(model="openai/gpt-5-mini"), condenser=condenser)
    recorded, missing = record_agent(agent)
    assert missing == ()
    made = restore_agent(recorded).condenser
    assert type(made) is type(condenser)
    assert cast("Any", made).record() == condenser.record()


def test_a_type_is_recorded_as_its_schema() -> None:
    spec = Structured(Record).record()
    assert spec is not None
    assert cast("Any", spec.params["schema"])["required"] == ["goal", "open"]
    assert cast("Any", resolve_condenser(spec)).json_schema == spec.params["schema"]


class Own:
    """A condenser of the program's own."""

    def __init__(self, size: int) -> None:
        self.size = size

    async def condense(self, outline: Outline) -> Condensation | None:
        raise AssertionError(outline)

    def record(self) -> CondenserSpec:
        return CondenserSpec(name="own", params={"size": self.size})


def test_one_of_the_programs_own_is_registered_by_name_and_others_are_refused() -> None:
    register_condenser("own", Own)
    made = resolve_condenser(CondenserSpec(name="own", params={"size": 3}))
    assert isinstance(made, Own)
    assert made.size == 3
    with pytest.raises(ToolNotFound, match=r"condenser 'nowhere' .*register_condenser"):
        resolve_condenser(CondenserSpec(name="nowhere"))
    with pytest.raises(ToolNotFound, match="refused its parameters"):
        resolve_condenser(CondenserSpec(name="amortised", params={"replies": 1}))
    with pytest.raises(ValueError, match="another condenser factory"):
        register_condenser("summary", Own)


@pytest.mark.parametrize(
    "condenser",
    [Summary(llm=ScriptedLLM([])), Fixed(1), Pipeline(Masking(), cast("Any", Fixed(1)))],
    ids=["model", "own", "inside"],
)
def test_one_that_cannot_be_recorded_is_named(condenser: Any) -> None:
    _, missing = record_agent(Agent(llm=LLM(model="openai/gpt-5-mini"), condenser=condenser))
    assert missing == (f"the condenser ({type(condenser).__name__})",)


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: Masking(tools="browse"), r"tools=\['browse'\]"),
    (lambda: Masking(tools=cast("Any", 5)), "`tools` must be a list of names, or None, not 5"),
    (lambda: Masking(soft=2), "parts of the room"),
    (lambda: Masking(keep=cast("Any", "a")), "`keep` must be a number, not 'a'"),
    (lambda: Window(facts=cast("Any", "no")), "`facts` must be True or False, not 'no'"),
    (lambda: Summary(soft=cast("Any", "a")), "`soft` must be a number, not 'a'"),
    (lambda: Structured({"type": "objekt"}), "not a valid JSON Schema: .*objekt"),
    (lambda: Structured({"type": "object"}, down_to=cast("Any", "a")), "`down_to` must be a number, not 'a'"),
    (lambda: Amortised(cast("Any", "many")), "`replies` must be a whole number, not 'many'"),
    (lambda: Amortised(replies=1), "at least 2"),
    (Pipeline, "at least one condenser"),
    (lambda: Pipeline(cast("Any", "summary")), "must be a condenser"),
]


@pytest.mark.parametrize(("make", "told"), WRONG)
def test_wrong_values_are_refused(make: Callable[[], object], told: str) -> None:
    with pytest.raises((TypeError, ValueError), match=told):
        make()
