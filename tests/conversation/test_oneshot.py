"""A whole conversation in one call, from async and from plain programs."""

from __future__ import annotations

import threading
from decimal import Decimal
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync as in_thread

import agentcore
from agentcore import ActionEvent, AlwaysConfirm, ConversationStatus, Limits, Message, ToolContext, tool
from agentcore.errors import PathError, RunError, ScriptExhausted
from agentcore.testing import call, calls, say
from talks import ERROR, FINISHED, WAITING, scripted


@tool
async def show(ctx: ToolContext) -> str:
    """Show what the call has."""
    return f"{ctx.workspace.root} {ctx.deps} {await ctx.secrets.get('KEY')}"


async def test_one_call_runs_a_conversation_and_returns_its_result(tmp_path: Path) -> None:
    agent = scripted([call("show"), lambda request: say(request.answers[0])], show)
    result = await agentcore.run(agent, Message.user("go"), tmp_path, deps="mine", secrets={"KEY": "s3cret-value"})
    assert result.status is FINISHED
    assert result.text == f"{tmp_path} mine <secret:KEY>"


async def test_its_keywords_are_those_of_a_conversation() -> None:
    asked: list[str] = []

    async def allow(action: ActionEvent) -> bool:
        asked.append(action.tool_name)
        return True

    def script() -> agentcore.Agent:
        return scripted([calls(call("show"), usage=agentcore.Usage(known_cost=Decimal(1))), say("done")], show)

    assert (await agentcore.run(script(), "go", confirm=allow, secrets={"KEY": "s3cret-value"})).status is FINISHED
    assert asked == ["show"]
    waiting = await agentcore.run(script(), "go", confirm=AlwaysConfirm())
    assert (waiting.status, [action.tool_name for action in waiting.pending]) == (WAITING, ["show"])
    over = await agentcore.run(script(), "go", limits=Limits(cost=Decimal(1)))
    assert (over.status, over.error and over.error.code) == (ERROR, "cost")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_thread_without_a_loop_runs_one_too(tmp_path: Path) -> None:
    def program() -> ConversationStatus:
        result = agentcore.run_sync(scripted(["Hello."]), "Hi", tmp_path)
        assert result.text == "Hello."
        return result.status

    answers: list[ConversationStatus] = []
    thread = threading.Thread(target=lambda: answers.append(program()))
    thread.start()
    await in_thread(thread.join)
    assert answers == [FINISHED]


async def test_inside_a_loop_the_plain_one_says_what_to_use() -> None:
    await anyio.lowlevel.checkpoint()
    with pytest.raises(
        RuntimeError, match=r"^run_sync\(\) cannot wait inside a running event loop: use `await agentcore"
    ):
        agentcore.run_sync(scripted(["never"]), "Hi")


def frames_of(error: BaseException) -> list[str]:
    names: list[str] = []
    entry = error.__traceback__
    while entry is not None:
        names.append(entry.tb_frame.f_code.co_name)
        entry = entry.tb_next
    return names


def test_an_error_shows_the_call_alone() -> None:
    with pytest.raises(RunError) as caught:
        agentcore.run_sync(scripted([]), "Hi")
    assert isinstance(caught.value.error, ScriptExhausted)
    assert frames_of(caught.value) == ["test_an_error_shows_the_call_alone", "run_sync"]
    with pytest.raises(PathError) as wrong:
        agentcore.run_sync(scripted([]), "Hi", "/no/such/folder")
    assert frames_of(wrong.value)[-1] == "run_sync"
