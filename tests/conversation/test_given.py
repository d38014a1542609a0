from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentcore.agent import Agent
from agentcore.conversation import Conversation, Host
from agentcore.record import MemoryStore
from agentcore.security import AlwaysConfirm
from agentcore.testing import ScriptedLLM


@pytest.mark.parametrize("confirm", [True, "always", AlwaysConfirm])
async def test_what_can_not_decide_is_refused_at_once(confirm: Any) -> None:
    agent = Agent(llm=ScriptedLLM([]))
    with pytest.raises(TypeError, match=r"confirm is a policy, as AlwaysConfirm\(\)"):
        Conversation(agent, confirm=confirm)
    async with Host() as host:
        with pytest.raises(TypeError, match="confirm is a policy"):
            await host.open(agent, confirm=confirm)


@pytest.mark.parametrize("store", ["logs", Path("logs")])
async def test_a_folder_in_place_of_a_store_is_refused_at_once_with_the_store_that_is_meant(store: Any) -> None:
    agent = Agent(llm=ScriptedLLM([]))
    with pytest.raises(TypeError, match=r"not its folder: FileStore\('logs'\)"):
        Conversation(agent, store=store)
    async with Host() as host:
        with pytest.raises(TypeError, match="not its folder"):
            await host.open(agent, store=store)


@pytest.mark.parametrize("store", [MemoryStore, True])
def test_what_is_no_store_is_refused_at_once(store: Any) -> None:
    with pytest.raises(TypeError, match=r"store is a store, as FileStore\('conversations'\) or MemoryStore\(\), not"):
        Conversation(Agent(llm=ScriptedLLM([])), store=store)


async def test_one_step_and_one_event_are_said_as_one(tmp_path: Path) -> None:
    async with Conversation(Agent(llm=ScriptedLLM(["Hi."])), tmp_path) as conversation:
        result = await conversation.run("Hello?")
    assert repr(result).startswith("<RunResult finished, 1 step,") or repr(result).startswith(
        "<RunResult finished, 1 step "
    )
