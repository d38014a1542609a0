"""What a reply holds besides words and calls: sources, pictures, sound, refusals, counts; at once and streamed, and sent back."""

from __future__ import annotations

import json
from base64 import b64encode
from decimal import Decimal
from typing import Any

import pytest
from pydantic import JsonValue

from agentcore.llm import LLM, Delta, ReasoningDelta, RefusalDelta, Reply, TextDelta, TokenLogprob
from agentcore.messages import (
    AudioBlock,
    Citation,
    ImageBlock,
    Message,
    ProviderBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from agentcore.testing.http import HTTPRequest, Responder, serve_http
from model_route import ASK, KEY, canned

Json = dict[str, Any]

SOURCE = {
    "type": "url_citation",
    "url_citation": {"url": "https://a.example", "title": "A", "start_index": 0, "end_index": 5, "content": "Said."},
}
PNG = "iVBORw0KGgo="


async def ask(model: str, body: Json, events: list[Json], **settings: Any) -> tuple[Reply, Reply, list[Delta], Json]:
    """Ask at once and for a stream, and ask once more with what came: both replies, the deltas, and what was sent last."""
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    whole, asked = json.dumps(body).encode(), list[Json]()

    async def answer(request: HTTPRequest, responder: Responder) -> None:
        asked.append(request.json())
        if asked[-1].get("stream"):
            await responder.send(200, stream, {"Content-Type": "text/event-stream"})
        else:
            await responder.send(200, whole, {"Content-Type": "application/json"})

    async with serve_http(answer) as server:
        llm = LLM.model_validate(
            {"model": model, "base_url": f"{server.url}/v1", "api_key": KEY, "num_retries": 0} | settings
        )
        at_once = await llm.complete(ASK)
        async with llm.stream(ASK) as deltas:
            told = [delta async for delta in deltas]
        stored = Message.model_validate_json(deltas.reply.message.model_dump_json())
        await llm.complete([*ASK, stored, Message.user("And?")])
    return at_once, deltas.reply, told, asked[-1]


def chat(message: Json, *pieces: Json, **more: Any) -> tuple[Json, list[Json]]:
    """Build an answer at once, and as a stream of pieces (of the message, where there are none)."""
    head = {"id": "1", "model": "m", **more.pop("head", {})}
    usage = more.pop("usage", {"prompt_tokens": 3, "completion_tokens": 2})
    choice = {"index": 0, "finish_reason": "stop", **more}
    body = {**head, "choices": [{**choice, "message": message}], "usage": usage}
    events: list[Json] = [{**head, "choices": [{"index": 0, "delta": piece}]} for piece in pieces or (message,)]
    return body, [*events, {**head, "choices": [{**choice, "delta": {}}], "usage": usage}]


async def test_sources_of_the_chat_interface_are_kept_and_stay_with_us() -> None:
    body, events = chat(
        {"content": "It is so.", "annotations": [SOURCE]},
        {"content": "It is "},
        {"content": "so.", "annotations": [SOURCE]},
    )
    whole, streamed, _, sent = await ask("openrouter/m", body, events)
    for reply in (whole, streamed):
        assert reply.message.citations == (Citation(text="It is", url="https://a.example", title="A", quote="Said."),)
        assert reply.message.text == "It is so."
    assert sent["messages"][1] == {"role": "assistant", "content": "It is so."}


@pytest.mark.parametrize(
    "head", [{"citations": ["https://a.example"]}, {"search_results": [{"url": "https://a.example", "title": "A"}]}]
)
async def test_sources_that_are_named_beside_a_reply_are_kept(head: Json) -> None:
    whole, streamed, _, _ = await ask("perplexity/m", *chat({"content": "So."}, head=head))
    for reply in (whole, streamed):
        assert [(citation.text, citation.url) for citation in reply.message.citations] == [("So.", "https://a.example")]


async def test_a_refusal_is_a_block_and_a_delta_of_its_own() -> None:
    body, events = chat({"content": None, "refusal": "I can't."}, {"refusal": "I "}, {"refusal": "can't."})
    whole, streamed, told, sent = await ask("openai/m", body, events, api_mode="chat")
    for reply in (whole, streamed):
        assert reply.message.content == (RefusalBlock(text="I can't."),)
        assert reply.message.text == "I can't."
    assert told == [RefusalDelta(text="I "), RefusalDelta(text="can't.")]
    assert sent["messages"][1]["content"] == "I can't."


async def test_pictures_of_the_chat_interface_are_blocks() -> None:
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    linked = {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}
    message = {"content": "Here:", "images": [picture, linked]}
    whole, streamed, _, _ = await ask(
        "openrouter/m", *chat(message, {"content": "Here:"}, {"images": message["images"]})
    )
    for reply in (whole, streamed):
        assert reply.message.content == (
            TextBlock(text="Here:"),
            ImageBlock(data=PNG, media_type="image/png"),
            ImageBlock(url="https://a.example/b.png"),
        )


async def test_sound_comes_with_its_words_which_are_what_is_sent_back() -> None:
    halves = [b64encode(half).decode() for half in (b"a", b"bc")]
    body, events = chat(
        {"content": None, "audio": {"id": "au_1", "data": b64encode(b"abc").decode(), "transcript": "Hi there."}},
        {"audio": {"id": "au_1", "transcript": "Hi "}},
        {"audio": {"data": halves[0], "transcript": "there."}},
        {"audio": {"data": halves[1], "expires_at": 5}},
    )
    whole, streamed, told, sent = await ask("openai/m", body, events, api_mode="chat")
    for reply in (whole, streamed):
        assert reply.message.content == (
            AudioBlock(data=b64encode(b"abc").decode(), transcript="Hi there.", id="au_1", provider="openai"),
        )
    assert told == [TextDelta(text="Hi "), TextDelta(text="there.")]
    assert sent["messages"][1]["content"] == "Hi there."


async def test_what_nobody_knows_stays_as_it_is() -> None:
    odd: JsonValue = {"type": "hologram", "data": [1]}
    message: Json = {"content": [{"type": "text", "text": "Look."}, odd], "executed_tools": [{"type": "search"}]}
    whole, streamed, _, sent = await ask("groq/m", *chat(message))
    for reply in (whole, streamed):
        assert reply.message.content == (
            TextBlock(text="Look."),
            ProviderBlock(provider="groq", data={"type": "content_part", "part": odd}),
            ProviderBlock(provider="groq", data={"type": "executed_tools", "executed_tools": [{"type": "search"}]}),
        )
    assert sent["messages"][1] == {"role": "assistant", "content": "Look."}


async def test_googles_signatures_go_back_over_its_openai_interface() -> None:
    signed = {"google": {"thought_signature": "c2ln"}}

    def call(name: str, **more: Any) -> Json:
        return {"id": name, "type": "function", "function": {"name": "look", "arguments": "{}"}, **more}

    made = [call("a", extra_content=signed), call("b")]
    streamed_calls = [{"index": index, **each} for index, each in enumerate(made)]
    body, events = chat(
        {"content": "I look.", "tool_calls": made, "extra_content": {"google": {"thought_signature": "b2Y="}}},
        {"content": "I look.", "extra_content": {"google": {"thought_signature": "b2Y="}}},
        {"tool_calls": streamed_calls},
    )
    whole, streamed, _, sent = await ask("openai/gemini-3.5-flash", body, events, api_mode="chat")
    assert whole.message == streamed.message
    assert [block.id for block in whole.message.content if isinstance(block, ToolCallBlock)] == ["a", "b"]
    (said,) = [message for message in sent["messages"] if message["role"] == "assistant"]
    assert said["tool_calls"] == made
    assert said["extra_content"] == {"google": {"thought_signature": "b2Y="}}


@pytest.mark.parametrize(
    ("provider", "field"),
    [
        ("cerebras", "reasoning"),
        ("groq", "reasoning"),
        ("huggingface", "reasoning"),
        ("ollama", "reasoning"),
        ("deepseek", "reasoning_content"),
        ("openai", None),
    ],
)
async def test_reasoning_goes_back_to_those_who_want_it(provider: str, field: str | None) -> None:
    said = {"content": "So.", "reasoning": "Hm."}
    whole, streamed, _, sent = await ask(f"{provider}/m", *chat(said), api_mode="chat")
    for reply in (whole, streamed):
        assert reply.message.content[0] == ThinkingBlock(text="Hm.", provider=provider)
    expected = {"role": "assistant", "content": "So."}
    assert sent["messages"][1] == (expected | {field: "Hm."} if field else expected)


async def test_probabilities_tier_and_counts_are_asked_for_and_told() -> None:
    likely = {"token": "Hi", "logprob": -0.1, "top_logprobs": [{"token": "Ho", "logprob": -2.0}]}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "server_tool_use": {"web_search_requests": 1}}
    head: Json = {"service_tier": "flex", "usage_breakdown": {"models": [{"model": "x"}]}}
    body, events = chat({"content": "Hi"}, usage=usage, head=head, logprobs={"content": [likely]})
    whole, streamed, _, sent = await ask("openai/m", body, events, api_mode="chat", logprobs=1, service_tier="flex")
    for reply in (whole, streamed):
        assert reply.logprobs == (TokenLogprob(token="Hi", logprob=-0.1, top=(("Ho", -2.0),)),)
        assert reply.service_tier == "flex"
        assert reply.reported_usage == usage | {"usage_breakdown": {"models": [{"model": "x"}]}}
        assert Reply.model_validate_json(reply.model_dump_json()) == reply
    assert (sent["logprobs"], sent["top_logprobs"], sent["service_tier"]) == (True, 1, "flex")


def responses(*items: Json, **more: Any) -> tuple[Json, list[Json]]:
    body = {"id": "r", "status": "completed", "model": "m", "output": list(items), "usage": {"input_tokens": 3}, **more}
    return body, [{"type": "response.completed", "response": body}]


RESPONSES: Json = {"api_mode": "responses"}


async def test_a_refusal_of_the_responses_interface_is_a_block_and_goes_back_as_one() -> None:
    parts = [{"type": "output_text", "text": "Well. "}, {"type": "refusal", "refusal": "I can't."}]
    body, events = responses({"type": "message", "role": "assistant", "content": parts})
    events[:0] = [
        {"type": "response.output_text.delta", "delta": "Well. "},
        {"type": "response.refusal.delta", "delta": "I can't."},
    ]
    whole, streamed, told, sent = await ask("openai/m", body, events, **RESPONSES)
    for reply in (whole, streamed):
        assert reply.message.content == (TextBlock(text="Well. "), RefusalBlock(text="I can't."))
    assert told == [TextDelta(text="Well. "), RefusalDelta(text="I can't.")]
    assert sent["input"][2]["content"] == [{"type": "refusal", "refusal": "I can't."}]


async def test_a_picture_of_the_responses_interface_is_kept_once_and_goes_back_in_its_item() -> None:
    item = {"type": "image_generation_call", "id": "ig", "status": "completed", "result": PNG, "output_format": "webp"}
    whole, streamed, _, sent = await ask("openai/m", *responses(item), **RESPONSES)
    for reply in (whole, streamed):
        assert reply.message.content[0] == ImageBlock(data=PNG, media_type="image/webp")
        assert reply.message.model_dump_json().count(PNG) == 1
    assert sent["input"][1] == item


async def test_reasoning_is_shown_where_an_answer_comes_at_once_with_a_blank_line_between_its_parts() -> None:
    summary = [{"type": "summary_text", "text": text} for text in ("**One**", "**Two**")]
    body, events = responses({"type": "reasoning", "id": "rs", "summary": summary, "encrypted_content": "x"})
    events[:0] = [
        {"type": "response.reasoning_summary_part.added", "summary_index": 0},
        {"type": "response.reasoning_summary_text.delta", "delta": "**One**"},
        {"type": "response.reasoning_summary_part.added", "summary_index": 1},
        {"type": "response.reasoning_summary_text.delta", "delta": "**Two**"},
    ]
    _, _, told, _ = await ask("openai/m", body, events, **RESPONSES)
    shown = "".join(delta.text for delta in told if isinstance(delta, ReasoningDelta))
    async with canned(json.dumps(body).encode()) as server:
        llm = LLM.model_validate({"model": "openai/m", "base_url": server.url, "api_key": KEY} | RESPONSES)
        async with llm.stream(ASK) as deltas:
            at_once = [delta async for delta in deltas]
    assert shown == "**One**\n\n**Two**"
    assert at_once == [ReasoningDelta(text=shown)]


@pytest.mark.parametrize("encrypted", [{}, {"encrypted_content": "806896f9-0"}])
async def test_open_reasoning_goes_back_in_the_shape_it_had(encrypted: Json) -> None:
    item = {
        "type": "reasoning",
        "id": "rs",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Hm."}],
        **encrypted,
    }
    whole, streamed, _, sent = await ask("deepseek/m", *responses(item), **RESPONSES)
    for reply in (whole, streamed):
        (block,) = reply.message.content
        assert isinstance(block, ReasoningBlock)
        assert (block.words, block.in_words) == ("Hm.", True)
    assert sent["input"][1] == item


async def test_the_responses_interface_tells_probabilities_tier_and_what_a_gateway_charged() -> None:
    part: Json = {
        "type": "output_text",
        "text": "Hi",
        "logprobs": [{"token": "Hi", "logprob": -0.1, "top_logprobs": []}],
    }
    body, events = responses(
        {"type": "message", "content": [part]},
        service_tier="priority",
        usage={"input_tokens": 3, "output_tokens": 1, "cost": 0.0125},
    )
    whole, streamed, _, sent = await ask("openrouter/m", body, events, **RESPONSES, logprobs=2, service_tier="priority")
    for reply in (whole, streamed):
        assert reply.logprobs == (TokenLogprob(token="Hi", logprob=-0.1),)
        assert (reply.service_tier, reply.usage.cost) == ("priority", Decimal("0.0125"))
    assert (sent["include"], sent["top_logprobs"]) == (["message.output_text.logprobs"], 2)
    assert sent["service_tier"] == "priority"
