"""`LLM(native_tool_calling=False)`: a model whose calls are written in its text is used like any other."""

from __future__ import annotations

import pytest

from agentcore import Agent, Conversation, tool
from agentcore.llm import LLM, ToolCallDelta
from agentcore.messages import Message, ToolSchema
from agentcore.testing import Request, serve_provider, truncated

SAID = "I look.\n\n<function=look>\n<parameter=at>12</parameter>\n</function>"
LOOK_AT = ToolSchema(
    name="look",
    description="Look.",
    parameters={"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
)


def llm(base_url: str) -> LLM:
    return LLM(
        model="openai/small",
        base_url=base_url,
        api_key="sk-a",
        native_tool_calling=False,
        num_retries=1,
        retry_min_wait=0,
        route="native",
    )


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_model_that_calls_in_its_words_is_one_that_calls(streamed: bool) -> None:
    async with serve_provider([truncated(SAID, after=3), SAID] if streamed else [SAID]) as provider:
        model = llm(provider.base_url)
        if streamed:
            async with model.stream([Message.user("Look.")], [LOOK_AT]) as stream:
                deltas = [delta async for delta in stream]
            reply = stream.reply
            assert "reset" in [delta.type for delta in deltas]
            assert isinstance(deltas[-1], ToolCallDelta)
        else:
            reply = await model.complete([Message.user("Look.")], [LOOK_AT])
    assert [(call.name, call.arguments) for call in reply.message.tool_calls] == [("look", {"at": "12"})]
    assert reply.message.text == "I look."
    assert reply.stop_reason == "tool_calls"
    for request in provider.requests:
        sent = request.json()
        assert "tools" not in sent
        assert sent["stop"] == ["</function"]
        assert "## Tool 1: look" in str(sent["messages"][0])


async def test_a_conversation_with_such_a_model_is_restored_with_it() -> None:
    assert LLM.model_validate(llm("http://localhost:1").record()).native_tool_calling is False

    @tool
    async def look(at: str) -> str:
        """Look."""
        return f"You see {at}."

    def answer(request: Request) -> str:
        return SAID if len(request.messages) == 2 else f"{request.last.text} I am done."

    async with (
        serve_provider(answer) as provider,
        Conversation(Agent(llm=llm(provider.base_url), tools=[look])) as conversation,
    ):
        result = await conversation.run("Look.")
    assert result.text == "Result of look:\nYou see 12. I am done."
