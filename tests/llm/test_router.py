from __future__ import annotations

from collections import Counter

import anyio
import pytest

from agentcore.llm import (
    CallContext,
    ModelRequest,
    RouterLLM,
    Selector,
    TextDelta,
    at_random,
    by_length,
    by_media,
    estimate_tokens,
)
from agentcore.messages import DocumentBlock, ImageBlock, Message, TextBlock, ToolCallBlock, ToolResultBlock, ToolSchema
from agentcore.testing import ScriptedLLM

ASK = [Message.user("Hello?")]
PICTURE = ImageBlock(data="aGk=", media_type="image/png")
DOCUMENT = DocumentBlock(data="aGk=", name="plan.pdf")


def router(select: Selector) -> RouterLLM:
    return RouterLLM({key: ScriptedLLM([f"{key}."] * 9, name=key) for key in ("small", "large")}, select)


async def test_the_model_of_the_key_answers() -> None:
    routed = router(lambda request: "large" if len(request.messages) > 1 else "small")
    assert (await routed.complete(ASK)).model == "small"
    async with routed.stream([*ASK, *ASK]) as stream:
        assert [delta async for delta in stream] == [TextDelta(text="large.")]
        assert stream.reply.model == "large"
    assert routed.name == "small | large"


async def test_a_selector_may_wait_and_sees_the_whole_request() -> None:
    tool = ToolSchema(name="look", description="Looks.", parameters={})
    context = CallContext(conversation_id="c")
    seen: list[ModelRequest] = []

    async def select(request: ModelRequest) -> str:
        await anyio.lowlevel.checkpoint()
        seen.append(request)
        return "small"

    await router(select).complete(ASK, [tool], context=context)
    assert seen == [ModelRequest(ASK, [tool], context)]


async def test_a_wrong_key_names_the_keys_there_are() -> None:
    routed = router(lambda _: "middle")
    with pytest.raises(LookupError, match=r"chose 'middle'.*'small', 'large'"):
        await routed.complete(ASK)
    with pytest.raises(LookupError, match="'middle'"):
        async with routed.stream(ASK):
            pass
    with pytest.raises(ValueError, match="no models"):
        RouterLLM({}, lambda _: "")


def test_pictures_and_documents_go_to_the_model_that_sees_also_those_that_tools_show() -> None:
    select = by_media(text="small", multimodal="large")
    assert select(ModelRequest(ASK)) == "small"
    for media in (PICTURE, DOCUMENT):
        shown = ToolResultBlock(call_id="1", name="look", content=(media,))
        assert select(ModelRequest([*ASK, Message.user("This:", media), *ASK])) == "large"
        assert select(ModelRequest([*ASK, Message(role="tool", content=(shown,))])) == "large"
    request = ModelRequest([Message.user(DOCUMENT)])
    assert (request.has_images, request.has_documents) == (False, True)


def test_long_requests_go_to_the_long_model() -> None:
    select = by_length(short="small", long="large", tokens=1000)
    assert select(ModelRequest(ASK)) == "small"
    assert select(ModelRequest([Message.user("word " * 2000)])) == "large"
    tool = ToolSchema(name="look", description="Looks. " * 1000, parameters={})
    assert select(ModelRequest(ASK, [tool])) == "large"


async def test_a_lot_is_drawn_once_for_a_conversation() -> None:
    select = at_random("small", "large", "large")

    def draw(conversation: str) -> str:
        key = select(ModelRequest(ASK, context=CallContext(conversation_id=conversation)))
        assert isinstance(key, str)
        return key

    drawn = {f"c{number}": draw(f"c{number}") for number in range(300)}
    assert {name: draw(name) for name in drawn} == drawn
    # Written down: another process, and another version, have to deal the same.
    assert [drawn[f"c{number}"] for number in range(6)] == ["small", *["large"] * 4, "small"]
    assert 60 < Counter(drawn.values())["small"] < 140
    assert Counter(select(ModelRequest(ASK)) for _ in range(300)).keys() == {"small", "large"}
    with pytest.raises(ValueError, match="give it keys"):
        at_random()


def test_the_estimate_counts_all_that_a_model_reads() -> None:
    words = estimate_tokens([Message.user("x" * 400)])
    assert 100 <= words <= 110
    call = ToolCallBlock(id="1", name="write", arguments={"text": "x" * 400})
    result = ToolResultBlock(call_id="1", name="write", content=(TextBlock(text="x" * 400), PICTURE))
    more = estimate_tokens([Message.assistant(call), Message(role="tool", content=(result,))])
    assert 1700 <= more <= 1730


def test_the_pages_of_a_document_are_estimated_by_its_size_within_bounds() -> None:
    def tokens(document: DocumentBlock) -> int:
        result = ToolResultBlock(call_id="1", name="look", content=(document,))
        inside = estimate_tokens([Message(role="tool", content=(result,))])
        assert estimate_tokens([Message.user(document)]) == inside
        return inside

    small, large = DocumentBlock(data="x" * 100), DocumentBlock(data="x" * 800_000)
    assert 2_000 <= tokens(small) <= 2_010
    assert 20_000 <= tokens(large) <= 20_010
    assert tokens(DocumentBlock(url="https://example.org/a.pdf")) == tokens(large)
    assert tokens(DocumentBlock(data="x" * 20_000_000)) <= 200_010
