"""Google's generateContent interface, natively: what is read, and that each signature goes back where it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentcore import Agent, Conversation, ConversationStatus, FileStore, tool
from agentcore.errors import (
    AuthenticationError,
    BadRequest,
    ContextWindowExceeded,
    ModelError,
    RateLimited,
)
from agentcore.llm import Reply, TokenLogprob, deltas_of
from agentcore.messages import (
    AudioBlock,
    ImageBlock,
    Message,
    ProviderBlock,
    RefusalBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from gemini_exchanges import EXCHANGES, Exchange
from gemini_refusals import REFUSED, Refusal
from gemini_server import SAID, Json, google, read
from model_route import ASK, KEY
from rounds import some_quick

NAMES = [exchange.name for exchange in EXCHANGES]


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


@pytest.mark.parametrize("exchange", some_quick(EXCHANGES, 4), ids=NAMES)
async def test_an_answer_gives_its_reply_however_it_comes_and_goes_back_with_each_signature_on_its_part(
    exchange: Exchange,
) -> None:
    async with google(exchange.events) as server:
        deltas, reply = await read(server.model())
        if len(exchange.events) == 1:
            check(await server.model().complete(ASK), exchange)
    check(reply, exchange)
    async with google(exchange.events, [SAID], piece=1) as server:
        again, slowly = await read(server.model())
        # As from a log.
        message = Message.model_validate_json(reply.message.model_dump_json())
        await server.model().complete([*ASK, message, Message.user("And then?")])
        contents = server.sent["contents"]
    check(slowly, exchange)
    assert again == deltas
    spoken = {(type(delta), getattr(delta, "text", "")) for delta in deltas_of(reply.message)}
    told = "".join(getattr(delta, "text", "") for delta in deltas)
    assert all(text in told for _, text in spoken)
    assert {type(delta) for delta in deltas} == {kind for kind, _ in spoken}
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


EXHAUSTED: Json = {"message": "Quota exceeded.", "status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "7s"}]}
WRONG_KEY: Json = {"message": "API key not valid.", "details": [{"reason": "API_KEY_INVALID"}]}
TOO_LONG: Json = {"message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."}


@pytest.mark.parametrize(
    ("status", "error", "kind", "words"),
    [
        (400, TOO_LONG, ContextWindowExceeded, "longer than the model can read"),
        (400, WRONG_KEY, AuthenticationError, "did not accept the key"),
        (404, {"message": "models/x is not found for API version v1beta"}, BadRequest, "no such model"),
        (429, EXHAUSTED, RateLimited, "rate limit is reached (Quota exceeded.)"),
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


async def test_a_text_that_was_changed_still_has_its_signature() -> None:
    events = next(each.events for each in EXCHANGES if each.name == "words_whose_last_piece_is_signed")
    async with google(events, [SAID]) as server:
        _, reply = await read(server.model())
        content = (TextBlock(text="<secret:X>"), *reply.message.content[1:])
        await server.model().complete([*ASK, reply.message.model_copy(update={"content": content})])
        assert server.sent["contents"][1]["parts"] == [{"text": "<secret:X>"}, {"text": "", "thoughtSignature": "c2ln"}]


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
