"""Answers of Anthropic's Messages interface."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from agentcore.llm import ReasoningDelta, RefusalDelta, TextDelta, ToolCallDelta
from agentcore.messages import (
    Block,
    ProviderBlock,
    RedactedThinkingBlock,
    RefusalBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from exchanges import Exchange, Json

__all__ = ["ANTHROPIC"]

USED: Json = {"input_tokens": 10, "output_tokens": 4}


def body(*content: Json, stop_reason: str | None = "end_turn", usage: Json = USED, **more: Any) -> Json:
    return {
        "type": "message",
        "role": "assistant",
        "id": "r1",
        "model": "m-1",
        "content": list(content),
        "stop_reason": stop_reason,
        "usage": usage,
        **more,
    }


def text(words: str, **more: Any) -> Json:
    return {"type": "text", "text": words, **more}


def own(data: Json) -> ProviderBlock:
    return ProviderBlock(provider="anthropic", data=data)


def exchange(name: str, answer: Json, *blocks: Block, **more: Any) -> Exchange:
    return Exchange(name, "anthropic/m", answer, blocks, settings={"prompt_caching": False}, **more)


def stopped(reason: str | None, ours: str) -> Exchange:
    return exchange(f"stops_for_{reason}", body(text("Hi."), stop_reason=reason), TextBlock(text="Hi."), stop=ours)


def counted(name: str, usage: Json, *counts: int) -> Exchange:
    return exchange(name, body(text("Hi."), usage=usage), TextBlock(text="Hi."), usage=counts)


def priced(name: str, usage: Json, cost: str, *counts: int) -> Exchange:
    sold = replace(counted(name, usage, *counts), model="anthropic/claude-sonnet-4-5", cost=Decimal(cost))
    return replace(sold, fields={"reported_usage": usage})


def run(fresh: int, wrote: int, output: int, kind: str = "message", **more: Any) -> Json:
    counts = {"input_tokens": fresh, "cache_creation_input_tokens": wrote, "cache_read_input_tokens": 0}
    return {**counts, "output_tokens": output, "type": kind, **more}


THINKING: Json = {"type": "thinking", "thinking": "Hm. Yes.", "signature": "s1"}
THOUGHT = ThinkingBlock(text="Hm. Yes.", signature="s1", provider="anthropic")
USE: Json = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
FOUND: Json = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
CALL: Json = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "x"}}
CALLED = ToolCallBlock(id="toolu_1", name="read", arguments={"path": "x"})
SOURCE: Json = {"type": "web_search_result_location", "url": "https://a.example", "title": "A", "cited_text": "Said."}
REFUSED: Json = {"type": "refusal", "category": "cyber", "explanation": "It is dangerous."}
# The counts at the end are those that hold.
BEGIN: Json = {
    "type": "message_start",
    "message": body(stop_reason=None, usage={"input_tokens": 9, "output_tokens": 1}),
}


def end(stop_reason: str) -> list[Json]:
    return [{"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": USED}, {"type": "message_stop"}]


ANTHROPIC: list[Exchange] = [
    exchange(
        "words",
        body(text("Hello.")),
        TextBlock(text="Hello."),
        sent=[text("Hello.")],
        deltas=[TextDelta(text="Hel"), TextDelta(text="lo.")],
    ),
    exchange(
        "thinking_words_and_a_call",
        body(THINKING, text("Hi."), CALL, stop_reason="tool_use"),
        THOUGHT,
        TextBlock(text="Hi."),
        CALLED,
        stop="tool_calls",
        sent=[THINKING, text("Hi."), CALL],
        deltas=[
            ReasoningDelta(text="Hm. "),
            ReasoningDelta(text="Yes."),
            TextDelta(text="H"),
            TextDelta(text="i."),
            ToolCallDelta(index=0, id="toolu_1", name="read"),
            ToolCallDelta(index=0, arguments='{"path'),
            ToolCallDelta(index=0, arguments='": "x"}'),
        ],
    ),
    exchange(
        "thinking_that_nobody_reads",
        body({"type": "redacted_thinking", "data": "xyz"}, {**THINKING, "thinking": ""}, text("Hi.")),
        RedactedThinkingBlock(data="xyz", provider="anthropic"),
        ThinkingBlock(text="", signature="s1", provider="anthropic"),
        TextBlock(text="Hi."),
        sent=[{"type": "redacted_thinking", "data": "xyz"}, {**THINKING, "thinking": ""}, text("Hi.")],
    ),
    exchange(
        "empty_blocks",
        body(text(""), {**THINKING, "thinking": "", "signature": ""}, text("Hi.")),
        TextBlock(text="Hi."),
    ),
    exchange("nothing", body(stop_reason="refusal"), stop="content_filter"),
    exchange(
        "a_tool_of_the_providers_own",
        body(text("Let me see."), USE, FOUND, text("And:"), CALL, stop_reason="tool_use"),
        TextBlock(text="Let me see."),
        own(USE),
        own(FOUND),
        TextBlock(text="And:"),
        CALLED,
        stop="tool_calls",
        sent=[text("Let me see."), USE, FOUND, text("And:"), CALL],
    ),
    exchange(
        "words_with_sources",
        body(text("It is "), text("42", citations=[SOURCE]), text(".")),
        TextBlock(text="It is 42."),
        own({"type": "cited_text", "parts": [{"length": 6}, {"length": 2, "citations": [SOURCE]}, {"length": 1}]}),
        cited=[("42", "https://a.example")],
        sent=[text("It is "), text("42", citations=[SOURCE]), text(".")],
    ),
    exchange(
        "a_summary_of_what_came_before",
        body({"type": "compaction", "content": "So far: nothing."}, text("Hi.")),
        own({"type": "compaction", "content": "So far: nothing."}),
        TextBlock(text="Hi."),
        sent=[{"type": "compaction", "content": "So far: nothing."}, text("Hi.")],
        events=[
            BEGIN,
            {"type": "content_block_start", "index": 0, "content_block": {"type": "compaction", "content": None}},
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "compaction_delta", "content": "So far: nothing."},
            },
            {"type": "hologram_start", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": text("")},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "hologram_delta", "hologram": "x"}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Hi."}},
            *end("end_turn"),
        ],
    ),
    exchange(
        "a_refusal_that_says_why",
        body(text("Hi."), stop_reason="refusal", stop_details=REFUSED),
        TextBlock(text="Hi."),
        RefusalBlock(text="It is dangerous."),
        stop="content_filter",
        deltas=[TextDelta(text="H"), TextDelta(text="i."), RefusalDelta(text="It is dangerous.")],
    ),
    exchange(
        "calls_whose_arguments_come_mixed",
        body(CALL, {**CALL, "id": "toolu_2", "input": {}}, stop_reason="tool_use"),
        CALLED,
        ToolCallBlock(id="toolu_2", name="read", arguments={}),
        stop="tool_calls",
        events=[
            BEGIN,
            {"type": "content_block_start", "index": 0, "content_block": {**CALL, "input": {}}},
            {"type": "content_block_start", "index": 1, "content_block": {**CALL, "id": "toolu_2", "input": {}}},
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": '{"path":'},
            },
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": ' "x"}'}},
            *end("tool_use"),
        ],
    ),
    exchange(
        "arguments_that_come_with_the_call_of_a_compatible_server",
        body(CALL),
        CALLED,
        stop="tool_calls",
        events=[BEGIN, {"type": "content_block_start", "index": 0, "content_block": CALL}, *end("end_turn")],
    ),
    exchange(
        "arguments_that_are_cut_off",
        body({**CALL, "input": '{"path": "'}, stop_reason="max_tokens"),
        ToolCallBlock(id="toolu_1", name="read", arguments='{"path": "'),
        stop="length",
        events=[
            {"type": "message_start", "message": body(stop_reason=None)},
            {"type": "content_block_start", "index": 0, "content_block": {**CALL, "input": {}}},
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": '{"path": "'},
            },
            {
                "type": "message_delta",
                "delta": {"stop_reason": "max_tokens"},
                "usage": {"input_tokens": 0, "output_tokens": 4},
            },
            {"type": "message_stop"},
        ],
    ),
    exchange(
        "halves_of_characters",
        body(text("\ud83d\ude00"), {**CALL, "input": {"path": "\ud83d"}}, stop_reason="tool_use"),
        TextBlock(text="\U0001f600"),
        ToolCallBlock(id="toolu_1", name="read", arguments={"path": "\ufffd"}),
        stop="tool_calls",
    ),
    stopped(None, "end"),
    stopped("max_tokens", "length"),
    stopped("model_context_window_exceeded", "length"),
    stopped("stop_sequence", "stop_sequence"),
    stopped("pause_turn", "pause"),
    stopped("compaction", "compaction"),
    counted(
        "all_counts",
        {
            "input_tokens": 3,
            "cache_creation_input_tokens": 418,
            "cache_read_input_tokens": 1111,
            "output_tokens": 145,
            "output_tokens_details": {"thinking_tokens": 47},
        },
        *(1532, 145, 1111, 418, 47),
    ),
    counted("counts_that_are_null", {**USED, "cache_read_input_tokens": None}, 10, 4, 0, 0, 0),
    counted(
        "counts_of_several_runs_of_the_model",
        {**run(229, 0, 5), "iterations": [run(100, 55_096, 131, "compaction"), run(229, 0, 5)]},
        *(55_425, 136, 0, 55_096, 0),
    ),
    # 10 read at 3 and 4 written at 15 dollars a million, and for the adviser 2500 at 5 and 20 at 25.
    priced(
        "counts_of_an_adviser_are_not_the_models_own",
        {**run(10, 0, 4), "iterations": [run(10, 0, 4), run(2500, 0, 20, "advisor_message", model="claude-opus-4-5")]},
        "0.01309",
        *(10, 4, 0, 0, 0),
    ),
    # 10 read at 3, 700 kept for an hour at 6, 300 for five minutes at 3.75, 4 written at 15; and two searches at a cent.
    priced(
        "counts_of_what_is_kept_for_an_hour_and_of_searches",
        {
            **run(10, 1000, 4),
            "cache_creation": {"ephemeral_1h_input_tokens": 700, "ephemeral_5m_input_tokens": 300},
            "server_tool_use": {"web_search_requests": 2},
        },
        "0.025415",
        *(1010, 4, 0, 1000, 0),
    ),
    *(
        counted(f"counts_of_runs_that_are_{odd}", {**run(10, 0, 4), "iterations": odd}, 10, 4, 0, 0, 0)
        for odd in (None, "odd", [], ["odd"], 7)
    ),
]
