"""How every route to providers shows pictures and documents: a contract, for each route to subclass."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentcore.errors import BadRequest
from agentcore.llm import LLM, Features
from agentcore.messages import DocumentBlock, ImageBlock, Message, TextBlock, ToolCallBlock, ToolResultBlock, ToolSchema
from agentcore.testing import say, serve_provider
from model_route import Route, canned

__all__ = ["MediaContract"]


class MediaContract(Route):
    """Pictures and documents, on the three interfaces."""

    async def test_what_a_model_does_not_see_or_take_is_not_sent(self) -> None:
        async with serve_provider([say("Nice.")]) as provider:
            model = LLM(
                model="some-model", base_url=provider.base_url, route=self.route, features=Features(vision=False)
            )
            ask = [Message.user("See:", ImageBlock(data="eA==", media_type="image/png"))]
            with pytest.raises(BadRequest, match="takes no pictures"):
                await model.complete(ask)
            with pytest.raises(BadRequest, match="takes no pictures"):
                async with model.stream(ask):
                    pass
            deaf = model.model_copy(update={"features": Features(pdf=False)})
            with pytest.raises(BadRequest, match=r"'plan\.pdf' in message 1 can't be sent: this model takes no PDF"):
                await deaf.complete([Message.user(DocumentBlock(data="aGk=", name="plan.pdf"))])
            assert provider.requests == []
            assert (await model.model_copy(update={"features": Features()}).complete(ask)).message.text == "Nice."

    async def test_pictures_and_documents_arrive_as_chat_has_them_from_a_person_and_from_a_tool(self) -> None:
        picture = ImageBlock(data="eA==", media_type="image/png")
        document = DocumentBlock(data="aGk=", name="plan.pdf")
        shown = ToolResultBlock(call_id="a", name="look", content=(TextBlock(text="Here."), picture, document))
        sent = [
            Message.user("See:", picture, document),
            Message.assistant(ToolCallBlock(id="a", name="look", arguments={})),
            Message(role="tool", content=(shown,)),
        ]
        async with self.asked(say("Nice."), say("Nice.")) as (model, provider):
            assert (await model.complete(sent)).message.text == "Nice."
            async with model.stream(sent) as stream:
                async for _ in stream:
                    pass
            bodies = [request.json() for request in provider.requests]
        parts = [
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}},
            {"type": "file", "file": {"filename": "plan.pdf", "file_data": "data:application/pdf;base64,aGk="}},
        ]
        for body in bodies:
            asked, _, answered, after = body["messages"]
            assert asked["content"] == [{"type": "text", "text": "See:"}, *parts]
            assert answered["content"].startswith("Here.\n(The picture and the document")
            assert (after["role"], after["content"]) == ("user", parts)

    async def test_pictures_and_documents_arrive_as_responses_has_them(self) -> None:
        document = DocumentBlock(data="aGk=", name="plan.pdf")
        shown = ToolResultBlock(call_id="a", name="look", content=(document,))
        sent = [
            Message.user("See:", ImageBlock(data="eA==", media_type="image/png"), document),
            Message.assistant(ToolCallBlock(id="a", name="look", arguments={})),
            Message(role="tool", content=(shown,)),
        ]
        text: dict[str, Any] = {"type": "output_text", "text": "Nice.", "annotations": []}
        said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
        response: dict[str, Any] = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m"}
        response |= {"status": "completed", "output": [said], "parallel_tool_calls": True, "tool_choice": "auto"}
        response["tools"] = []
        async with canned(json.dumps(response).encode()) as server:
            model = self.model_at(f"{server.url}/v1", api_mode="responses")
            assert (await model.complete(sent)).message.text == "Nice."
            (request,) = server.asked
        asked, _, answered = request.json()["input"]
        file = {"type": "input_file", "filename": "plan.pdf", "file_data": "data:application/pdf;base64,aGk="}
        assert [part["type"] for part in asked["content"]] == ["input_text", "input_image", "input_file"]
        assert asked["content"][2] == file
        assert answered["output"] == [file]

    async def test_pictures_and_documents_arrive_as_anthropic_has_them(self) -> None:
        document = DocumentBlock(data="aGk=", name="plan.pdf")
        shown = ToolResultBlock(call_id="a", name="look", content=(TextBlock(text="Here."), document))
        sent = [
            Message.user("See:", ImageBlock(data="eA==", media_type="image/png"), document),
            Message.assistant(ToolCallBlock(id="a", name="look", arguments={})),
            Message(role="tool", content=(shown,)),
        ]
        reply = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
        reply |= {"content": [{"type": "text", "text": "Nice."}], "usage": {"input_tokens": 3, "output_tokens": 5}}
        async with canned(json.dumps(reply).encode()) as server:
            model = self.model_at(server.url, model="anthropic/claude-sonnet-4-5", prompt_caching=False)
            tools = [ToolSchema(name="look", description="Looks.", parameters={"type": "object", "properties": {}})]
            assert (await model.complete(sent, tools)).message.text == "Nice."
            (request,) = server.asked
        asked, _, answered = request.json()["messages"]
        source = {"type": "base64", "media_type": "application/pdf", "data": "aGk="}
        assert [part["type"] for part in asked["content"]] == ["text", "image", "document"]
        assert asked["content"][2]["source"] == source
        (result,) = answered["content"]
        assert [part["type"] for part in result["content"]] == ["text", "document"]
        assert result["content"][1]["source"] == source
