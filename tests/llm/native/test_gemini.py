"""Google's generateContent interface, natively: what is sent, what is read, and that each signature goes back where it was."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcore import Agent, Conversation, ConversationStatus, FileStore, tool
from agentcore.errors import (
    AuthenticationError,
    BadRequest,
    ContextWindowExceeded,
    ModelConnectionError,
    ModelError,
    RateLimited,
)
from agentcore.llm import LLM, CallContext, Delta, Reply, ResponseSchema, TokenLogprob, deltas_of
from agentcore.messages import (
    AudioBlock,
    DocumentBlock,
    ImageBlock,
    Message,
    ProviderBlock,
    RefusalBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSchema,
)
from agentcore.testing.http import HTTPRequest, Responder, serve_http
from gemini_exchanges import EXCHANGES, REFUSED, Exchange, Json, Refusal
from model_route import ASK, KEY

TOOL = ToolSchema(name="look", description="Looks.", parameters={"type": "object", "properties": {}})
SAID: Json = {"candidates": [{"content": {"parts": [{"text": "Hi."}]}, "finishReason": "STOP"}]}
NAMES = [exchange.name for exchange in EXCHANGES]


class Google:
    """A server that answers each request with the next answer: events as a stream, or the only one at once."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[HTTPRequest] = []

    def model(self, name: str = "gemini-2.5-flash", **settings: Any) -> LLM:
        given = {"model": f"gemini/{name}", "base_url": self.url, "api_key": KEY, "num_retries": 0}
        return LLM.model_validate(given | settings)

    @property
    def sent(self) -> Json:
        """The body of the last request."""
        return self.asked[-1].json()


@asynccontextmanager
async def google(*answers: Sequence[Json], piece: int = 4096, status: int = 200) -> AsyncGenerator[Google]:
    left = list(answers)

    async def answer(request: HTTPRequest, responder: Responder) -> None:
        server.asked.append(request)
        events = left.pop(0) if len(left) > 1 else left[0]
        if "streamGenerateContent" not in request.path or status != 200:
            (event,) = events
            await responder.send_json(status, event)
            return
        await responder.start(200, {"Content-Type": "text/event-stream"})
        data = "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events).encode()
        for start in range(0, len(data), piece):
            await responder.write(data[start : start + piece])
        await responder.end()

    with anyio.fail_after(60):
        async with serve_http(answer) as listening:
            server = Google(listening.url)
            yield server


async def read(model: LLM, messages: Sequence[Message] = ASK) -> tuple[list[Delta], Reply]:
    async with model.stream(messages) as stream:
        deltas = [delta async for delta in stream]
    return deltas, stream.reply


def shown(reply: Reply) -> list[tuple[Any, ...]]:
    """The blocks that anybody can read."""
    found: list[tuple[Any, ...]] = []
    for block in reply.message.content:
        match block:
            case TextBlock() | RefusalBlock():
                found.append((block.type, block.text))
            case ThinkingBlock():
                found.append((block.type, block.text, block.signature))
            case ToolCallBlock():
                found.append((block.type, block.id, block.name, block.arguments))
            case ImageBlock() | AudioBlock():
                found.append((block.type, block.media_type, block.data))
            case _:
                assert isinstance(block, ProviderBlock)
                assert block.provider == "gemini"
    return found


def check(reply: Reply, exchange: Exchange) -> None:
    assert shown(reply) == exchange.blocks
    used = reply.usage
    counts = (used.input_tokens, used.output_tokens, used.cache_read_tokens, used.reasoning_tokens)
    assert (reply.stop_reason, counts) == (exchange.stop, exchange.usage)
    assert [(citation.text, citation.url) for citation in reply.message.citations] == exchange.cited
    assert (reply.model, reply.provider_id, reply.service_tier) == ("gemini/gemini-x", "r1", exchange.tier)
    assert Reply.model_validate_json(reply.model_dump_json()) == reply


@pytest.mark.parametrize("exchange", EXCHANGES, ids=NAMES)
async def test_an_answer_gives_the_same_reply_at_once_streamed_and_byte_by_byte(exchange: Exchange) -> None:
    async with google(exchange.events) as server:
        deltas, reply = await read(server.model())
        if len(exchange.events) == 1:
            check(await server.model().complete(ASK), exchange)
    check(reply, exchange)
    async with google(exchange.events, piece=1) as server:
        again, slowly = await read(server.model())
    check(slowly, exchange)
    assert again == deltas
    spoken = {(type(delta), getattr(delta, "text", "")) for delta in deltas_of(reply.message)}
    told = "".join(getattr(delta, "text", "") for delta in deltas)
    assert all(text in told for _, text in spoken)
    assert {type(delta) for delta in deltas} == {kind for kind, _ in spoken}


@pytest.mark.parametrize("exchange", EXCHANGES, ids=NAMES)
async def test_what_was_said_goes_back_as_it_came_with_each_signature_on_its_part(exchange: Exchange) -> None:
    async with google(exchange.events, [SAID]) as server:
        _, reply = await read(server.model())
        # As from a log.
        message = Message.model_validate_json(reply.message.model_dump_json())
        await server.model().complete([*ASK, message, Message.user("And then?")])
        contents = server.sent["contents"]
    sent = exchange.parts if exchange.sent is None else exchange.sent
    said = [content["parts"] for content in contents if content["role"] == "model"]
    assert said == ([sent] if sent else [])


@pytest.mark.parametrize("refusal", REFUSED, ids=[refusal.name for refusal in REFUSED])
async def test_an_answer_that_is_none_says_why(refusal: Refusal) -> None:
    async with google(refusal.events) as server:
        with pytest.raises(refusal.kind) as streamed:
            await read(server.model())
        raised = [streamed.value]
        if len(refusal.events) == 1:
            with pytest.raises(refusal.kind) as whole:
                await server.model().complete(ASK)
            raised.append(whole.value)
    for error in raised:
        assert isinstance(error, ModelError)
        assert refusal.words in str(error)
        assert error.retryable is refusal.retryable


@pytest.mark.parametrize(
    ("status", "error", "kind", "words"),
    [
        (
            400,
            {"message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."},
            ContextWindowExceeded,
            "longer than the model can read",
        ),
        (
            400,
            {"message": "API key not valid.", "details": [{"reason": "API_KEY_INVALID"}]},
            AuthenticationError,
            "did not accept the key",
        ),
        (404, {"message": "models/x is not found for API version v1beta"}, BadRequest, "no such model"),
        (
            429,
            {"message": "Quota exceeded.", "status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "7s"}]},
            RateLimited,
            "rate limit is reached (Quota exceeded.)",
        ),
    ],
)
async def test_an_error_is_told_in_plain_words(status: int, error: Json, kind: type[ModelError], words: str) -> None:
    async with google([{"error": {"code": status} | error}], status=status) as server:
        for ask in (server.model().complete(ASK), read(server.model())):
            with pytest.raises(kind) as raised:
                await ask
            assert words in str(raised.value)
            assert raised.value.retry_after == (7.0 if status == 429 else None)
            assert KEY not in str(raised.value)


async def test_a_stream_without_a_reason_to_stop_is_an_error() -> None:
    cut = EXCHANGES[1].events[:-1]
    async with google(cut) as server:
        with pytest.raises(ModelConnectionError, match="broke off"):
            await read(server.model())


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
            role="tool",
            content=(ToolResultBlock(call_id=call_id, name="look", content=content, is_error=is_error),),
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


async def test_a_text_that_was_changed_still_has_its_signature() -> None:
    events = next(each.events for each in EXCHANGES if each.name == "words_whose_last_piece_is_signed")
    async with google(events, [SAID]) as server:
        _, reply = await read(server.model())
        content = (TextBlock(text="<secret:X>"), *reply.message.content[1:])
        await server.model().complete([*ASK, reply.message.model_copy(update={"content": content})])
        assert server.sent["contents"][1]["parts"] == [
            {"text": "<secret:X>"},
            {"text": "", "thoughtSignature": "c2ln"},
        ]


async def test_signatures_go_through_a_conversation_and_its_log(tmp_path: Path) -> None:
    @tool
    async def look(at: str) -> str:
        """Look at something."""
        return f"seen {at}"

    by_name = {each.name: each.events for each in EXCHANGES}
    calls, words = by_name["calls_at_once_of_which_the_first_is_signed"], by_name["words_whose_last_piece_is_signed"]
    async with google(calls, words) as server:
        agent = Agent(llm=server.model("gemini-3.5-flash"), tools=[look])
        async with Conversation(agent, tmp_path, store=FileStore(tmp_path / "log")) as first:
            await first.run("Look at both.")
        async with Conversation(agent, tmp_path, store=FileStore(tmp_path / "log"), id=first.id) as second:
            await second.run("And now?")
        contents = server.sent["contents"]
    said = [part for event in calls for part in event["candidates"][0]["content"]["parts"]]
    assert [content["role"] for content in contents] == ["user", "model", "user", "model", "user"]
    assert contents[1]["parts"] == said
    assert [part["functionResponse"]["id"] for part in contents[2]["parts"]] == ["c1", "c2"]
    assert contents[3]["parts"] == [{"text": "I have "}, {"text": "done it.", "thoughtSignature": "c2ln"}]


async def test_a_picture_is_an_answer() -> None:
    picture = next(each.events for each in EXCHANGES if each.name == "a_signed_picture")
    async with google([picture[1]]) as server, Conversation(Agent(llm=server.model())) as conversation:
        result = await conversation.run("Draw it.")
        assert len(server.asked) == result.steps == 1
    assert result.status is ConversationStatus.FINISHED


async def test_how_likely_each_token_was_is_told() -> None:
    def result(token: str, logprob: float) -> Json:
        chosen = {"token": token, "logProbability": logprob}
        return {"chosenCandidates": [chosen], "topCandidates": [{"candidates": [chosen]}]}

    def event(token: str, logprob: float, **more: Any) -> Json:
        candidate = {"content": {"parts": [{"text": token}]}, "logprobsResult": result(token, logprob), **more}
        return {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 1}}

    async with google([event("He", -0.1), event("llo", -0.2, finishReason="STOP")]) as server:
        _, reply = await read(server.model(logprobs=1))
    assert reply.logprobs == (
        TokenLogprob(token="He", logprob=-0.1, top=(("He", -0.1),)),
        TokenLogprob(token="llo", logprob=-0.2, top=(("llo", -0.2),)),
    )


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
