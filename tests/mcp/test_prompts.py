"""Prompts of servers, called by a user's message."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp_types import Prompt, PromptArgument

from agentcore import AgentContext
from agentcore.events import ContextAdded, ContextNotice, ConversationStateUpdateEvent
from agentcore.mcp import MCPPrompts, MCPToolset
from agentcore.mcp.prompt_reading import parse_arguments
from agentcore.testing import say
from mcp_opened import program
from talks import events_of, scripted, talk


async def test_a_message_that_begins_with_a_prompts_name_brings_its_text(tmp_path: Path) -> None:
    context = AgentContext(sources=[MCPPrompts()])
    agent = scripted([say("Hello, Ada."), say("?"), say("?")], MCPToolset(program("raw")), context=context)
    async with talk(agent, workspace=tmp_path) as conversation:
        await conversation.run("/mcp__raw__greet who=Ada\nThank you.")
        (added,) = events_of(conversation, ContextAdded)
        assert added.name == "prompt:mcp__raw__greet"
        assert added.text.startswith("Prompt 'greet'. The user called it; it was written by the MCP server 'raw'")
        assert added.text.endswith("<mcp-prompt>\nGreet Ada.\n</mcp-prompt>")
        await conversation.run("/mcp__raw__greet")
        await conversation.run("/mcp__raw__nothing")
        assert len(events_of(conversation, ContextAdded)) == 1
        updates = [event.update for event in events_of(conversation, ConversationStateUpdateEvent)]
        assert [update.detail for update in updates if isinstance(update, ContextNotice)] == [
            "/mcp__raw__greet: The MCP server 'raw' can't give it: these arguments are missing: who. Write them as who=...",
            "/mcp__raw__nothing: no MCP server that is open has such a prompt.",
        ]


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("", {}),
        ("a=1 b='2 3'", {"a": "1", "b": "2 3"}),
        ("one two three", {"a": "one", "b": "two three"}),
        ("b=2 rest of it", {"a": "rest of it", "b": "2"}),
        ("it's c=4", {"a": "it's", "b": "c=4"}),
    ],
)
def test_arguments_are_read_by_name_or_by_order(words: str, given: dict[str, str]) -> None:
    prompt = Prompt(name="p", arguments=[PromptArgument(name="a"), PromptArgument(name="b")])
    assert parse_arguments(prompt, words) == given
