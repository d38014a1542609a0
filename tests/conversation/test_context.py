"""Sources of context in a conversation: what they show, when, and what becomes of one that fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.lowlevel import checkpoint

from agentcore import (
    ContextAdded,
    Conversation,
    ConversationStateUpdateEvent,
    Limits,
    MemoryStore,
    SystemPromptEvent,
)
from agentcore.context import (
    AgentContext,
    ContextPart,
    Happened,
    SourceContext,
    SourceSpec,
)
from agentcore.events import ContextNotice
from agentcore.testing import ScriptedLLM, call, say
from agentcore.tools import Resource, tool
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
    assert (prompt.parts, prompt.base, prompt.message_prefix, prompt.message_suffix) == ({}, None, None, None)


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
