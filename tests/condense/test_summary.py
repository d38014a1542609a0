"""The summary: when it is asked for, what it absorbs, what the log adds to it, and what follows where the model fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, cast

import anyio
import pytest

from agentcore import Agent, Conversation, ConversationStateUpdateEvent, Limits, MemoryStore, tool
from agentcore.condense import FACTS, SUMMARY, SUMMARY_FIELDS, Summary
from agentcore.errors import ContextWindowExceeded, LimitReached, ModelError
from agentcore.events import Condensation, ContextNotice, InterruptEvent, UsageEvent
from agentcore.llm import LLM, Features, register_model
from agentcore.messages import Message
from agentcore.testing import ScriptedLLM, call, hang, say
from agentcore.testing.script import Request, ScriptLine
from agentcore.usage import Usage
from agentcore_tools import read_file_tool, task_tracker_tool, write_file_tool
from talks import events_of, running, scripted, talk, until

SMALL = Features(context_window=10_000, max_output_tokens=2_000)
"""A model with room for 8,000 tokens."""
WRITTEN = "## Goal\nShip it.\n\n## Done\nStep one, in src/a.py.\n\n## Next steps\nNone."


@tool
async def read(size: int) -> str:
    """Return so many words."""
    return "word " * size


def is_summary_request(request: Request) -> bool:
    return "replaced by a summary" in request.last.text


def model(work: Callable[[Request], ScriptLine], summary: ScriptLine = WRITTEN, **features: Any) -> ScriptedLLM:
    def answer(request: Request) -> ScriptLine:
        return summary if is_summary_request(request) else work(request)

    return ScriptedLLM(answer, features=Features(**features) if features else SMALL)


def fine(_: Request) -> ScriptLine:
    return say("fine")


def working(count: int, size: int = 800) -> Callable[[Request], ScriptLine]:
    """Call a tool so many times, and then end."""
    left = iter(range(count))

    def work(_: Request) -> ScriptLine:
        number = next(left, None)
        return say("done") if number is None else call("read", size=size + number)

    return work


def cuts_of(conversation: Conversation) -> list[Condensation]:
    return events_of(conversation, Condensation)


def notices_of(conversation: Conversation) -> list[ContextNotice]:
    facts = [event.update for event in events_of(conversation, ConversationStateUpdateEvent)]
    return [fact for fact in facts if isinstance(fact, ContextNotice)]


def facts_of(cut: Condensation) -> dict[str, Any]:
    return cast("dict[str, Any]", cut.fields[FACTS])


def words_of(cut: Condensation) -> list[str]:
    return [each["text"] for each in facts_of(cut)["words"]]


async def test_a_summary_stands_for_what_is_oldest_and_takes_in_the_one_before() -> None:
    llm = model(working(20))
    async with talk(scripted(llm, read, condenser=Summary())) as conversation:
        assert (await conversation.run("the task")).text == "done"
        cuts = cuts_of(conversation)
        assert len(cuts) >= 3
        assert not notices_of(conversation)
        for cut, later in pairwise(cuts):
            assert cut.id in later.forgotten
        assert all(cut.condenser == "summary" and cut.reason == "soft" for cut in cuts)
        assert cuts[-1].fields[SUMMARY] == {"Goal": "Ship it.", "Done": "Step one, in src/a.py."}
        last = llm.requests[-1].messages
        assert last[1].text == "the task"
        assert "## Done\nStep one, in src/a.py." in last[2].text
        assert sum("Ship it." in message.text for message in last) == 1


async def test_the_request_is_the_prefix_of_the_step_and_one_message() -> None:
    llm = model(working(8))
    async with talk(scripted(llm, read, condenser=Summary())) as conversation:
        await conversation.run("the task")
    index = next(index for index, request in enumerate(llm.requests) if is_summary_request(request))
    before, asked = llm.requests[index - 1], llm.requests[index]
    shared = min(len(before.messages), len(asked.messages) - 1)
    assert shared > len(before.messages) / 2
    assert list(asked.messages[:shared]) == list(before.messages[:shared])
    assert asked.tools == before.tools
    assert all(f"## {name}" in asked.last.text for name in SUMMARY_FIELDS)


@tool
async def note(text: str) -> str:
    """Note something."""
    return text


async def test_tasks_and_the_users_words_are_exact_after_ten_cuts() -> None:
    said = [f'Message {number}:\n  keep "this" & <that>, exactly  ' for number in range(90)]
    tasks = [{"title": f"Task {number}", "notes": f"line\nid-{number}", "status": "todo"} for number in range(4)]
    script = iter(range(10**6))

    def work(request: Request) -> ScriptLine:
        number = next(script)
        if number == 0:
            return call("task_tracker", command="plan", task_list=cast("Any", tasks))
        return say(f"reply {number} " + "long " * 1_200)

    llm = model(work, context_window=20_000, max_output_tokens=2_000)
    agent = scripted(llm, task_tracker_tool(), condenser=Summary())
    async with talk(agent) as conversation:
        for text in said:
            await conversation.run(text)
        cuts = cuts_of(conversation)
        assert len(cuts) >= 10
        cut = cuts[-1]
        assert facts_of(cut)["tasks"] == tasks
        assert facts_of(cut)["left_out"] == 0
        shown = "\n".join(message.text for message in llm.requests[-1].messages)
        assert [text for text in said if text not in shown] == []
        assert words_of(cut) == said[1 : 1 + len(words_of(cut))]  # the first one stays where it is
        assert "1. [ ] Task 0\n   line\n   id-0" in shown


async def test_words_that_have_no_room_are_left_out_and_recall_is_named() -> None:
    llm = model(fine)
    async with talk(scripted(llm, condenser=Summary())) as conversation:
        for number in range(12):
            await conversation.run(f"{number} " + "long " * 900)
        cut = cuts_of(conversation)[-1]
        facts = facts_of(cut)
        assert facts["left_out"] + len(facts["words"]) > 4
        assert facts["left_out"] > 0
        assert f"({facts['left_out']} older messages are left out here; `recall` finds and reads them.)" in (
            cut.summary or ""
        )
        assert sum(map(len, words_of(cut))) / 4 <= 0.2 * 0.4 * 8_000 * 1.1
        assert facts["words"][-1]["clipped"]


async def test_files_are_listed_as_read_or_changed_and_carried_over() -> None:
    steps = iter(
        [
            call("write_file", file_path="made.txt", content="one\n"),
            call("read_file", path="made.txt"),
            call("write_file", file_path="seen.txt", content="x\n"),
            *(call("read", size=800 + number) for number in range(16)),
        ]
    )
    llm = model(lambda _: next(steps, None) or say("done"))
    agent = scripted(llm, read, read_file_tool(), write_file_tool(), condenser=Summary())
    async with talk(agent) as conversation:
        await conversation.workspace.write("only_read.txt", b"text\n")
        await conversation.run("go")
        cuts = cuts_of(conversation)
        assert len(cuts) >= 2
        changed = [path.rpartition("/")[2] for path in facts_of(cuts[-1])["changed"]]
        assert changed == ["made.txt", "seen.txt"]
        assert facts_of(cuts[-1])["read"] == []


async def test_a_summary_of_earlier_summaries_alone_asks_with_what_they_say() -> None:
    llm = model(working(20))
    async with talk(scripted(llm, read, condenser=Summary())) as conversation:
        await conversation.run("the task")
    later = [request for request in llm.requests if is_summary_request(request)][1]
    assert any("Ship it." in message.text for message in later.messages[:-1])


FAILURES: Sequence[tuple[str, ScriptLine, str]] = [
    ("calls", call("read", size=1), "called a tool instead"),
    ("empty", say("  \n "), "answered without words"),
    ("error", ModelError("the provider is gone"), "the provider is gone"),
    ("too large", ContextWindowExceeded("too large"), "too large"),
]


@pytest.mark.parametrize(("name", "summary", "told"), FAILURES, ids=[each[0] for each in FAILURES])
async def test_where_the_model_fails_the_run_goes_on_and_then_the_oldest_part_goes(
    name: str, summary: ScriptLine, told: str
) -> None:
    del name
    llm = model(working(12), summary)
    async with talk(scripted(llm, read, condenser=Summary())) as conversation:
        assert (await conversation.run("the task")).text == "done"
        notices = notices_of(conversation)
        assert told in notices[0].detail
        assert "The history stays as it is." in notices[0].detail
        assert "The oldest part of the history was forgotten instead." in notices[-1].detail
        assert {(cut.condenser, cut.reason) for cut in cuts_of(conversation)} == {("window", "hard")}


async def test_a_huge_summary_is_not_taken_and_not_asked_for_at_each_step() -> None:
    llm = model(working(6, 600), say("garbage " * 4_000))
    async with talk(scripted(llm, read, condenser=Summary())) as conversation:
        await conversation.run("the task " + "long " * 2_400)
        assert [cut for cut in cuts_of(conversation) if cut.reason == "soft"] == []
    assert sum(map(is_summary_request, llm.requests)) <= 3


async def test_a_summary_without_headings_is_kept_as_notes() -> None:
    text = "# My title\n\nWe did things.\n\n**Goal**: \n\nWin.\n\n### Detail\nmore\n\n## Own\nkept"
    llm = model(working(8), say(text))
    async with talk(scripted(llm, read, condenser=Summary())) as conversation:
        await conversation.run("the task")
        fields = cuts_of(conversation)[0].fields[SUMMARY]
    assert fields == {
        "Goal": "Win.\n\n### Detail\nmore",
        "Notes": "# My title\n\nWe did things.\n\n## Own\nkept",
    }


async def test_headings_of_many_spaces_are_read_once() -> None:
    written = f"# a{' ' * 1_000}b\n**c{' ' * 1_000}\n## Done{' ' * 1_000}#\nAll of it.\n```{chr(10) * 1_000}x"
    llm = model(working(20), say(written))
    async with talk(scripted(llm, read, condenser=Summary())) as conversation:
        await conversation.run("the task")
        assert str(cuts_of(conversation)[0].fields[SUMMARY]).count("All of it.") == 1


async def test_own_fields_are_asked_for_and_parsed() -> None:
    llm = model(working(8), say("## Bugs\nOne.\n## Goal\nOther."))
    async with talk(scripted(llm, read, condenser=Summary(fields={"Bugs": "each bug"}))) as conversation:
        await conversation.run("the task")
        assert cuts_of(conversation)[0].fields[SUMMARY] == {"Bugs": "One.", "Notes": "## Goal\nOther."}
    asked = next(request for request in llm.requests if is_summary_request(request))
    assert "## Bugs\n(each bug)" in asked.last.text


async def test_a_request_that_is_too_large_is_made_once_more_with_half_of_it() -> None:
    asked: list[Request] = []

    def summary(request: Request) -> ScriptLine:
        asked.append(request)
        return ContextWindowExceeded("too large") if len(asked) == 1 else say(WRITTEN)

    llm = model(working(8), summary)
    async with talk(scripted(llm, read, condenser=Summary())) as conversation:
        await conversation.run("the task")
        cut = cuts_of(conversation)[0]
    assert 1 < len(asked[1].messages) < len(asked[0].messages)
    assert list(asked[1].messages[:-1]) == list(asked[0].messages[: len(asked[1].messages) - 1])
    # The system prompt, the task, and two messages for each reply; what it has not read it does not forget.
    assert len(cut.forgotten) == len(asked[1].messages) - 3


async def test_another_model_may_write_it_and_its_usage_counts() -> None:
    writer = ScriptedLLM(lambda _: say(WRITTEN, usage=Usage(input_tokens=11)), name="writer")
    async with talk(scripted(model(working(8)), read, condenser=Summary(llm=writer))) as conversation:
        await conversation.run("the task")
        usage = [event for event in events_of(conversation, UsageEvent) if event.purpose == "condense"]
        assert [(event.model, event.usage.input_tokens) for event in usage] == [("writer", 11)] * len(usage)
        assert usage
    assert writer.requests


async def test_an_interrupt_ends_a_summary_that_hangs_and_the_run_can_go_on() -> None:
    hanging = True

    def summary(_: Request) -> ScriptLine:
        return hang if hanging else say(WRITTEN)

    llm = model(working(8), summary)
    async with talk(scripted(llm, read, condenser=Summary())) as conversation:
        async with running(conversation, "the task"):
            await until(lambda: any(map(is_summary_request, llm.requests)))
            await conversation.interrupt()
        assert events_of(conversation, InterruptEvent)
        assert not cuts_of(conversation)
        hanging = False
        assert (await conversation.run()).text == "done"
        assert cuts_of(conversation)


async def test_a_summary_that_takes_longer_than_a_step_may_is_given_up() -> None:
    llm = model(working(6), hang)
    async with talk(scripted(llm, read, condenser=Summary()), limits=Limits(step_seconds=0.3)) as conversation:
        assert (await conversation.run("the task")).text == "done"
        assert "longer than the 0.3 s of a step" in notices_of(conversation)[0].detail


async def test_a_used_up_budget_is_the_error_of_who_asks() -> None:
    llm = model(lambda _: say("fine", usage=Usage(input_tokens=10)))
    async with talk(scripted(llm, condenser=Summary())) as conversation:
        for _ in range(3):
            await conversation.run("word " * 900)
        await conversation.set_limits(Limits(tokens=5))
        with pytest.raises(LimitReached):
            await conversation.condense()
        assert not cuts_of(conversation)


async def test_a_secret_is_in_no_summary_and_in_no_field() -> None:
    llm = model(working(8), say("## Goal\nUse correct-horse-battery at once.\n## Done\nSent correct-horse-battery."))
    secrets = {"TOKEN": "correct-horse-battery"}
    async with talk(scripted(llm, read, condenser=Summary()), secrets=secrets) as conversation:
        await conversation.run("the task")
        await conversation.run("My token is correct-horse-battery.")
        await conversation.condense()
        cut = cuts_of(conversation)[-1]
        assert "<secret:TOKEN>" in (cut.summary or "")
        assert "correct-horse-battery" not in cut.model_dump_json()


class Played(ScriptedLLM):
    """A script that a log can name."""

    def record(self) -> Any:
        return {"kind": "played_summaries", "model": "played"}


def played(*_: object) -> Played:
    """Make the script, also of what a log has of it."""
    script = iter([*(say("long " * 900 + str(number)) for number in range(12))])
    return Played(lambda request: say(WRITTEN) if is_summary_request(request) else next(script), features=SMALL)


async def test_a_conversation_that_is_resumed_from_its_log_alone_goes_on_with_its_condenser() -> None:
    register_model("played_summaries", played)
    store = MemoryStore()
    async with talk(Agent(llm=played(), condenser=Summary()), store=store, id="c") as conversation:
        for number in range(6):
            await conversation.run(f"number {number}")
        before = len(cuts_of(conversation))
    async with talk(None, store=store, id="c") as conversation:
        for number in range(6, 12):
            await conversation.run(f"number {number}")
        cuts = cuts_of(conversation)
    assert 0 < before < len(cuts)
    assert {cut.condenser for cut in cuts} == {"summary"}
    assert cuts[-2].id in cuts[-1].forgotten
    assert words_of(cuts[-1]) == [f"number {number}" for number in range(1, 1 + len(words_of(cuts[-1])))]


async def test_its_parameters_are_in_the_record_of_the_agent() -> None:
    store = MemoryStore()
    condenser = Summary(llm=LLM(model="openai/gpt-5-mini"), fields={"Goal": "the goal"}, soft=0.5, down_to=0.2)
    agent = Agent(llm=LLM(model="openai/gpt-5-mini"), condenser=condenser)
    async with talk(agent, store=store, id="c") as conversation:
        await conversation.send("hello")
    async with talk(None, store=store, id="c") as conversation:
        recorded = conversation.state.agent
    assert recorded is not None
    assert recorded.missing == ()
    made = cast("dict[str, Any]", recorded.agent["condenser"])
    assert made["name"] == "summary"
    assert made["params"]["fields"] == {"Goal": "the goal"}
    assert (made["params"]["soft"], made["params"]["down_to"]) == (0.5, 0.2)
    assert made["params"]["llm"]["model"] == "openai/gpt-5-mini"


def test_limits_that_no_history_keeps_are_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("soft=0.4 and down_to=0.7")):
        Summary(soft=0.4, down_to=0.7)
    with pytest.raises(TypeError, match="`llm` must be a model"):
        Summary(llm=cast("Any", "gpt"))


async def test_a_message_of_the_user_that_comes_while_it_is_written_is_read() -> None:
    arrived = anyio.Event()

    async def summary(_: Request) -> ScriptLine:
        await arrived.wait()
        return say(WRITTEN)

    llm = model(working(8), summary)
    async with talk(scripted(llm, read, condenser=Summary())) as conversation:
        async with running(conversation, "the task"):
            await until(lambda: any(map(is_summary_request, llm.requests)))
            await conversation.send("and this")
            arrived.set()
        assert cuts_of(conversation)
        assert Message.user("and this") in llm.requests[-1].messages
