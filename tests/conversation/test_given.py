"""What a conversation, a host or an agent is given by mistake: refused at once, with what was meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentcore import Agent, AlwaysConfirm, Conversation, Host, MemoryStore
from talks import IDLE, scripted, talk


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        *[
            ({"confirm": each}, r"confirm is a policy, as AlwaysConfirm\(\)")
            for each in (True, "always", AlwaysConfirm)
        ],
        *[({"store": each}, r"not its folder: FileStore\('logs'\)") for each in ("logs", Path("logs"))],
        *[
            ({"store": each}, r"store is a store, as FileStore\('conversations'\) or MemoryStore\(\), not")
            for each in (MemoryStore, True)
        ],
    ],
)
async def test_what_can_not_decide_or_can_not_store_is_refused_at_once(wrong: dict[str, Any], match: str) -> None:
    with pytest.raises(TypeError, match=match):
        Conversation(scripted([]), **wrong)
    async with Host() as host:
        with pytest.raises(TypeError, match=match):
            await host.open(scripted([]), **wrong)


async def test_what_is_no_agent_no_model_no_tool_or_no_message_is_refused_at_once() -> None:
    wrong: Any = "anthropic/claude"
    with pytest.raises(TypeError, match=r"LLM\(model='anthropic/claude'\)"):
        Agent(llm=wrong)
    with pytest.raises(TypeError, match="upper is neither a tool nor a toolset: decorate"):
        scripted([], str.upper)
    with pytest.raises(TypeError, match=r"Agent\(llm"):
        async with Conversation(wrong):
            pass
    nothing: Any = None
    async with talk([]) as conversation:
        with pytest.raises(TypeError, match="not NoneType"):
            await conversation.send(nothing)
        assert conversation.state.status is IDLE
