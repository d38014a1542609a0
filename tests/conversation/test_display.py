"""What tools show to people is recorded with the call and with the answer, and no model ever reads it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentcore import ActionEvent, AlwaysConfirm, FileStore, MemoryStore, ObservationEvent
from agentcore.display import DisplayBlock, MarkdownBlock
from agentcore.record import read_log
from agentcore.testing import ScriptedLLM, call, say
from agentcore.tools import FunctionTool, Observation, TextObservation, tool
from talks import events_of, scripted, talk

TOKEN = "tok-93f1-abcd"


def shown(action: Any) -> Sequence[DisplayBlock]:
    return [MarkdownBlock(text=f"for people: adds {action.a} and {action.b}")]


def made(action: Any, observation: Observation) -> Sequence[DisplayBlock]:
    assert isinstance(observation, TextObservation)
    return [MarkdownBlock(text=f"for people: {action.a} and {action.b} are {observation.text}")]


@tool(display_call=shown, display_answer=made)
async def add(a: str, b: str) -> str:
    """Put two words together."""
    return a + b


def displays(events: Sequence[object]) -> list[str]:
    blocks = [block for event in events if isinstance(event, ActionEvent | ObservationEvent) for block in event.display]
    return [block.text for block in blocks if isinstance(block, MarkdownBlock)]


async def test_the_log_has_what_a_tool_shows_masked(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "logs")
    llm = ScriptedLLM([call("add", a="x", b=TOKEN), say("Done.")])
    async with talk(llm, add, store=store, secrets={"TOKEN": TOKEN}, id="c") as conversation:
        await conversation.run("go")
    recorded = [
        "for people: adds x and <secret:TOKEN>",
        "for people: x and <secret:TOKEN> are x<secret:TOKEN>",
    ]
    assert displays(conversation.state.events) == recorded
    assert displays((await read_log(store, "c")).events) == recorded
    assert not any("for people" in str(message) for request in llm.requests for message in request.messages)


async def test_finishing_and_thinking_are_what_the_agent_says() -> None:
    async with talk([call("think", thought="Hm."), call("finish", message="All done.")]) as conversation:
        await conversation.run("go")
    shown = [event.display for event in conversation.state.events if isinstance(event, ActionEvent | ObservationEvent)]
    message = MarkdownBlock(text="All done.", place="message")
    assert shown == [(MarkdownBlock(text="Hm."),), (MarkdownBlock(text=""),), (message,), (MarkdownBlock(text=""),)]


def refuse(*_: Any) -> Sequence[DisplayBlock]:
    raise LookupError("nothing to show")


def broken() -> FunctionTool[..., Any]:
    @tool(display_call=refuse, display_answer=refuse)
    async def beep() -> str:
        """Beep."""
        return "beep"

    return beep


async def test_a_display_that_raises_takes_nothing_but_itself_away(caplog: pytest.LogCaptureFixture) -> None:
    async with talk([call("beep"), say("Done.")], broken()) as conversation:
        result = await conversation.run("go")
    assert result.text == "Done."
    answers = events_of(conversation, ObservationEvent)
    assert [(event.text, event.display) for event in answers] == [("beep", ())]
    assert caplog.text.count("display left out") == 2


async def test_a_call_that_waits_for_a_person_has_its_display_also_after_a_restart() -> None:
    store = MemoryStore()
    agent = scripted([call("add", a="x", b="y"), say("Done.")], add)
    async with talk(agent, store=store, id="c", confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
    async with talk(agent, store=store, id="c") as conversation:
        (waiting,) = conversation.state.pending
        assert displays([waiting]) == ["for people: adds x and y"]
        await conversation.approve()
        await conversation.run()
    assert displays(conversation.state.events)[-1] == "for people: x and y are xy"


async def test_a_call_that_cannot_run_is_shown_as_it_came() -> None:
    async with talk([call("add", a="x"), say("Done.")], add) as conversation:
        await conversation.run("go")
    assert displays(conversation.state.events) == []
