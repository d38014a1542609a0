"""What a server that ended in order paused goes on at its next start, and what needs its client goes on once that is back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import SecretStr

from agentcore import LLM, Agent
from agentcore.agent import record_agent
from agentcore.events import ObservationEvent
from agentcore.testing import Gate, ScriptedLLM, call, say, serve_provider
from agentcore.tools import tool
from agentcore.wire.requests import ClientAgent, ConversationSpec
from agentcore_serve.hub import Hub
from agentcore_serve.served import Served
from hubs import ANN, serving
from talks import FINISHED, PAUSED, answers_of, hang, scripted, until


async def _drain_in_the_middle(hub: Hub, served: Served, gate: Gate) -> None:
    """Drain while the model thinks, and let it answer once the pause was asked for."""
    await served.conversation.start("go")
    await gate.arrived()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hub.drain, 30)
        await until(lambda: served.state.pause_requested)
        gate.open()


@tool(resources=())
async def count() -> str:
    """Count."""
    return "counted"


async def test_what_was_drained_goes_on_at_the_next_start(tmp_path: Path) -> None:
    gate = Gate()
    async with serving(scripted([gate.hold(call("count"))], count), tmp_path) as hub:
        served = await hub.create(ANN, ConversationSpec(), "c1")
        resting = await hub.create(ANN, ConversationSpec(), "c2")
        await _drain_in_the_middle(hub, served, gate)
        assert (served.state.status, served.state.status_code) == (PAUSED, "drained")
    assert resting.ended.is_set()
    async with serving(scripted([say("done")], count), tmp_path) as hub:
        await hub.crashes_handled.wait()
        assert not hub.open_ones.is_open("c2")
        state = (await hub.open(ANN, "c1")).state
        await until(lambda: state.status is FINISHED)
        assert len([each for each in answers_of(state) if isinstance(each, ObservationEvent)]) == 1
        assert state.answer == "done"
    async with serving(scripted([], count), tmp_path) as hub:  # and once only
        await hub.crashes_handled.wait()
        assert not hub.open_ones.served


async def test_what_did_not_stop_in_time_goes_on_too(tmp_path: Path) -> None:
    async with serving(scripted([call("hang")], hang), tmp_path) as hub:
        served = await hub.create(ANN, ConversationSpec(), "c1")
        await served.conversation.start("go")
        await until(lambda: any(each.started for each in served.state.open_actions.values()))
        await hub.drain(0.01)
        assert (served.state.status, served.state.status_code) == (PAUSED, "drained")
    async with serving(scripted([say("done")], hang), tmp_path) as hub:
        served = await hub.open(ANN, "c1")
        await until(lambda: served.state.status is FINISHED)
        assert len(answers_of(served.state)) == 1


async def test_what_somebody_had_paused_stays_paused(tmp_path: Path) -> None:
    gate = Gate()
    async with serving(scripted([gate.hold(call("count"))], count), tmp_path) as hub:
        served = await hub.create(ANN, ConversationSpec(), "c1")
        await served.conversation.start("go")
        await gate.arrived()
        await served.conversation.pause()
        gate.open()
        await hub.drain(30)
        assert (served.state.status, served.state.status_code) == (PAUSED, "pause")
    async with serving(scripted([]), tmp_path) as hub:
        await hub.crashes_handled.wait()
        assert not hub.open_ones.served


async def test_with_pause_what_was_drained_stays_paused(tmp_path: Path) -> None:
    gate = Gate()
    async with serving(scripted([gate.hold(call("count"))], count), tmp_path) as hub:
        await _drain_in_the_middle(hub, await hub.create(ANN, ConversationSpec(), "c1"), gate)
    async with serving(scripted([], count), tmp_path, after_crash="pause") as hub:
        await hub.crashes_handled.wait()
        assert (await hub.open(ANN, "c1")).state.status_code == "drained"


async def test_an_agent_of_a_client_goes_on_when_its_key_is_back_and_never_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-SERVERS-OWN-KEY")
    key = SecretStr("sk-of-the-client-0123456789")
    gate = Gate()
    async with serve_provider([gate.hold(say("cut off")), say("done")]) as provider:
        llm = LLM("openai/scripted", base_url=provider.base_url, api_mode="chat")
        record, _ = record_agent(Agent(llm=llm, tools=()))
        spec = ConversationSpec(agent=ClientAgent(record=record, model_key=key))
        settings: dict[str, Any] = {"model_addresses": ("127.0.0.0/8",)}
        other = Agent(llm=ScriptedLLM([]))
        async with serving(other, tmp_path, **settings) as hub:
            served = await hub.create(ANN, spec, "c1")
            await served.conversation.start("go")
            await gate.arrived()
            await hub.drain(0.01)
        async with serving(other, tmp_path, **settings) as hub:
            await hub.crashes_handled.wait()
            assert (await hub.open(ANN, "c1")).state.status_code == "drained"  # to be watched
            (await hub.open(ANN, "c1")).conversation.link.check()
        assert len(provider.requests) == 1
        async with serving(other, tmp_path, **settings) as hub:  # another start, with nobody there
            await hub.crashes_handled.wait()
            again, is_new = await hub.create_or_open(ANN, spec, "c1")
            assert not is_new
            assert again.state.status_code != "drained"  # known when the client has its answer
            await until(lambda: again.state.status is FINISHED)
        sent = {dict(request.headers).get("authorization") for request in provider.requests}
        assert sent == {f"Bearer {key.get_secret_value()}"}
