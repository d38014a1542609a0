"""Agents that clients bring: never with a key of the environment, and never to a private address."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import JsonValue, SecretStr

from agentcore import LLM, Agent
from agentcore.agent import record_agent
from agentcore.condense import Summary
from agentcore.errors import RunError
from agentcore.llm import FallbackLLM
from agentcore.wire.requests import ClientAgent, ConversationSpec
from agentcore_serve.agents import OwnAgent, restore_own_agent
from agentcore_serve.refused import Refused
from agentcore_tools import readonly_tools
from hubs import ANN, BEN, serving
from talks import scripted

KEY = SecretStr("sk-of-the-client-0123456789")


def recorded(**llm: Any) -> dict[str, JsonValue]:
    """Return the record of a client's agent."""
    return record_agent(Agent(llm=LLM.model_validate({"model": "openai/gpt-5", **llm}), tools=readonly_tools()))[0]


@pytest.fixture(autouse=True)
def _key_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-SERVERS-OWN-KEY")


async def test_it_has_the_clients_key_or_none() -> None:
    agent = await restore_own_agent(OwnAgent(recorded(), KEY))
    assert cast("LLM", agent.llm).revealed_key == KEY.get_secret_value()
    assert [tool.name for tool in agent.own_tools][:1] == ["read_file"]
    without = await restore_own_agent(OwnAgent(recorded()))
    assert cast("LLM", without.llm).revealed_key == ""  # which asks the environment for nothing


async def test_each_model_of_a_fallback_has_the_clients_key() -> None:
    record, _ = record_agent(Agent(llm=FallbackLLM(LLM("openai/gpt-5"), LLM("openai/gpt-5-mini"))))
    agent = await restore_own_agent(OwnAgent(record, KEY))
    assert {cast("LLM", each).revealed_key for each in cast("FallbackLLM", agent.llm).models} == {
        KEY.get_secret_value()
    }


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:18311/v1",
        "http://localhost/v1",
        "http://10.1.2.3/v1",
        "http://169.254.169.254/latest",
        "http://[::1]/v1",
        "http://[::ffff:10.0.0.1]/v1",
        "http://[fe80::1]/v1",
        "http://0.0.0.0/v1",
        "http://224.0.0.1/v1",
        "http://2130706433/v1",
        "http://0x7f.1/v1",
    ],
)
async def test_private_addresses_are_refused_in_whatever_form(url: str) -> None:
    with pytest.raises(Refused) as refused:
        await restore_own_agent(OwnAgent(recorded(base_url=url), KEY))
    assert refused.value.code == "address_not_allowed"
    assert url not in str(refused.value)


async def test_private_addresses_that_the_settings_list_are_reached() -> None:
    for url, allowed in (
        ("http://10.1.2.3/v1", "10.0.0.0/8"),
        ("http://localhost:1/v1", "LOCALHOST"),
        ("http://[::1]/", "::1"),
    ):
        agent = await restore_own_agent(OwnAgent(recorded(base_url=url), KEY), [allowed])
        assert cast("LLM", agent.llm).base_url is not None
    with pytest.raises(Refused):
        await restore_own_agent(OwnAgent(recorded(base_url="http://10.1.2.3/v1"), KEY), ["192.168.0.0/16"])


def _with(record: dict[str, JsonValue], **changes: Any) -> dict[str, JsonValue]:
    return {**record, **changes}


async def test_what_would_use_the_servers_credentials_is_refused() -> None:
    plain = recorded()
    condensing, _ = record_agent(Agent(llm=LLM("openai/gpt-5"), condenser=Summary(llm=LLM("openai/gpt-5-mini"))))
    llm = cast("dict[str, JsonValue]", plain["llm"])
    for record in (
        _with(plain, llm={**llm, "model": "bedrock/anthropic.claude"}),
        _with(plain, llm={**llm, "route": "litellm"}),
        _with(plain, llm={**llm, "provider_options": {"api_version": "1"}}),
        _with(plain, llm={"kind": "text_calls", "model": llm}),
        condensing,
        _with(plain, llm=None),
        _with(plain, tools=[{"name": "nope"}]),
        _with(plain, output="this:Missing"),
        {},
    ):
        with pytest.raises(Refused) as refused:
            await restore_own_agent(OwnAgent(record, KEY))
        assert refused.value.status == 422
        assert "sk-" not in str(refused.value)


async def test_after_a_restart_it_has_no_key_until_the_client_passes_it_again(tmp_path: Path) -> None:
    spec = ConversationSpec(agent=ClientAgent(record=recorded(num_retries=0), model_key=KEY))
    async with serving(scripted([]), tmp_path) as hub:
        with pytest.raises(Refused, match="scope"):
            await hub.create(BEN, spec)
        served = await hub.create(ANN, spec, "c1")
        assert key_of(hub, "c1") == KEY.get_secret_value()
        assert served.info().agent is None
    kept = b"".join(path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file())
    assert KEY.get_secret_value().encode() not in kept
    async with serving(scripted([]), tmp_path) as hub:
        served = await hub.open(ANN, "c1")
        assert key_of(hub, "c1") == ""
        with pytest.raises(RunError):
            await served.conversation.run("go")
        assert await hub.create(ANN, spec, "c1") is served
        assert key_of(hub, "c1") == KEY.get_secret_value()


async def test_a_clients_agent_that_is_set_stays_the_clients(tmp_path: Path) -> None:
    async with serving(scripted([]), tmp_path) as hub:
        served = await hub.create(ANN, ConversationSpec(), "c1")
        await served.conversation.set_agent(await hub.own_agent(served, recorded(), KEY))
        await served.conversation.close()
        await served.ended.wait()
        await hub.open(ANN, "c1")
        assert key_of(hub, "c1") == KEY.get_secret_value()
    async with serving(scripted([]), tmp_path) as hub:
        await hub.open(ANN, "c1")
        assert key_of(hub, "c1") == ""


def key_of(hub: Any, conversation_id: str) -> str | None:
    """Return the key that the agent of an open conversation has."""
    core = hub.open_ones.find(conversation_id).conversation.link.core
    return cast("str | None", (core.next_agent or core.agent).llm.revealed_key)
