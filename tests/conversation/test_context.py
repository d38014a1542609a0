"""Sources of context in a conversation: what they show, when, and what becomes of one that fails."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given
from hypothesis import strategies as st

from agentcore import (
    LLM,
    Agent,
    AgentContext,
    Condensation,
    ContextAdded,
    Conversation,
    ConversationStateUpdateEvent,
    Limits,
    LocalWorkspace,
    MemoryStore,
    Message,
    SystemPromptEvent,
    UsageEvent,
)
from agentcore.agent import record_agent, restore_agent
from agentcore.context import (
    DEFAULT_PROMPT,
    ContextPart,
    Happened,
    ReadSource,
    SourceContext,
    SourceSpec,
    Today,
    WorkspaceFacts,
    rebuild_request,
    register_context_source,
)
from agentcore.errors import ToolNotFound
from agentcore.events import ContextNotice
from agentcore.messages import ImageBlock
from agentcore.testing import Request, ScriptedLLM, ScriptLine, call, calls, say
from agentcore.tools import AnyTool, Resource, tool
from talks import events_of, ping, scripted, talk


@dataclass
class Notes:
    """A source that shows what the test put into it, and follows words and paths."""

    parts: dict[str, str] = field(default_factory=dict[str, str])
    on_word: dict[str, ContextPart] = field(default_factory=dict[str, ContextPart])
    on_path: dict[str, ContextPart] = field(default_factory=dict[str, ContextPart])
    problems: Sequence[str] = ()
    name: str = "notes"
    opened: int = 0
    asked: list[Happened] = field(default_factory=list[Happened])

    async def open(self, context: SourceContext) -> OpenNotes:
        await checkpoint()
        self.opened += 1
        return OpenNotes(self, [ContextPart(name, text) for name, text in self.parts.items()])

    def record(self) -> SourceSpec | None:
        return None


@dataclass
class OpenNotes:
    source: Notes
    parts: Sequence[ContextPart]

    @property
    def problems(self) -> Sequence[str]:
        return self.source.problems

    async def follow(self, happened: Happened) -> Sequence[ContextPart]:
        await checkpoint()
        self.source.asked.append(happened)
        words = {word for message in happened.messages for word in message.split()}
        by_word = [part for word, part in self.source.on_word.items() if word in words]
        return [*by_word, *(part for path, part in self.source.on_path.items() if path in happened.touched)]


def notes_in(*sources: Any, **settings: Any) -> AgentContext:
    return AgentContext(sources=sources, **settings)


def file_resources(action: Any, root: str) -> tuple[Resource, ...]:
    return (Resource.file(action.path, "read", root=root),)


@tool(read_only=True, resources=file_resources)
async def view(path: str) -> str:
    """View a file."""
    await checkpoint()
    return f"content of {path}"


def added_to(conversation: Conversation) -> list[str]:
    return [event.text for event in events_of(conversation, ContextAdded)]


def prompts_of(conversation: Conversation) -> list[SystemPromptEvent]:
    return events_of(conversation, SystemPromptEvent)


def notices_of(conversation: Conversation) -> list[ContextNotice]:
    updates = [event.update for event in events_of(conversation, ConversationStateUpdateEvent)]
    return [update for update in updates if isinstance(update, ContextNotice)]


async def test_the_parts_of_sources_are_in_the_prompt_before_the_folder_and_the_date() -> None:
    notes = Notes({"a": "First part.", "b": "Second part."})
    context = notes_in(notes, date=True, facts=True)
    async with talk(scripted([say("Done.")], context=context, instructions="Be brief.")) as conversation:
        await conversation.run("go")
        (prompt,) = prompts_of(conversation)
        assert added_to(conversation) == []
    *_, instructions, first, second, facts, folder, date = prompt.prompt.split("\n\n")
    assert (instructions, first, second) == ("Be brief.", "First part.", "Second part.")
    assert facts.startswith("The system is ")
    assert folder.startswith("You work in the folder ")
    assert date.startswith("Today is ")
    assert list(prompt.parts) == ["a", "b", "facts", "date"]


async def test_without_a_context_the_prompt_is_what_it_was() -> None:
    async with talk([say("Done.")]) as conversation:
        await conversation.run("go")
        (prompt,) = prompts_of(conversation)
    folder = f"You work in the folder {conversation.workspace.root}. Relative paths start there."
    assert prompt.prompt == f"{DEFAULT_PROMPT}\n\n{folder}"
    assert (prompt.parts, prompt.base) == ({}, None)


async def test_what_a_message_calls_for_is_appended_once_behind_it() -> None:
    deploy = ContextPart("skill:deploy", "How to deploy.")
    notes = Notes(on_word={"deploy": deploy})
    llm = ScriptedLLM([say("1"), say("2"), say("3")])
    async with talk(scripted(llm, context=notes_in(notes))) as conversation:
        await conversation.run("hello")
        await conversation.run("please deploy")
        await conversation.run("deploy again")
        (added,) = events_of(conversation, ContextAdded)
        message = next(event for event in conversation.state.shown if getattr(event, "text", "") == "please deploy")
    assert (added.name, added.text, added.cause) == ("skill:deploy", "How to deploy.", message.id)
    assert [message.text for message in llm.requests[1].messages[-2:]] == ["please deploy", "How to deploy."]
    assert [happened.messages for happened in notes.asked] == [["hello"], ["please deploy"], ["deploy again"]]
    assert notes.asked[-1].shown == {"skill:deploy"}


async def test_what_a_touched_file_calls_for_is_appended_after_its_call_and_nothing_is_asked_where_nothing_happened() -> (
    None
):
    notes = Notes()
    script = [call("view", path="src/a.py"), call("ping"), call("view", path="src/a.py"), say("Done.")]
    async with talk(scripted(script, view, ping, context=notes_in(notes))) as conversation:
        path = f"{conversation.workspace.root}/src/a.py"
        notes.on_path[path] = ContextPart("file:src/AGENTS.md", "Rules of src.")
        await conversation.run("go")
        (added,) = events_of(conversation, ContextAdded)
    assert added.text == "Rules of src."
    assert [(happened.messages, happened.touched) for happened in notes.asked] == [
        (["go"], []),
        ([], [path]),
        ([], [path]),
    ]


async def test_on_a_resume_the_old_prompt_stays_and_what_changed_is_appended() -> None:
    store, notes = MemoryStore(), Notes({"a": "Old.", "b": "Same."})
    llm = ScriptedLLM([say("1"), say("2"), say("3")])
    agent = scripted(llm, context=notes_in(notes))
    async with Conversation(agent, store=store, id="c") as conversation:
        await conversation.run("one")
    notes.parts["a"] = "New."
    async with Conversation(agent, store=store, id="c") as conversation:
        await conversation.run("two")
        assert added_to(conversation) == ["New."]
    async with Conversation(agent, store=store, id="c") as conversation:
        await conversation.run("three")
        assert added_to(conversation) == ["New."]
        assert len(prompts_of(conversation)) == 1
    before, after = llm.requests[1].messages, llm.requests[2].messages
    assert list(after[: len(before)]) == list(before)


async def test_a_part_that_changes_back_is_appended_again() -> None:
    store, notes = MemoryStore(), Notes()
    agent = scripted([say(str(n)) for n in range(3)], context=notes_in(notes))
    for text in ("A", "B", "A"):
        notes.parts["a"] = text
        async with Conversation(agent, store=store, id="c") as conversation:
            await conversation.run("go")
            added = added_to(conversation)
    assert added == ["B", "A"]


async def test_a_rewind_composes_the_prompt_anew_and_forgets_what_was_appended_on_the_other_branch() -> None:
    notes = Notes({"a": "Old."}, on_word={"deploy": ContextPart("skill:deploy", "How to deploy.")})
    async with talk(scripted([say(str(n)) for n in range(4)], context=notes_in(notes))) as conversation:
        await conversation.run("one")
        point = conversation.state.head
        await conversation.run("deploy")
        notes.parts["a"] = "New."
        await conversation.rewind(point)
        await conversation.run("deploy")
        assert added_to(conversation) == ["How to deploy.", "How to deploy."]
        assert [("Old." in event.prompt, "New." in event.prompt) for event in prompts_of(conversation)] == [
            (True, False),
            (False, True),
        ]
    assert notes.opened == 2


async def test_a_source_that_fails_or_is_slow_is_left_out_and_named_once() -> None:
    class Failing(Notes):
        async def open(self, context: SourceContext) -> OpenNotes:
            await checkpoint()
            raise ValueError("the disk is gone")

    class Slow(Notes):
        async def open(self, context: SourceContext) -> OpenNotes:
            await anyio.sleep_forever()
            raise AssertionError

    sources = (Failing(name="failing"), Slow(name="slow"), Notes({"a": "Here."}, problems=["x.md:3: too odd"]))
    agent = scripted([say("1"), say("2")], context=notes_in(*sources))
    async with talk(agent, limits=Limits(step_seconds=0.2)) as conversation:
        assert (await conversation.run("go")).text == "1"
        await conversation.rewind(0)
        await conversation.run("go")
        assert "Here." in prompts_of(conversation)[0].prompt
        notices = [(notice.name, notice.code, notice.detail) for notice in notices_of(conversation)]
    assert sorted(notices) == [
        ("failing", "source_failed", "The context source 'failing' failed: the disk is gone"),
        ("notes", "left_out", "x.md:3: too odd"),
        ("slow", "source_failed", "The context source 'slow' did not open within 0.2 s."),
    ]


async def test_the_value_of_a_secret_is_masked_in_parts_of_every_kind() -> None:
    notes = Notes({"a": "The key is s3cr3t-value."}, on_word={"go": ContextPart("b", "Again s3cr3t-value.")})
    llm = ScriptedLLM([say("1")])
    context = notes_in(notes, message_suffix="Not s3cr3t-value.")
    async with talk(scripted(llm, context=context), secrets={"KEY": "s3cr3t-value"}) as conversation:
        await conversation.run("go")
        recorded = repr(conversation.state.events)
    assert "s3cr3t-value" not in recorded
    assert "s3cr3t-value" not in repr(llm.requests[0].messages)
    assert recorded.count("<secret:KEY>") >= 3


async def test_a_source_that_raises_when_asked_ends_no_run_and_one_that_hangs_is_not_asked_again() -> None:
    asked: list[str] = []

    class OpenRaising(OpenNotes):
        async def follow(self, happened: Happened) -> Sequence[ContextPart]:
            asked.append(self.source.name)
            if self.source.name == "hanging":
                await anyio.sleep_forever()
            raise ValueError("odd word")

    @dataclass
    class Bad(Notes):
        async def open(self, context: SourceContext) -> OpenNotes:
            await checkpoint()
            return OpenRaising(self, ())

    agent = scripted([say("1"), say("2")], context=notes_in(Bad(name="raising"), Bad(name="hanging")))
    async with talk(agent, limits=Limits(step_seconds=0.2)) as conversation:
        await conversation.run("one")
        assert (await conversation.run("two")).text == "2"
        assert [notice.detail for notice in notices_of(conversation)] == [
            "The context source 'raising' failed: odd word",
            "The context source 'hanging' did not answer within 0.2 s.",
        ]
    assert asked == ["raising", "hanging", "raising"]


async def test_an_interrupt_stops_the_reading_of_sources() -> None:
    reading = anyio.Event()

    class Slow(Notes):
        async def open(self, context: SourceContext) -> OpenNotes:
            reading.set()
            await anyio.sleep_forever()
            raise AssertionError

    async with talk(scripted([say("1")], context=notes_in(Slow()))) as conversation:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(conversation.run, "go")
            await reading.wait()
            await conversation.interrupt()
        assert conversation.state.status == "paused"
        assert prompts_of(conversation) == []


async def test_a_cut_reads_the_sources_again_and_composes_the_prompt_with_what_there_is() -> None:
    @dataclass(frozen=True)
    class ForgetFirst:
        async def condense(self, outline: Any) -> Condensation | None:
            await checkpoint()
            words = [item for item in outline.items if item.protected is None and "long" in repr(item.messages)]
            return outline.forget(words, summary="It was long.") if words else None

    notes = Notes({"a": "Old."}, on_word={"deploy": ContextPart("skill:deploy", "How to deploy. long")})
    agent = scripted([say(str(n)) for n in range(4)], context=notes_in(notes), condenser=ForgetFirst())
    async with talk(agent) as conversation:
        await conversation.run("deploy " + "long " * 500)
        notes.parts["a"] = "New."
        await conversation.run("deploy again")
        first, second = prompts_of(conversation)
        assert ("Old." in first.prompt, "New." in second.prompt) == (True, True)
        # The cut took it away, and the newest message calls for it again.
        assert added_to(conversation) == ["How to deploy. long"] * 2
    assert notes.opened == 2


async def test_what_is_put_around_messages_is_sent_and_the_log_has_the_users_own_words() -> None:
    store, llm = MemoryStore(), ScriptedLLM([say("1"), say("2")])
    agent = scripted(llm, context=AgentContext(message_prefix="<task>", message_suffix="Think first."))
    async with Conversation(agent, store=store, id="c") as conversation:
        await conversation.run("one")
        assert [event.text for event in conversation.state.shown if event.kind == "message"] == ["one", "1"]
    plain = replace(agent, context=None)
    async with Conversation(plain, store=store, id="c") as conversation:
        await conversation.run("two")
        steps = [event.view_seq for event in events_of(conversation, UsageEvent)]
        rebuilt = [rebuild_request(conversation.state, seq or 0)[0] for seq in steps]
    assert [message.text for message in llm.requests[1].messages[1:]] == ["<task>\n\none\n\nThink first.", "1", "two"]
    assert rebuilt == [request.messages for request in llm.requests]


async def test_a_message_that_begins_and_ends_with_a_picture_gets_texts_around_it() -> None:
    llm = ScriptedLLM([say("1")])
    context = AgentContext(message_prefix="Look:", message_suffix="Describe it.")
    async with talk(scripted(llm, context=context)) as conversation:
        await conversation.run(Message.user(ImageBlock(url="https://example.org/a.png")))
    kinds = [getattr(block, "text", "") for block in llm.requests[0].messages[1].content]
    assert kinds == ["Look:", "", "Describe it."]


async def test_the_day_is_appended_with_the_first_message_of_another_day() -> None:
    days = iter([1, 1, 2, 2])
    today = Today(now=lambda: datetime(2026, 3, next(days), tzinfo=UTC))
    async with talk(scripted([say(str(n)) for n in range(3)], context=notes_in(today))) as conversation:
        for words in ("one", "two", "three"):
            await conversation.run(words)
        assert prompts_of(conversation)[0].prompt.endswith("Today is Sunday, 2026-03-01.")
        assert added_to(conversation) == ["Today is Monday, 2026-03-02."]


async def test_facts_name_the_branch_of_a_repository_and_failing_leaves_them_out(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    workspace = LocalWorkspace(tmp_path)
    async with workspace:
        facts = await WorkspaceFacts().open(SourceContext(workspace=workspace, mask=str))
        assert facts.parts[0].text.endswith("It is not a git repository.")
        await workspace.run("git init -q -b feature")
        facts = await WorkspaceFacts().open(SourceContext(workspace=workspace, mask=str))
        assert facts.parts[0].text.endswith("It is a git repository, on the branch feature.")
    facts = await WorkspaceFacts().open(SourceContext(workspace=workspace, mask=str))
    assert (facts.parts, facts.problems) == ((), ())


async def test_examples_are_made_of_the_tools_that_are_there() -> None:
    async with talk(scripted([say("1")], view, ping, context=AgentContext(examples=True))) as conversation:
        await conversation.run("go")
        prompt = prompts_of(conversation)[0].prompt
    assert '- view: {"path": "src/main.py"}\n- ping: {}' in prompt


def test_the_tools_of_sources_are_the_agents_own() -> None:
    class Bringing(Notes):
        def tools(self) -> Sequence[AnyTool]:
            return [ping]

    agent = scripted([], view, context=notes_in(Bringing()))
    assert [tool.name for tool in agent.own_tools] == ["view", "ping", "finish", "think"]


@dataclass(frozen=True)
class Sign:
    """A source that can be written down."""

    text: str
    name: str = "sign"

    async def open(self, context: SourceContext) -> ReadSource:
        await checkpoint()
        return ReadSource([ContextPart("sign", self.text)])

    def record(self) -> SourceSpec:
        return SourceSpec(name="test-sign", params={"text": self.text})


def test_a_context_is_recorded_and_made_again_and_what_cannot_be_is_named() -> None:
    register_context_source("test-sign", Sign)
    context = AgentContext(variant="small", sources=(Sign("Stop."),), message_suffix="x", facts=True, drop=["care"])
    recorded, missing = record_agent(Agent(llm=LLM(model="openai/gpt-5"), context=context))
    again = restore_agent(recorded)
    assert missing == ()
    assert again.context is not None
    assert (again.context.sections, again.context.sources) == (context.sections, context.sources)
    assert record_agent(again) == (recorded, ())
    with_notes = Agent(llm=LLM(model="openai/gpt-5"), context=notes_in(Notes(), Sign("Stop.")))
    assert record_agent(with_notes)[1] == ("the context source 'notes'",)
    del recorded["context"]["sources"][0]["params"]["text"]  # pyright: ignore[reportIndexIssue, reportOptionalSubscript, reportArgumentType, reportCallIssue]
    with pytest.raises(ToolNotFound, match="The recorded context source 'test-sign' can't be used here"):
        restore_agent(recorded)
    with pytest.raises(ValueError, match="another context source factory under the name 'test-sign'"):
        register_context_source("test-sign", Notes)


MOVES = st.lists(
    st.sampled_from(["hello", "deploy", "test", "view a", "view b", "view both", "change", "reopen", "ping"]),
    max_size=12,
)


@given(MOVES)
def test_each_request_begins_with_the_one_before_it(moves: list[str]) -> None:
    anyio.run(_check_prefixes, moves)


async def _check_prefixes(moves: list[str]) -> None:
    """Only parts, messages and steps come between: nothing may change what the provider has in its cache."""
    notes = Notes({"a": "0", "b": "same"})
    notes.on_word = {word: ContextPart(f"skill:{word}", f"How to {word}.") for word in ("deploy", "test")}
    llm = ScriptedLLM(_Player())
    agent = scripted(llm, view, ping, context=notes_in(notes, date=True, message_suffix="Be brief."))
    store = MemoryStore()
    async with AsyncExitStack() as stack:
        conversation = await stack.enter_async_context(Conversation(agent, store=store, id="c"))
        for path in ("a", "b"):
            notes.on_path[f"{conversation.workspace.root}/{path}"] = ContextPart(f"file:{path}", f"Rules of {path}.")
        for number, move in enumerate(moves):
            if move == "change":
                notes.parts["a"] = str(number)
            elif move == "reopen":
                await stack.aclose()
                conversation = await stack.enter_async_context(Conversation(agent, store=store, id="c"))
            else:
                await conversation.run(move)
        steps = [event.view_seq for event in events_of(conversation, UsageEvent)]
        rebuilt = [rebuild_request(conversation.state, seq or 0)[0] for seq in steps]
        assert len(prompts_of(conversation)) <= 1
        shown = [(event.name, event.digest) for event in events_of(conversation, ContextAdded)]
        assert all(one != other for one, other in pairwise(shown))
    assert rebuilt == [request.messages for request in llm.requests]
    for before, after in pairwise(llm.requests):
        assert list(after.messages[: len(before.messages)]) == list(before.messages)


class _Player:
    """A model that does what the newest message of the user asks for, then says that it did."""

    def __call__(self, request: Request) -> ScriptLine:
        if request.messages[-1].role == "tool" or "Rules of" in request.messages[-1].text:
            return say("Done.")
        words = next(message.text.split() for message in reversed(request.messages) if "Be brief." in message.text)
        if words[0] == "ping":
            return call("ping")
        if words[0] == "view":
            paths = ["a", "b"] if words[1] == "both" else [words[1]]
            return calls(*(call("view", path=path) for path in paths))
        return say("Done.")
