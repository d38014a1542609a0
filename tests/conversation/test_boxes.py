"""Workspaces that are boxes: fenced when a conversation is opened, gone back to, and lost under a call."""

from __future__ import annotations

from pathlib import Path

import pytest
from anyio.lowlevel import checkpoint

from agentcore import AgentErrorEvent, Conversation, LocalWorkspace, MemoryStore, ObservationEvent
from agentcore.errors import ConnectionLost, ToolError, WorkspaceNotRestored
from agentcore.events import WorkspaceOpened
from agentcore.testing import call, say
from agentcore.tools import tool
from agentcore.workspace import register_workspace
from agentcore_tools import run_tool, terminal_tool
from boxes_like import Boxlike
from talks import events_of, scripted

_made: list[Boxlike] = []


def _restore(path: str, box: str) -> Boxlike:
    _made.append(Boxlike(path, box))
    if (Path(path) / "removed").exists():
        _made[-1].lose("removed")
    return _made[-1]


register_workspace("boxlike", _restore)


async def test_a_box_is_fenced_with_the_epoch_of_each_opening(tmp_path: Path) -> None:
    store = MemoryStore()
    agent = scripted([say("one"), say("two")])
    for epoch in (1, 2):
        async with Conversation(agent, box := Boxlike(str(tmp_path)), id="c", store=store) as conversation:
            assert box.fences == [(epoch, "c")]
            await conversation.run("go")
    async with Boxlike(str(tmp_path)) as box, Conversation(agent, box, id="c", store=store):
        assert box.fences == [(3, "c")]  # whoever entered it
    async with LocalWorkspace(tmp_path) as here, Conversation(agent, here, id="c", store=store):
        pass  # a folder knows no fence


async def test_a_resumed_conversation_goes_back_to_its_box_and_the_log_says_what_is_loosened(tmp_path: Path) -> None:
    store = MemoryStore()
    agent = scripted([say("one")])
    async with Conversation(agent, Boxlike(str(tmp_path), "box_7"), id="c", store=store) as conversation:
        (opened,) = events_of(conversation, WorkspaceOpened)
        assert (opened.workspace, opened.spec["box"]) == ("boxlike", "box_7")
        assert opened.loosened == ("Memory is not limited.",)
    async with Conversation(agent, id="c", store=store) as conversation:
        assert conversation.workspace is _made[-1]
        assert (_made[-1].box, _made[-1].fences) == ("box_7", [(2, "c")])
        assert len(events_of(conversation, WorkspaceOpened)) == 1


async def test_a_box_that_is_gone_is_said_with_what_became_of_it(tmp_path: Path) -> None:
    store = MemoryStore()
    agent = scripted([say("one")])
    async with Conversation(agent, Boxlike(str(tmp_path)), id="c", store=store):
        pass
    (tmp_path / "removed").touch()
    with pytest.raises(
        WorkspaceNotRestored, match=r"cannot go back to where it worked: The container ran out of memory"
    ):
        async with Conversation(agent, id="c", store=store):
            pass


@pytest.mark.parametrize("name", ["run", "terminal"])
async def test_a_call_whose_box_is_lost_has_an_unknown_outcome(tmp_path: Path, name: str) -> None:
    lines = [call(name, command="kill -9 $$"), call(name, command="echo again"), say("done")]
    agent = scripted(lines, run_tool(), terminal_tool())
    async with Conversation(agent, Boxlike(str(tmp_path)), id="c", store=MemoryStore()) as conversation:
        await conversation.run("go")
        lost = events_of(conversation, AgentErrorEvent)
        assert [(event.outcome, event.code) for event in lost] == [("unknown", "WorkspaceLost")] * 2
        assert "Raise memory=" in lost[0].error


@tool
async def far_away(wrapped: bool) -> str:
    """Do something far away."""
    await checkpoint()
    lost = ConnectionLost("http://127.0.0.1:1", "it was silent")
    if wrapped:
        raise ToolError("That could not be done.") from lost
    raise lost


async def test_a_lost_connection_is_as_a_lost_box_also_where_a_tool_words_it(tmp_path: Path) -> None:
    agent = scripted([call("far_away", wrapped=False), call("far_away", wrapped=True), say("done")], far_away)
    async with Conversation(agent, tmp_path) as conversation:
        await conversation.run("go")
        assert [event.outcome for event in events_of(conversation, AgentErrorEvent)] == ["unknown", "unknown"]


@pytest.mark.parametrize("name", ["run", "terminal"])
async def test_why_a_command_was_killed_stands_behind_its_exit_code(tmp_path: Path, name: str) -> None:
    agent = scripted([call(name, command="sh -c 'kill -9 $$'"), say("done")], run_tool(), terminal_tool())
    box = Boxlike(str(tmp_path))
    box.why_killed = "It used more memory than the box has (2 GB)."
    async with Conversation(agent, box, id="c", store=MemoryStore()) as conversation:
        await conversation.run("go")
        (answer,) = events_of(conversation, ObservationEvent)
        assert answer.data["exit_code"] == 137
        assert answer.text.rstrip().endswith("It used more memory than the box has (2 GB).")
