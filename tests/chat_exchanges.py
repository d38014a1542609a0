"""Answers of the Chat Completions interface, as OpenAI and the many compatible servers write it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from agentcore.llm import ReasoningDelta, RefusalDelta, TextDelta, TokenLogprob, ToolCallDelta
from agentcore.messages import (
    AudioBlock,
    ImageBlock,
    ProviderBlock,
    RedactedThinkingBlock,
    RefusalBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from exchanges import Exchange, Json

__all__ = ["CHAT"]

USED: Json = {"prompt_tokens": 10, "completion_tokens": 4}
PNG = "iVBORw0KGgo="
HI = (TextBlock(text="Hi."),)
SOURCE: Json = {
    "type": "url_citation",
    "url_citation": {"url": "https://a.example", "title": "A", "start_index": 0, "end_index": 5, "content": "Said."},
}


DETAILS: list[Any] = [{"type": "reasoning.text", "text": "hm"}, {"type": "reasoning.encrypted", "data": "xyz"}]


def body(message: Json, finish: str = "stop", usage: Json = USED, head: Json | None = None, **choice: Any) -> Json:
    chosen = {"index": 0, "message": message, "finish_reason": finish, **choice}
    return {"id": "r1", "model": "m-1", **(head or {}), "choices": [chosen], "usage": usage}


def call(call_id: str | None, arguments: Any = "{}", name: str = "look", **more: Any) -> Json:
    made: Json = {"type": "function", "function": {"name": name, "arguments": arguments}, **more}
    return made if call_id is None else {"id": call_id, **made}


def piece(**delta: Any) -> Json:
    return {"id": "r1", "model": "m-1", "choices": [{"index": 0, "delta": delta}]}


def end(finish: str = "stop") -> Json:
    return {"id": "r1", "model": "m-1", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": USED}


def said(**message: Any) -> list[Json]:
    return [{"role": "assistant", **message}]


def beside(source: Json) -> ProviderBlock:
    return ProviderBlock(
        provider="perplexity", data={"type": "cited_text", "parts": [{"length": 3, "citations": [source]}]}
    )


def counted(name: str, usage: Json, counts: tuple[int, int, int, int, int]) -> Exchange:
    return Exchange(name, "openai/m", body({"content": "Hi."}, usage=usage), HI, usage=counts)


def stopped(reason: str, ours: str) -> Exchange:
    return Exchange(f"stops_for_{reason}", "openai/m", body({"content": "Hi."}, reason), HI, ours)


def reasoned(provider: str, field: str, *, goes_back: bool) -> Exchange:
    return Exchange(
        f"reasoning_of_{provider}",
        f"{provider}/m",
        body({"content": "So.", field: "Hm."}),
        (ThinkingBlock(text="Hm.", provider=provider), TextBlock(text="So.")),
        sent=said(content="So.", **({field: "Hm."} if goes_back else {})),
    )


CHAT: list[Exchange] = [
    Exchange(
        "words",
        "openai/m",
        body({"role": "assistant", "content": "Hello."}),
        (TextBlock(text="Hello."),),
        sent=said(content="Hello."),
        deltas=[TextDelta(text="Hel"), TextDelta(text="lo.")],
    ),
    stopped("length", "length"),
    stopped("content_filter", "content_filter"),
    stopped("odd", "odd"),
    Exchange(
        "a_call_after_words",
        "openai/m",
        body({"content": "I look.", "tool_calls": [call("a", '{"at": "x"}')]}, "tool_calls"),
        (TextBlock(text="I look."), ToolCallBlock(id="a", name="look", arguments={"at": "x"})),
        "tool_calls",
        sent=said(content="I look.", tool_calls=[call("a", '{"at": "x"}')]),
        deltas=[
            TextDelta(text="I l"),
            TextDelta(text="ook."),
            ToolCallDelta(index=0, id="a", name="look", arguments='{"at"'),
            ToolCallDelta(index=0, arguments=': "x"}'),
        ],
    ),
    Exchange(
        "thinking_words_and_a_call",
        "openai/m",
        body(
            {"reasoning_content": "Hm.", "content": "I look.", "tool_calls": [call("a", '{"at": "x"}')]}, "tool_calls"
        ),
        (
            ThinkingBlock(text="Hm.", provider="openai"),
            TextBlock(text="I look."),
            ToolCallBlock(id="a", name="look", arguments={"at": "x"}),
        ),
        "tool_calls",
    ),
    Exchange(
        "calls_that_the_server_does_not_say_it_stopped_for",
        "openai/m",
        body({"content": None, "tool_calls": [call("a"), call("b", "")]}),
        (ToolCallBlock(id="a", name="look", arguments={}), ToolCallBlock(id="b", name="look", arguments={})),
        "tool_calls",
    ),
    Exchange(
        "calls_without_ids",
        "ollama/m",
        body({"content": "", "tool_calls": [call(None), call(None)]}),
        (ToolCallBlock(id="call_0", name="look", arguments={}), ToolCallBlock(id="call_1", name="look", arguments={})),
        "tool_calls",
    ),
    Exchange(
        "calls_that_are_all_numbered_zero",
        "openai/m",
        body({"content": None, "tool_calls": [call("a", '{"n": 1}'), call("b", '{"n": 2}')]}),
        (
            ToolCallBlock(id="a", name="look", arguments={"n": 1}),
            ToolCallBlock(id="b", name="look", arguments={"n": 2}),
        ),
        "tool_calls",
        events=[
            piece(tool_calls=[call("a", '{"n": 1}', index=0)]),
            piece(tool_calls=[call("b", '{"n"', index=None)]),
            piece(tool_calls=[{"index": 0, "id": "b", "function": {"arguments": ": 2}"}}]),
            end("tool_calls"),
        ],
        deltas=[
            ToolCallDelta(index=0, id="a", name="look", arguments='{"n": 1}'),
            ToolCallDelta(index=1, id="b", name="look", arguments='{"n"'),
            ToolCallDelta(index=1, id="b", arguments=": 2}"),
        ],
    ),
    Exchange(
        "arguments_as_an_object",
        "ollama/m",
        body({"content": None, "tool_calls": [call("a", {"n": 1})]}),
        (ToolCallBlock(id="a", name="look", arguments={"n": 1}),),
        "tool_calls",
    ),
    Exchange(
        "arguments_that_are_cut_off",
        "openai/m",
        body({"content": None, "tool_calls": [call("a", '{"n": ')]}, "length"),
        (ToolCallBlock(id="a", name="look", arguments='{"n": '),),
        "length",
    ),
    reasoned("deepseek", "reasoning_content", goes_back=True),
    reasoned("cerebras", "reasoning", goes_back=True),
    reasoned("groq", "reasoning", goes_back=True),
    reasoned("huggingface", "reasoning", goes_back=True),
    reasoned("ollama", "reasoning", goes_back=True),
    reasoned("openai", "reasoning", goes_back=False),
    Exchange(
        "thinking_between_tags",
        "groq/m",
        body({"content": "<think>\nhm\n</think>\n\nHi."}),
        (ThinkingBlock(text="\nhm\n", provider="groq"), TextBlock(text="\n\nHi.")),
        deltas=[ReasoningDelta(text="\nhm\n"), TextDelta(text="\n\nHi.")],
        events=[piece(content="<th"), piece(content="ink>\nhm\n</think>"), piece(content="\n\nHi."), end()],
    ),
    Exchange("a_tag_with_nothing_in_it", "groq/m", body({"content": "<think>\n</think>Hi."}), HI),
    Exchange(
        "words_about_a_tag_where_thinking_came_apart",
        "groq/m",
        body({"content": "<think> is a mark.", "reasoning": "hm"}),
        (ThinkingBlock(text="hm", provider="groq"), TextBlock(text="<think> is a mark.")),
    ),
    Exchange(
        "words_that_end_as_a_tag_begins",
        "groq/m",
        body({"content": "<t"}),
        (TextBlock(text="<t"),),
        deltas=[TextDelta(text="<t")],
    ),
    Exchange(
        "thinking_as_a_part_of_the_content",
        "mistral/m",
        body(
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                    {"type": "text", "text": "Hi."},
                ]
            }
        ),
        (ThinkingBlock(text="hm", provider="mistral"), *HI),
    ),
    Exchange(
        "signed_thinking_through_a_gateway",
        "openai/m",
        body(
            {
                "content": "Hi.",
                "thinking_blocks": [
                    {"type": "thinking", "thinking": "one", "signature": "s1"},
                    {"type": "redacted_thinking", "data": "xyz"},
                ],
            }
        ),
        (
            ThinkingBlock(text="one", signature="s1", provider="openai"),
            RedactedThinkingBlock(data="xyz", provider="openai"),
            *HI,
        ),
        events=[
            piece(thinking_blocks=[{"type": "thinking", "thinking": "o"}]),
            piece(thinking_blocks=[{"type": "thinking", "thinking": "ne", "signature": None}]),
            piece(thinking_blocks=[{"type": "thinking", "thinking": "", "signature": "s1"}]),
            piece(thinking_blocks=[{"type": "redacted_thinking", "data": "xyz"}]),
            piece(content="Hi."),
            end(),
        ],
    ),
    Exchange(
        "details_of_reasoning_go_back_in_place_of_its_words",
        "openrouter/m",
        body({"content": "Hi.", "reasoning": "hm", "reasoning_details": DETAILS}),
        (
            ThinkingBlock(text="hm", provider="openrouter"),
            *HI,
            ProviderBlock(provider="openrouter", data={"reasoning_details": DETAILS}),
        ),
        sent=said(content="Hi.", reasoning_details=DETAILS),
        events=[
            piece(reasoning="hm", reasoning_details=DETAILS[:1]),
            piece(content="Hi.", reasoning_details=DETAILS[1:]),
            end(),
        ],
    ),
    Exchange(
        "a_refusal",
        "openai/m",
        body({"content": None, "refusal": "I can't."}),
        (RefusalBlock(text="I can't."),),
        sent=said(content="I can't."),
        events=[piece(refusal="I "), piece(refusal="can't."), end()],
        deltas=[RefusalDelta(text="I "), RefusalDelta(text="can't.")],
    ),
    Exchange(
        "sources_of_words",
        "openrouter/m",
        body({"content": "It is so.", "annotations": [SOURCE]}),
        (
            TextBlock(text="It is so."),
            ProviderBlock(
                provider="openrouter", data={"type": "cited_text", "parts": [{"length": 9, "citations": [SOURCE]}]}
            ),
        ),
        cited=[("It is", "https://a.example")],
        sent=said(content="It is so."),
    ),
    Exchange(
        "sources_beside_the_message",
        "perplexity/m",
        body({"content": "So."}, head={"citations": ["https://a.example"]}),
        (TextBlock(text="So."), beside({"url": "https://a.example"})),
        cited=[("So.", "https://a.example")],
    ),
    Exchange(
        "results_of_a_search_beside_the_message",
        "perplexity/m",
        body({"content": "So."}, head={"search_results": [{"url": "https://a.example", "title": "A"}]}),
        (TextBlock(text="So."), beside({"url": "https://a.example", "title": "A"})),
        cited=[("So.", "https://a.example")],
    ),
    Exchange(
        "pictures",
        "openrouter/m",
        body(
            {
                "content": "Here:",
                "images": [
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                    {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
                ],
            }
        ),
        (
            TextBlock(text="Here:"),
            ImageBlock(data=PNG, media_type="image/png"),
            ImageBlock(url="https://a.example/b.png"),
        ),
    ),
    Exchange(
        "speech_whose_words_go_back",
        "openai/m",
        body({"content": None, "audio": {"id": "au_1", "data": "YWJj", "transcript": "Hi there."}}),
        (AudioBlock(data="YWJj", transcript="Hi there.", id="au_1", provider="openai"),),
        sent=said(content="Hi there."),
        events=[
            piece(audio={"id": "au_1", "transcript": "Hi "}),
            piece(audio={"data": "YQ==", "transcript": "there."}),
            piece(audio={"data": "YmM=", "expires_at": 5}),
            end(),
        ],
        deltas=[TextDelta(text="Hi "), TextDelta(text="there.")],
    ),
    Exchange(
        "parts_and_fields_of_unknown_kinds",
        "groq/m",
        body({"content": [{"type": "text", "text": "Hi."}, {"type": "hologram"}], "executed_tools": [{"type": "s"}]}),
        (
            *HI,
            ProviderBlock(provider="groq", data={"type": "content_part", "part": {"type": "hologram"}}),
            ProviderBlock(provider="groq", data={"type": "executed_tools", "executed_tools": [{"type": "s"}]}),
        ),
        sent=said(content="Hi."),
    ),
    Exchange(
        "signatures_of_googles_compatible_interface",
        "openai/gemini-3.5-flash",
        body(
            {
                "content": "I look.",
                "extra_content": {"google": {"thought_signature": "b2Y="}},
                "tool_calls": [call("a", extra_content={"google": {"thought_signature": "c2ln"}}), call("b")],
            }
        ),
        (
            TextBlock(text="I look."),
            ProviderBlock(
                provider="openai",
                data={"type": "extra_content", "extra_content": {"google": {"thought_signature": "c2ln"}}},
            ),
            ToolCallBlock(id="a", name="look", arguments={}),
            ToolCallBlock(id="b", name="look", arguments={}),
            ProviderBlock(provider="openai", data={"extra_content": {"google": {"thought_signature": "b2Y="}}}),
        ),
        "tool_calls",
        sent=said(
            content="I look.",
            extra_content={"google": {"thought_signature": "b2Y="}},
            tool_calls=[call("a", extra_content={"google": {"thought_signature": "c2ln"}}), call("b")],
        ),
    ),
    Exchange(
        "halves_of_characters",
        "openai/m",
        body({"content": "half \ud83d\ude00, lone \ud83d!"}),
        (TextBlock(text="half \U0001f600, lone \ufffd!"),),
    ),
    Exchange(
        "probabilities_and_tier",
        "openai/m",
        body(
            {"content": "Hi."},
            head={"service_tier": "flex", "usage_breakdown": {"models": [{"model": "x"}]}},
            logprobs={
                "content": [{"token": "Hi", "logprob": -0.1, "top_logprobs": [{"token": "Ho", "logprob": -2.0}]}]
            },
        ),
        HI,
        settings={"logprobs": 1, "service_tier": "flex"},
        fields={
            "logprobs": (TokenLogprob(token="Hi", logprob=-0.1, top=(("Ho", -2.0),)),),
            "service_tier": "flex",
            "reported_usage": {**USED, "usage_breakdown": {"models": [{"model": "x"}]}},
        },
        asked={"logprobs": True, "top_logprobs": 1, "service_tier": "flex"},
    ),
    Exchange(
        "what_a_gateway_charged",
        "openrouter/m",
        body({"content": "Hi."}, usage={**USED, "cost": 0.00123}),
        HI,
        cost=Decimal("0.00123"),
    ),
    counted(
        "all_counts",
        {
            "prompt_tokens": 100,
            "completion_tokens": 50,
            "prompt_tokens_details": {"cached_tokens": 40, "cache_creation_tokens": 10},
            "completion_tokens_details": {"reasoning_tokens": 30},
        },
        (100, 50, 40, 10, 30),
    ),
    *(
        counted(f"counts_of_the_cache_beside_the_others_as_{name}", {**USED, name: 4}, (10, 4, 4, 0, 0))
        for name in ("cached_tokens", "num_cached_tokens", "prompt_cache_hit_tokens")
    ),
    Exchange(
        "counts_that_are_corrected_at_the_end",
        "openai/m",
        body({"content": "Hi."}),
        HI,
        events=[{**piece(content="Hi."), "usage": {"prompt_tokens": 15, "completion_tokens": 1}}, end()],
    ),
    counted(
        "counts_that_are_kept_apart",
        {
            "prompt_tokens": 3,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 1000},
            "completion_tokens_details": {"reasoning_tokens": 70},
        },
        (1003, 75, 1000, 0, 70),
    ),
]
