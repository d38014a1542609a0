"""Answers of the Responses interface."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from agentcore.llm import ReasoningDelta, RefusalDelta, TextDelta, TokenLogprob, ToolCallDelta
from agentcore.messages import Block, ImageBlock, ProviderBlock, ReasoningBlock, RefusalBlock, TextBlock, ToolCallBlock
from exchanges import Exchange, Json

__all__ = ["RESPONSES"]

USED: Json = {"input_tokens": 10, "output_tokens": 4}
PNG = "iVBORw0KGgo="
SETTINGS: Json = {"api_mode": "responses"}


def body(*items: Json, **more: Any) -> Json:
    return {"id": "r1", "status": "completed", "model": "m-1", "output": list(items), "usage": USED, **more}


def words(text: str, **more: Any) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], **more}


def message(*parts: Json, **more: Any) -> Json:
    return {"type": "message", "role": "assistant", **more, "content": list(parts)}


def exchange(name: str, answer: Json, *blocks: Block, model: str = "openai/m", **more: Any) -> Exchange:
    more["settings"] = SETTINGS | more.pop("settings", {})
    return Exchange(name, model, answer, blocks, **more)


CITED: Json = {"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 6, "end_index": 9}
REASONING: Json = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "**One**"}, {"type": "summary_text", "text": "**Two**"}],
    "encrypted_content": "e",
}
THOUGHT = ReasoningBlock(id="rs_1", summary=("**One**", "**Two**"), encrypted_content="e", provider="openai")
SEARCH: Json = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
CALL: Json = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "read", "arguments": '{"path": "x"}'}
CALLED = ToolCallBlock(id="a", name="read", arguments={"path": "x"})
CALL_SENT: Json = {"type": "function_call", "call_id": "a", "name": "read", "arguments": '{"path": "x"}'}
OPEN: Json = {"type": "reasoning", "id": "rs", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}

RESPONSES: list[Exchange] = [
    exchange(
        "words",
        body(message(words("Hello."))),
        TextBlock(text="Hello."),
        sent=[message(words("Hello."))],
        deltas=[TextDelta(text="Hel"), TextDelta(text="lo.")],
    ),
    exchange(
        "thinking_words_and_a_call",
        body(REASONING, SEARCH, message(words("Look"), words("ing.")), CALL),
        THOUGHT,
        ProviderBlock(provider="openai", data=SEARCH),
        TextBlock(text="Looking."),
        CALLED,
        stop="tool_calls",
        sent=[REASONING, SEARCH, message(words("Looking.")), CALL_SENT],
        deltas=[
            ReasoningDelta(text="**One**"),
            ReasoningDelta(text="\n\n"),
            ReasoningDelta(text="**Two**"),
            TextDelta(text="Lo"),
            TextDelta(text="ok"),
            TextDelta(text="in"),
            TextDelta(text="g."),
            ToolCallDelta(index=0, id="a", name="read"),
            ToolCallDelta(index=0, arguments='{"path'),
            ToolCallDelta(index=0, arguments='": "x"}'),
        ],
    ),
    exchange(
        "items_that_the_last_event_leaves_out",
        body(REASONING, CALL),
        THOUGHT,
        CALLED,
        stop="tool_calls",
        events=[
            {"type": "response.output_item.done", "output_index": 1, "item": CALL},
            {"type": "response.output_item.done", "output_index": 0, "item": REASONING},
            {"type": "response.completed", "response": body()},
        ],
    ),
    exchange(
        "sources_and_when_it_was_said",
        body(message(words("It is "), words("so.", annotations=[CITED]), phase="commentary")),
        TextBlock(text="It is so."),
        ProviderBlock(
            provider="openai",
            data={
                "type": "cited_text",
                "parts": [{"length": 6}, {"length": 3, "citations": [CITED]}],
                "phase": "commentary",
            },
        ),
        cited=[("so.", "https://a.example")],
        sent=[message(words("It is "), words("so.", annotations=[CITED]), phase="commentary")],
    ),
    exchange(
        "a_refusal",
        body(message(words("Well. "), {"type": "refusal", "refusal": "I can't."})),
        TextBlock(text="Well. "),
        RefusalBlock(text="I can't."),
        sent=[message(words("Well. ")), message({"type": "refusal", "refusal": "I can't."})],
        deltas=[TextDelta(text="Wel"), TextDelta(text="l. "), RefusalDelta(text="I ca"), RefusalDelta(text="n't.")],
    ),
    exchange(
        "a_picture",
        body({"type": "image_generation_call", "id": "ig", "result": PNG, "output_format": "webp"}),
        ImageBlock(data=PNG, media_type="image/webp"),
        ProviderBlock(provider="openai", data={"type": "image_generation_call", "id": "ig", "output_format": "webp"}),
        sent=[{"type": "image_generation_call", "id": "ig", "output_format": "webp", "result": PNG}],
    ),
    exchange(
        "open_reasoning",
        body(OPEN),
        ReasoningBlock(id="rs", summary=("Hm.",), in_words=True, provider="deepseek"),
        model="deepseek/m",
        sent=[OPEN],
    ),
    exchange(
        "open_reasoning_with_a_name_of_the_servers",
        body({**OPEN, "encrypted_content": "806896f9-0"}),
        ReasoningBlock(id="rs", summary=("Hm.",), in_words=True, encrypted_content="806896f9-0", provider="deepseek"),
        model="deepseek/m",
        sent=[{**OPEN, "encrypted_content": "806896f9-0"}],
    ),
    exchange(
        "items_without_ids",
        body(
            {"type": "reasoning", "summary": [], "encrypted_content": "e"},
            {"type": "function_call", "id": "fc", "name": "read", "arguments": "{}"},
        ),
        ReasoningBlock(id="", encrypted_content="e", provider="openai"),
        ToolCallBlock(id="fc", name="read", arguments={}),
        stop="tool_calls",
    ),
    exchange(
        "cut_off_at_its_limit",
        body(message(words("Once")), status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
        TextBlock(text="Once"),
        stop="length",
    ),
    exchange(
        "nothing_because_of_a_filter",
        body(status="incomplete", incomplete_details={"reason": "content_filter"}),
        stop="content_filter",
    ),
    exchange(
        "all_counts",
        body(
            message(words("Hi.")),
            usage={
                "input_tokens": 100,
                "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 10},
                "output_tokens": 50,
                "output_tokens_details": {"reasoning_tokens": 30},
            },
        ),
        TextBlock(text="Hi."),
        usage=(100, 50, 40, 10, 30),
    ),
    exchange(
        "probabilities_tier_and_what_a_gateway_charged",
        body(
            message(words("Hi.", logprobs=[{"token": "Hi", "logprob": -0.1, "top_logprobs": []}])),
            service_tier="priority",
            usage={**USED, "cost": 0.0125},
        ),
        TextBlock(text="Hi."),
        model="openrouter/m",
        settings={"logprobs": 2, "service_tier": "priority"},
        fields={"logprobs": (TokenLogprob(token="Hi", logprob=-0.1),), "service_tier": "priority"},
        cost=Decimal("0.0125"),
        asked={"include": ["message.output_text.logprobs"], "top_logprobs": 2, "service_tier": "priority"},
    ),
]
