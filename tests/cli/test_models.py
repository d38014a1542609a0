from __future__ import annotations

import sys
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from agentcore.agent import Agent
from agentcore.cli.failures import UsageError
from agentcore.cli.models import build_agent, check_model, rebuild_agent
from agentcore.cli.settings import Settings, read_settings
from agentcore.conversation import Conversation
from agentcore.llm import LLM, FallbackLLM, Model
from agentcore.record import ConversationState
from agentcore.testing import ScriptedLLM
from agentcore.tools import tool
from agentcore.usage import Limits
from agentcore_tools import coding_tools

pytestmark = pytest.mark.skipif(find_spec("litellm") is None, reason="models are reached through litellm: [litellm]")


def settings(**variables: str) -> Settings:
    return read_settings(home="/h", environment={"PATH": "/bin", **variables})


KEYED = settings(AGENTCORE_API_KEY="sk-now")
MINE = settings(AGENTCORE_MODEL="mine")
MOVED = settings(AGENTCORE_BASE_URL="http://127.0.0.1:2")
PLAIN = settings()
OTHER = settings(AGENTCORE_MODEL="other", AGENTCORE_API_KEY="sk-now")
KEYED_SERVER = settings(AGENTCORE_API_KEY="sk-now", AGENTCORE_BASE_URL="http://127.0.0.1:3/v1")
OWN_SERVER = settings(AGENTCORE_MODEL="mine", AGENTCORE_BASE_URL="http://127.0.0.1:1")
GEMINI = read_settings(home="/h", model="gemini/y", environment={"GEMINI_API_KEY": "k"})


def rebuild(
    state: ConversationState,
    settings: Settings,
    model: str | None = None,
    base_url: str | None = None,
    retries: int | None = None,
) -> Agent:
    return rebuild_agent(state, settings, model=model, base_url=base_url, retries=retries)


def llm_of(agent: Agent) -> LLM:
    assert isinstance(agent.llm, LLM)
    return agent.llm


async def state_of(llm: Model, tools: Any, tmp_path: Path) -> ConversationState:
    """Give the state of a conversation that was opened with this agent."""
    async with Conversation(Agent(llm=llm, tools=tools), tmp_path) as conversation:
        return conversation.state


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({}, "--model or AGENTCORE_MODEL"),
        ({"AGENTCORE_MODEL": "openai/"}, "names no model"),
        ({"AGENTCORE_MODEL": "x", "AGENTCORE_BASE_URL": "localhost:1"}, "is no address"),
        *(
            ({"AGENTCORE_MODEL": name}, f"as in '{meant}'; for a server of your own, say where it is: --model '{name}' --base-url URL.")
            for name, meant in (("claude", "anthropic/claude-sonnet-4-5"), ("gpt-5", "openai/gpt-5"), ("gemini-3", "gemini/gemini-3"))
        ),
        ({"AGENTCORE_MODEL": "anthropic/claude-sonnet-4-5"}, "Set the environment variable ANTHROPIC_API_KEY"),
        ({"AGENTCORE_MODEL": "gemini/x"}, "Set the environment variable GEMINI_API_KEY or GOOGLE_API_KEY"),
    ],
)  # fmt: skip
def test_a_model_that_can_not_be_is_refused_in_one_sentence(variables: dict[str, str], complaint: str) -> None:
    with pytest.raises(UsageError) as raised:
        build_agent(settings(**variables))
    assert complaint in str(raised.value)
    assert [part for part in ("\n", "validation error", "LLM(") if part in str(raised.value)] == []


@pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "AGENTCORE_API_KEY"])
def test_with_a_key_the_model_is_taken_and_the_key_not_recorded(name: str) -> None:
    llm = llm_of(build_agent(settings(AGENTCORE_MODEL="anthropic/claude-sonnet-4-5", **{name: "sk-secret"})))
    assert llm.model == "anthropic/claude-sonnet-4-5"
    assert "sk-secret" not in f"{llm!r} {llm.record()}"


def test_without_key_and_litellm_both_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(UsageError) as raised:
        build_agent(settings(AGENTCORE_MODEL="cohere/x"))
    assert "Set the environment variable COHERE_API_KEY" in str(raised.value)
    assert "agentcore-runtime[litellm]" in str(raised.value)


def test_without_litellm_a_provider_that_nobody_knows_is_not_looked_for_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(UsageError, match="did you mean 'anthropic'") as raised:
        build_agent(settings(AGENTCORE_MODEL="antropic/x"))
    assert "pip install" not in str(raised.value)


async def test_a_limit_on_the_cost_needs_a_price() -> None:
    limits = Limits(cost=Decimal(1))
    prices = {"input_cost_per_token": Decimal("0.1"), "output_cost_per_token": Decimal("0.1")}
    mine = LLM(model="mine", base_url="http://127.0.0.1:1")
    await check_model(mine, Limits())
    await check_model(mine.model_copy(update=prices), limits)
    await check_model(LLM(model="openrouter/a/b"), limits)  # it says what it charged
    await check_model(LLM(model="anthropic/claude-sonnet-4-5"), limits)
    await check_model(ScriptedLLM([]), limits)
    for model in (mine, FallbackLLM(LLM(model="openrouter/a/b"), mine)):
        with pytest.raises(UsageError, match=r"No price is known for 'openai/mine'"):
            await check_model(model, limits)


async def test_several_models_stay_and_have_no_common_address(tmp_path: Path) -> None:
    both = FallbackLLM(LLM(model="a", base_url="http://127.0.0.1:1"), LLM(model="anthropic/x", api_key="k"))
    state = await state_of(both, coding_tools(), tmp_path)
    assert isinstance(rebuild(state, OWN_SERVER).llm, FallbackLLM)
    with pytest.raises(UsageError, match="several models"):
        rebuild(state, OWN_SERVER, base_url="http://127.0.0.1:1")


async def test_a_bare_name_is_one_that_the_server_of_the_log_knows(tmp_path: Path) -> None:
    state = await state_of(LLM(model="mine", base_url="http://127.0.0.1:1", temperature=0.5), coding_tools(), tmp_path)
    same = llm_of(rebuild(state, MINE))
    assert (same.model, same.base_url, same.temperature) == ("openai/mine", "http://127.0.0.1:1", 0.5)


def test_a_server_of_ones_own_needs_no_key() -> None:
    llm = llm_of(build_agent(settings(AGENTCORE_MODEL="mine", AGENTCORE_BASE_URL="http://127.0.0.1:1/v1"), retries=2))
    assert (llm.model, llm.base_url, llm.num_retries) == ("openai/mine", "http://127.0.0.1:1/v1", 2)


async def test_a_recorded_agent_comes_back_with_the_key_of_now(tmp_path: Path) -> None:
    state = await state_of(LLM(model="anthropic/x", temperature=0.5), coding_tools(), tmp_path)
    agent = rebuild(state, KEYED)
    assert (llm_of(agent).model, llm_of(agent).temperature) == ("anthropic/x", 0.5)
    key: Any = llm_of(agent).api_key
    assert key.get_secret_value() == "sk-now"
    assert [tool.name for tool in agent.tools] == [tool.name for tool in coding_tools()]


async def test_flags_change_the_recorded_model(tmp_path: Path) -> None:
    state = await state_of(LLM(model="mine", base_url="http://127.0.0.1:1"), coding_tools(), tmp_path)
    moved = rebuild(state, MOVED, base_url="http://127.0.0.1:2", retries=1)
    assert (llm_of(moved).model, llm_of(moved).base_url) == ("openai/mine", "http://127.0.0.1:2")
    assert llm_of(rebuild(state, GEMINI, model="gemini/y")).model == "gemini/y"


async def test_a_scripted_model_is_not_recorded_and_another_one_takes_its_place(tmp_path: Path) -> None:
    state = await state_of(ScriptedLLM([]), coding_tools(), tmp_path)
    with pytest.raises(UsageError, match=r"was not recorded .*--model"):
        rebuild(state, PLAIN)
    agent = rebuild(state, OWN_SERVER)
    assert llm_of(agent).model == "openai/mine"
    assert [tool.name for tool in agent.tools] == [tool.name for tool in coding_tools()]


async def test_tools_that_could_not_be_recorded_are_named(tmp_path: Path) -> None:
    @tool
    async def local() -> str:
        """Do something."""
        return ""

    state = await state_of(LLM(model="mine", base_url="http://127.0.0.1:1"), [local], tmp_path)
    with pytest.raises(UsageError, match="the tool 'local'"):
        rebuild(state, PLAIN)


ELSEWHERE = LLM(model="mine", base_url="https://gateway.example/v1")


@pytest.mark.parametrize("llm", [ELSEWHERE, FallbackLLM(LLM(model="anthropic/x"), ELSEWHERE)], ids=["one", "several"])
async def test_an_address_that_only_the_log_names_is_refused_with_the_flag(llm: Model, tmp_path: Path) -> None:
    state = await state_of(llm, coding_tools(), tmp_path)
    for rendered in (PLAIN, KEYED):
        with pytest.raises(UsageError, match=r"--base-url https://gateway\.example/v1"):
            rebuild(state, rendered)


async def test_a_bare_name_does_not_take_the_key_to_the_address_of_the_log(tmp_path: Path) -> None:
    state = await state_of(ELSEWHERE, coding_tools(), tmp_path)
    with pytest.raises(UsageError, match="--base-url"):
        rebuild(state, OTHER, model="other", retries=1)


async def test_the_key_goes_to_a_server_on_this_machine_only_where_a_flag_names_it(tmp_path: Path) -> None:
    state = await state_of(LLM(model="mine", base_url="http://127.0.0.1:3/v1"), coding_tools(), tmp_path)
    quiet = llm_of(rebuild(state, KEYED))
    assert (quiet.base_url, quiet.revealed_key) == ("http://127.0.0.1:3/v1", "")
    keyed = llm_of(rebuild(state, KEYED_SERVER, base_url="http://127.0.0.1:3/v1"))
    assert (keyed.base_url, keyed.revealed_key) == ("http://127.0.0.1:3/v1", "sk-now")
