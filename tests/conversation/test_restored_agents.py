"""A conversation that goes on with the agent of its log: what it brings back, and what a log can't make it do."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from pydantic import BaseModel, JsonValue

from agentcore import Agent, FileStore, Store
from agentcore.agent import record_agent, restore_agent
from agentcore.errors import AddressNotAllowed, AgentcoreError
from agentcore.events import AgentConfigured
from agentcore.llm import LLM, AdaptiveLimiter, FallbackLLM, LimitedModel, RouterLLM, allow_base_url, by_length
from agentcore.record import EventLog
from agentcore.testing import ScriptLine, call, say, serve_provider
from agentcore.tools import OutputSchema
from talks import talk


class Line(BaseModel):
    text: str
    number: int = 0


class Facts(BaseModel):
    title: str
    lines: list[Line]


RIGHT: dict[str, JsonValue] = {"title": "a", "lines": [{"text": "b", "number": 1}, {"text": "c"}]}
WRONG: dict[str, JsonValue] = {"title": "a", "lines": [{"number": 1}]}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return FileStore(tmp_path / "logs")


async def edit_recorded_agent(store: Store, conversation_id: str, **changes: object) -> None:
    """Write the log as somebody else might have."""
    log = await EventLog.open(store, conversation_id)
    assert log.state.agent is not None
    await log.append([[AgentConfigured.model_validate({"agent": {**log.state.agent.agent, **changes}, "missing": ()})]])
    await log.close()


async def test_an_output_type_comes_back_as_its_schema_and_the_output_as_checked_data(store: Store) -> None:
    lines: Sequence[ScriptLine] = [
        call("finish", message="one", result=RIGHT),
        call("finish", message="two", result=WRONG),
        call("finish", message="two", result=RIGHT),
    ]
    async with serve_provider(lines) as provider:
        agent = Agent(llm=LLM(model="mine", base_url=provider.base_url, num_retries=0), output=Facts)
        async with talk(agent, store=store, id="a") as conversation:
            assert (await conversation.run("Go.")).output == Facts.model_validate(RIGHT)
        async with talk(None, store=store, id="a") as resumed:
            assert (await resumed.run()).output == RIGHT
            result = await resumed.run("Again.")
            assert (result.text, result.output) == ("two", RIGHT)
        told = str(provider.requests[-1].json()["messages"])
        assert "`lines[0]`:" in told
        tools = [request.json()["tools"] for request in provider.requests]
        assert tools[0] == tools[1]
        # With the agent passed, it is typed again.
        async with talk(agent, store=store, id="a") as typed:
            assert (await typed.run()).output == Facts.model_validate(RIGHT)


def test_an_output_has_the_same_record_before_and_after() -> None:
    recorded, missing = record_agent(Agent(llm=LLM(model="openai/gpt-5"), output=Facts))
    assert missing == ()
    restored = restore_agent(recorded)
    assert isinstance(restored.output, OutputSchema)
    assert restored.output.name == "Facts"
    assert record_agent(restored) == (recorded, ())
    assert record_agent(restore_agent(record_agent(restored)[0])) == (recorded, ())


async def test_a_log_does_not_decide_what_is_imported(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await anyio.Path(tmp_path / "module_of_a_stranger.py").write_text(
        f"open({str(tmp_path / 'imported')!r}, 'w').close()\n"
        "from pydantic import BaseModel\n"
        "class X(BaseModel):\n    a: int\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    async with talk(Agent(llm=LLM(model="openai/gpt-5")), store=store, id="a"):
        pass
    await edit_recorded_agent(store, "a", output="module_of_a_stranger:X")
    with pytest.raises(ValueError, match="Pass the agent"):
        async with talk(None, store=store, id="a"):
            pass
    assert "module_of_a_stranger" not in sys.modules
    assert not await anyio.Path(tmp_path / "imported").exists()


@pytest.mark.parametrize(
    "output", ["os:system", 3, {"name": "x"}, {"name": 3, "schema": {}}, {"name": "x", "schema": {"type": 3}}]
)
def test_an_output_that_is_none_is_refused(output: object) -> None:
    recorded, _ = record_agent(Agent(llm=LLM(model="openai/gpt-5")))
    with pytest.raises((ValueError, TypeError)):
        restore_agent({**recorded, "output": output})


@pytest.mark.parametrize("depth", [1, 60])
def test_an_output_of_a_stranger_ends_in_an_error_and_not_in_a_hang(depth: int) -> None:
    parts = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(depth)}
    schema = {"$defs": parts | {f"a{depth}": {"$ref": "#/$defs/a0"} if depth == 1 else {}}, "$ref": "#/$defs/a0"}
    recorded, _ = record_agent(Agent(llm=LLM(model="openai/gpt-5")))
    recorded = {**recorded, "output": {"name": "x", "schema": schema}}
    with pytest.raises(AgentcoreError, match=r"too large|can't be checked"):
        restore_agent(recorded).own_tools[0].parse({"message": "a", "result": 1})


async def test_no_key_goes_to_an_address_that_only_the_log_names(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user")
    async with talk(Agent(llm=LLM(model="openai/gpt-5")), store=store, id="a"):
        pass
    recorded = LLM(model="openai/gpt-5", base_url="https://attacker.example/v1").record()
    await edit_recorded_agent(store, "a", llm={"kind": "limited", "limiter": {}, "model": recorded})
    with pytest.raises(AddressNotAllowed, match=r"https://attacker\.example/v1.*allow_base_url"):
        async with talk(None, store=store, id="a"):
            pass


async def test_a_server_on_this_machine_is_sent_a_key_only_where_the_program_allows_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user")
    async with serve_provider([say("one"), say("two"), say("three")]) as provider:
        agent = Agent(llm=LLM(model="mine", base_url=provider.base_url, num_retries=0))
        async with talk(agent, store=store, id="a") as conversation:
            await conversation.run("Go.")
        async with talk(None, store=store, id="a") as resumed:
            assert (await resumed.run("Go.")).text == "two"
        allow_base_url(provider.base_url)
        async with talk(None, store=store, id="a") as resumed:
            assert (await resumed.run("Go.")).text == "three"
        sent = [request.headers.get("authorization") for request in provider.requests]
    assert sent == ["Bearer sk-of-the-user", None, "Bearer sk-of-the-user"]


async def test_wrapped_models_go_on_without_the_agent(store: Store) -> None:
    async with serve_provider([say("one"), say("two")]) as provider:
        own = LLM(model="mine", base_url=provider.base_url, num_retries=0)
        routed = RouterLLM({"a": own, "b": own}, by_length(short="a", long="b", tokens=100))
        llm = LimitedModel(FallbackLLM(routed, own), AdaptiveLimiter(start=2))
        async with talk(Agent(llm=llm), store=store, id="a") as conversation:
            await conversation.run("Go.")
        async with talk(None, store=store, id="a") as resumed:
            assert (await resumed.run("Go.")).text == "two"
