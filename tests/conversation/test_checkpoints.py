"""Conversations that are rewound with their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcore import Conversation, HeadMoved, MemoryStore, MessageEvent
from agentcore.errors import ReentrantCall, RewindRefused, WorkspaceError
from agentcore.events import ContextNotice, ConversationStateUpdateEvent, WorkspaceCheckpointed, WorkspaceRestored
from agentcore.testing import ScriptedLLM, call, say
from agentcore.tools import ToolContext, tool
from talks import events_of, scripted


@tool
async def put(name: str, text: str, ctx: ToolContext) -> str:
    """Write a file."""
    await ctx.workspace.write(name, text)
    return "written"


def files_in(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


async def test_a_rewind_brings_the_files_of_the_last_checkpoint_back_and_the_model_reads_that(tmp_path: Path) -> None:
    llm = ScriptedLLM(
        [
            call("put", name="a", text="1"),
            say("one"),
            call("put", name="a", text="2"),
            call("put", name="b", text="2"),
            say("two"),
            say("three"),
        ]
    )
    async with Conversation(scripted(llm, put), tmp_path) as conversation:
        first = await conversation.run("begin")
        saved = await conversation.checkpoint()
        assert (saved.files, saved.left_out) == (1, ())
        await conversation.run("go on")
        assert files_in(tmp_path) == {"a": "2", "b": "2"}
        await conversation.rewind(first.last_seq, files=True)
        assert files_in(tmp_path) == {"a": "1"}
        (moved,) = events_of(conversation, HeadMoved)
        (restored,) = events_of(conversation, WorkspaceRestored)
        assert (moved.checkpoint, restored.cause, restored.error) == (saved.id, moved.id, None)
        assert (restored.written, restored.removed) == (1, 1)
        await conversation.run("and now")
        shown = [message.text for message in llm.requests[-1].messages]
        assert any("and the files of the project with it" in text for text in shown)
        assert not any("Files and everything else outside it were not" in text for text in shown)


async def test_what_was_there_before_a_rewind_can_be_gone_back_to(tmp_path: Path) -> None:
    lines = [call("put", name="a", text="1"), say("one"), call("put", name="a", text="2"), say("two")]
    async with Conversation(scripted(lines, put), tmp_path, checkpoints="settled") as conversation:
        first = await conversation.run("begin")
        await conversation.run("go on")
        (tmp_path / "mine").write_text("by hand")
        await conversation.rewind(first.last_seq, files=True)
        assert files_in(tmp_path) == {"a": "1"}
        before = [event for event in events_of(conversation, WorkspaceCheckpointed) if event.cause is None]
        await conversation.rewind(before[-1].seq, files=True)
        assert files_in(tmp_path) == {"a": "2", "mine": "by hand"}


@pytest.mark.slow
async def test_at_settled_points_files_are_saved_where_calls_changed_them(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("0")
    store = MemoryStore()
    lines = [
        call("put", name="a", text="1"),
        call("put", name="a", text="1"),
        call("put", name="a", text="2"),
        say("done"),
        say("again"),
    ]
    agent = scripted(lines, put)
    async with Conversation(agent, tmp_path, store=store, id="c", checkpoints="settled") as conversation:
        message = await conversation.run("begin")
        saved = events_of(conversation, WorkspaceCheckpointed)
        assert len(saved) == 3  # at the start, and after each change
        assert all(event.seq < message.last_seq for event in saved)
        (tmp_path / "a").write_text("ruined")
        await conversation.rewind(message.last_seq, files=True)
        assert files_in(tmp_path) == {"a": "2"}
    async with Conversation(agent, tmp_path, store=store, id="c") as conversation:
        assert conversation.state.checkpoints.when == "settled"
        await conversation.run("again")
        settled = saved[1].seq
        await conversation.rewind(settled, files=True)
        assert files_in(tmp_path) == {"a": "1"}


async def test_without_a_checkpoint_a_rewind_with_files_is_refused_and_nothing_is_saved(tmp_path: Path) -> None:
    async with Conversation(scripted([say("one")], put), tmp_path) as conversation:
        result = await conversation.run("begin")
        head = conversation.state.head
        with pytest.raises(RewindRefused, match="no checkpoint of them was made at or before it"):
            await conversation.rewind(result.last_seq, files=True)
        assert conversation.state.head == head
        await conversation.rewind(result.last_seq)


async def test_calls_since_the_checkpoint_are_told_to_the_model(tmp_path: Path) -> None:
    lines = [call("put", name="a", text="1"), say("one"), call("put", name="a", text="2"), say("two")]
    async with Conversation(scripted(lines, put), tmp_path) as conversation:
        await conversation.run("begin")
        await conversation.checkpoint()
        second = await conversation.run("go on")
        await conversation.rewind(second.last_seq, files=True)
        assert files_in(tmp_path) == {"a": "1"}
        assert "saved before the last call above" in events_of(conversation, MessageEvent)[-1].text


async def test_a_checkpoint_that_is_gone_is_said_and_the_conversation_goes_on(tmp_path: Path) -> None:
    llm = ScriptedLLM([call("put", name="a", text="1"), say("one"), say("two")])
    async with Conversation(scripted(llm, put), tmp_path) as conversation:
        result = await conversation.run("begin")
        saved = await conversation.checkpoint()
        (tmp_path / "a").write_text("2")
        store = Path(await conversation.workspace.private_folder(conversation.id)) / "checkpoints" / "objects"
        (store / saved.checkpoint[:2] / saved.checkpoint[2:]).unlink()
        with pytest.raises(WorkspaceError, match="has no checkpoint"):
            await conversation.rewind(result.last_seq, files=True)
        assert files_in(tmp_path) == {"a": "2"}
        await conversation.run("go on")
        assert any("that failed: The files in" in message.text for message in llm.requests[-1].messages)


async def test_where_files_cannot_be_saved_a_run_goes_on_with_one_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "sh").symlink_to("/bin/sh")
    lines = [call("put", name="a", text="1"), call("put", name="a", text="2"), say("done")]
    async with Conversation(scripted(lines, put), tmp_path, checkpoints="settled") as conversation:
        await conversation.run("begin")
        facts = [event.update for event in events_of(conversation, ConversationStateUpdateEvent)]
        (notice,) = [fact for fact in facts if isinstance(fact, ContextNotice)]
        assert (notice.code, "there is no python3 in it" in notice.detail) == ("checkpoint_failed", True)
        with pytest.raises(WorkspaceError, match=r"there is no python3 in it\. Install it there"):
            await conversation.checkpoint()


async def test_a_fork_goes_back_to_files_that_the_other_one_saved(tmp_path: Path) -> None:
    store = MemoryStore()
    agent = scripted([call("put", name="a", text="1"), say("one"), say("two")], put)
    async with Conversation(agent, tmp_path, store=store, checkpoints="settled") as conversation:
        await conversation.run("begin")
        fork = await conversation.fork()
        async with Conversation(agent, tmp_path, store=store, id=fork) as other:
            (tmp_path / "a").write_text("2")
            await other.rewind(other.state.head, files=True)
            assert files_in(tmp_path) == {"a": "1"}


@tool
async def save(ctx: ToolContext) -> str:
    """Save the files from inside."""
    await _open[-1].checkpoint()
    return "saved"


_open: list[Conversation] = []


async def test_a_call_cannot_save_files_as_it_would_wait_for_itself(tmp_path: Path) -> None:
    async with Conversation(scripted([call("save"), say("done")], save), tmp_path) as conversation:
        _open.append(conversation)
        await conversation.run("begin")
        assert any(ReentrantCall.__name__ == getattr(event, "code", "") for event in conversation.state.events)
