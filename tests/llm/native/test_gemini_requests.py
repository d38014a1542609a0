"""What is sent to Google's generateContent interface, and where."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from agentcore.errors import AuthenticationError, BadRequest
from agentcore.llm import LLM, CallContext, ResponseSchema
from agentcore.messages import (
    DocumentBlock,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSchema,
)
from gemini_server import SAID, Json, google, read
from model_route import ASK, KEY

TOOL = ToolSchema(name="look", description="Looks.", parameters={"type": "object", "properties": {}})


async def test_the_request_says_all_that_was_set() -> None:
    settings: dict[str, Any] = {
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 700,
        "reasoning_effort": "low",
        "logprobs": 2,
        "service_tier": "flex",
        "extra_headers": {"X-Team": "core"},
        "extra_body": {"generationConfig": {"topK": 3}, "safetySettings": [], "tools": [{"googleSearch": {}}]},
    }
    context = CallContext(stop=("END",), response_schema=ResponseSchema("answer", {"type": "object"}))
    messages = [Message.system("Be brief."), Message.system("Be kind."), *ASK]
    async with google([SAID]) as server:
        await server.model(**settings).complete(messages, [TOOL], context=context)
        request, body = server.asked[0], server.sent
    assert request.path == "/v1beta/models/gemini-2.5-flash:generateContent"
    assert (request.headers["x-goog-api-key"], request.headers["x-team"]) == (KEY, "core")
    assert body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]},
        "contents": [{"role": "user", "parts": [{"text": "Hello?"}]}],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "look", "description": "Looks.", "parametersJsonSchema": TOOL.parameters}
                ]
            },
            {"googleSearch": {}},
        ],
        "generationConfig": {
            "temperature": 0.5,
            "topP": 0.9,
            "maxOutputTokens": 700,
            "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 560},
            "stopSequences": ["END"],
            "responseMimeType": "application/json",
            "responseJsonSchema": {"type": "object"},
            "responseLogprobs": True,
            "logprobs": 2,
            "topK": 3,
        },
        "serviceTier": "flex",
        "safetySettings": [],
    }


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("", "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"),
        ("/v1beta", "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"),
        ("/v1beta/models", "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"),
        ("/gate/v1?team=core", "/gate/v1/models/gemini-2.5-flash:streamGenerateContent?alt=sse&team=core"),
    ],
)
async def test_the_address_is_made_of_what_is_given(base: str, path: str) -> None:
    async with google([SAID]) as server:
        await read(server.model(base_url=f"{server.url}{base}"))
        assert server.asked[0].path == path


@pytest.mark.parametrize(
    ("name", "effort", "config"),
    [
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0}),
        ("gemini-2.5-pro", "none", {"thinkingBudget": 128}),
        ("gemini-2.5-pro", "medium", {"includeThoughts": True, "thinkingBudget": 8192}),
        ("gemini-3.5-flash", "minimal", {"includeThoughts": True, "thinkingLevel": "minimal"}),
        ("gemini-3.5-flash", "none", {"includeThoughts": False, "thinkingLevel": "minimal"}),
        ("gemini-3-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-3.1-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "medium"}),
        ("gemini-3.1-pro-preview", "max", {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-3.1-pro-preview", "none", {"includeThoughts": False, "thinkingLevel": "low"}),
        ("gemini-2.0-flash", "high", None),
    ],
)
async def test_how_much_to_think_is_said_in_the_words_of_the_model(name: str, effort: str, config: Any) -> None:
    async with google([SAID]) as server:
        features = {"reasoning": False} if name == "gemini-2.0-flash" else {}
        await server.model(name, reasoning_effort=effort, features=features).complete(ASK)
        assert server.sent.get("generationConfig", {}).get("thinkingConfig") == config


async def test_a_model_that_always_thinks_refuses_not_to_where_nothing_may_be_dropped() -> None:
    async with google([SAID]) as server:
        with pytest.raises(BadRequest, match="always thinks"):
            await server.model("gemini-2.5-pro", reasoning_effort="none", drop_params=False).complete(ASK)
        assert server.asked == []


async def test_answers_of_tools_stand_together_in_the_order_of_the_calls() -> None:
    def answered(call_id: str, *, is_error: bool = False) -> Message:
        content = (TextBlock(text=f"of {call_id}"),)
        return Message(
            role="tool", content=(ToolResultBlock(call_id=call_id, name="look", content=content, is_error=is_error),)
        )

    calls = [ToolCallBlock(id=name, name="look", arguments={}) for name in ("a", "b")]
    messages = [*ASK, Message.assistant(*calls), answered("b", is_error=True), answered("a"), Message.user("Go on.")]
    async with google([SAID]) as server:
        await server.model().complete(messages)
        contents = server.sent["contents"]
    assert [content["role"] for content in contents] == ["user", "model", "user", "user"]
    assert [part["functionResponse"] for part in contents[2]["parts"]] == [
        {"id": "a", "name": "look", "response": {"output": "of a"}},
        {"id": "b", "name": "look", "response": {"error": "of b"}},
    ]


@pytest.mark.parametrize(
    ("name", "signed"), [("gemini-2.5-flash", None), ("gemini-3.5-flash", "skip_thought_signature_validator")]
)
async def test_a_call_that_another_model_made_is_taken_by_newer_models_too(name: str, signed: str | None) -> None:
    calls = [ToolCallBlock(id=call_id, name="look", arguments={}) for call_id in ("a", "b")]
    foreign = ThinkingBlock(text="hm", signature="theirs", provider="anthropic")
    async with google([SAID]) as server:
        await server.model(name).complete([*ASK, Message.assistant(foreign, *calls)])
        parts = server.sent["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == [signed, None]


async def test_pictures_and_documents_arrive_from_a_person_and_from_a_tool() -> None:
    picture = ImageBlock(data="eA==", media_type="image/png")
    document = DocumentBlock(data="aGk=", name="plan.pdf")
    linked = [ImageBlock(url="https://example.com/a.jpg?x=1"), ImageBlock(url="data:image/webp;base64,eA==")]
    result = ToolResultBlock(call_id="a", name="look", content=(TextBlock(text="Here."), document))
    call = ToolCallBlock(id="a", name="look", arguments={})
    messages = [
        Message.user("See:", picture, document, *linked),
        Message.assistant(call),
        Message(role="tool", content=(result,)),
    ]
    async with google([SAID]) as server:
        await server.model().complete(messages)
        older = server.sent["contents"]
        await server.model("gemini-3.5-flash").complete(messages)
        newer = server.sent["contents"]
    pdf = {"inlineData": {"mimeType": "application/pdf", "data": "aGk="}}
    assert older[0]["parts"] == [
        {"text": "See:"},
        {"inlineData": {"mimeType": "image/png", "data": "eA=="}},
        pdf,
        {"fileData": {"fileUri": "https://example.com/a.jpg?x=1", "mimeType": "image/jpeg"}},
        {"inlineData": {"mimeType": "image/webp", "data": "eA=="}},
    ]
    answer, behind = older[2]["parts"]
    assert answer["functionResponse"]["response"]["output"].startswith("Here.\n(What else")
    assert behind == pdf
    (answer,) = newer[2]["parts"]
    assert answer["functionResponse"]["parts"] == [pdf]
    assert answer["functionResponse"]["response"] == {"output": "Here."}


async def test_tools_of_google_go_beside_those_of_the_agent_where_the_model_does_both() -> None:
    own: dict[str, Any] = {"extra_body": {"tools": [{"googleSearch": {}}]}}
    async with google([SAID]) as server:
        await server.model("gemini-3.5-flash", **own).complete(ASK, [TOOL])
        assert server.sent["toolConfig"] == {"includeServerSideToolInvocations": True}
        await server.model("gemini-2.5-flash", **own).complete(ASK, [TOOL])
        assert "toolConfig" not in server.sent


async def test_what_was_sent_before_is_sent_again_in_the_same_bytes() -> None:
    messages = [Message.system("Be brief."), *ASK]
    sent: list[bytes] = []
    async with google([SAID]) as server:
        for step in range(6):
            await server.model().complete(messages)
            sent.append(server.asked[-1].content)
            call = ToolCallBlock(id=f"c{step}", name="look", arguments={})
            result = ToolResultBlock(call_id=call.id, name="look", content=(TextBlock(text="x"),))
            messages += [Message.assistant("I look.", call), Message(role="tool", content=(result,))]
            if step % 2:
                messages += [Message.user("Two"), Message.user("in a row.")]
        fresh = [Message.model_validate_json(message.model_dump_json()) for message in messages]
        await server.model().complete(messages)
        await server.model().complete(fresh)
        assert server.asked[-1].content == server.asked[-2].content
    for before, after in pairwise(sent):
        contents, later = (json.loads(body)["contents"] for body in (before, after))
        assert later[: len(contents)] == contents


async def test_without_a_key_both_variables_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    with pytest.raises(AuthenticationError, match="Set GEMINI_API_KEY or GOOGLE_API_KEY, or pass"):
        await LLM(model="gemini/gemini-2.5-flash").complete(ASK)


async def test_at_its_other_address_google_is_spoken_to_as_openai_is() -> None:
    said: Json = {"choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}], "usage": {}}
    async with google([said]) as server:
        reply = await server.model(base_url=f"{server.url}/v1beta/openai").complete(ASK)
        assert server.asked[0].path == "/v1beta/openai/chat/completions"
    assert reply.message.text == "Hi."
