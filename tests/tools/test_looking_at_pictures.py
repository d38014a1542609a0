"""A picture in a conversation with a real request: shown to a model that can look, and not sent to one that can't."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import anyio
import pytest

from agentcore import LLM, Agent, AgentErrorEvent, Conversation, ConversationStatus
from agentcore.llm import Features
from agentcore.testing import call, say, serve_provider
from agentcore_tools import file_editor_tool

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.mark.parametrize("vision", [True, False])
async def test_a_picture_goes_only_to_a_model_that_can_look_at_it(tmp_path: Path, vision: bool) -> None:
    (tmp_path / "dot.png").write_bytes(PICTURE)
    with anyio.fail_after(60):
        async with serve_provider([call("file_editor", command="view", path="dot.png"), say("A dot.")]) as provider:
            llm = LLM(model="mine", base_url=provider.base_url, api_key="k", features=Features(vision=vision))
            async with Conversation(Agent(llm=llm, tools=[file_editor_tool()]), tmp_path) as conversation:
                result = await conversation.run("What is in it?")
                refused = [event.error for event in conversation.state.events if isinstance(event, AgentErrorEvent)]
            sent = json.dumps(json.loads(provider.requests[-1].content)["messages"])
    assert (result.status, result.text) == (ConversationStatus.FINISHED, "A dot.")
    assert (base64.b64encode(PICTURE).decode() in sent) is vision
    assert len(refused) == (0 if vision else 1)
    assert vision or "which you cannot look at" in refused[0]
