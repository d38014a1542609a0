from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agentcore.llm import ReasoningDelta, TextDelta, ToolCallDelta
from agentcore.llm.formats.chat_reply import decode_message, decode_usage, read_arguments, stop_reason
from agentcore.llm.formats.chat_stream import DeltaReader, assemble
from agentcore.messages import Message, ProviderBlock, RedactedThinkingBlock, TextBlock, ThinkingBlock, ToolCallBlock


def piece(**delta: Any) -> dict[str, Any]:
    return {"index": 0, "delta": delta}


def fragment(index: int | None, arguments: str, **more: Any) -> dict[str, Any]:
    function = {"arguments": arguments, "name": more.pop("name", None)}
    return piece(tool_calls=[{"index": index, "function": function, **more}])


def test_the_pieces_of_a_stream_make_the_message_that_would_have_come_at_once() -> None:
    message = decode_message(
        assemble(
            [
                piece(role="assistant", content=""),
                piece(reasoning_content="Let me "),
                piece(reasoning_content="see."),
                piece(content="It "),
                piece(content="is:"),
                fragment(0, "", id="a", name="read"),
                fragment(0, '{"path":'),
                fragment(1, "{}", id="b", name="stop"),
                fragment(0, ' "x"}'),
                piece(),
                {"index": 0},
            ]
        ),
        "openai",
    )
    assert message.content == (
        ThinkingBlock(text="Let me see.", provider="openai"),
        TextBlock(text="It is:"),
        ToolCallBlock(id="a", name="read", arguments={"path": "x"}),
        ToolCallBlock(id="b", name="stop", arguments={}),
    )


def test_signed_thinking_is_put_together_block_by_block() -> None:
    def thought(**block: Any) -> dict[str, Any]:
        return piece(thinking_blocks=[block], reasoning_content=block.get("thinking"))

    message = decode_message(
        assemble(
            [
                thought(type="thinking", thinking="one "),
                thought(type="thinking", thinking="two", signature=None),
                thought(type="thinking", thinking="", signature="sig1"),
                thought(type="redacted_thinking", data="xyz"),
                thought(type="thinking", thinking="three"),
                thought(type="thinking", signature="sig2"),
                piece(content="Hi."),
            ]
        ),
        "anthropic",
    )
    assert message.content == (
        ThinkingBlock(text="one two", signature="sig1", provider="anthropic"),
        RedactedThinkingBlock(data="xyz", provider="anthropic"),
        ThinkingBlock(text="three", signature="sig2", provider="anthropic"),
        TextBlock(text="Hi."),
    )


def test_servers_that_number_every_call_zero_are_told_apart_by_id() -> None:
    pieces = [
        fragment(0, '{"n": 1}', id="a", name="t"),
        fragment(None, '{"n"', id="b", name="t"),
        fragment(0, ": 2}", id="b"),
    ]
    calls = decode_message(assemble(pieces), "openai").tool_calls
    assert [(call.id, call.arguments) for call in calls] == [("a", {"n": 1}), ("b", {"n": 2})]
    reader = DeltaReader()
    shown = [delta for choice in pieces for delta in reader.read(choice)]
    assert [delta.index for delta in shown if isinstance(delta, ToolCallDelta)] == [0, 1, 1]


def test_a_call_without_an_id_gets_one_that_its_answer_can_name() -> None:
    message = decode_message(assemble([fragment(0, "{}", name="t"), fragment(1, "{}", name="t")]), "ollama")
    assert [call.id for call in message.tool_calls] == ["call_0", "call_1"]


def test_deltas_show_what_a_piece_says() -> None:
    shown = list(DeltaReader().read(piece(content="a", reasoning="b", tool_calls=[{"index": 0, "id": "x"}])))
    assert shown == [ReasoningDelta(text="b"), TextDelta(text="a"), ToolCallDelta(index=0, id="x")]
    assert list(DeltaReader().read({"index": 0, "delta": None})) == []


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", {}),
        ("  ", {}),
        ('{"a": [1, null]}', {"a": [1, None]}),
        ('{"a": ', '{"a": '),
        ("[1]", "[1]"),
        ('"x"', '"x"'),
        ("[" * 100_000, "[" * 100_000),
        ('{"a": "\\ud83d"}', {"a": "\ufffd"}),
        ('{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}),
    ],
)
def test_arguments_that_are_no_object_stay_text(text: str, arguments: dict[str, JsonValue] | str) -> None:
    assert read_arguments(text) == arguments


def test_a_character_cut_in_two_by_the_stream_is_whole_in_the_reply() -> None:
    pieces = [piece(content="\ud83d"), piece(content="\ude00")]
    assert decode_message(assemble(pieces), "openai").text == "\U0001f600"
    reader = DeltaReader()
    assert [delta for choice in pieces for delta in reader.read(choice)] == [TextDelta(text="\ufffd")] * 2


def test_fields_of_the_providers_own_are_kept_and_repetitions_are_not() -> None:
    fields = {"refusal": None, "reasoning_content": "hm", "container": {"id": "c"}, "citations": None}
    message = decode_message({"content": "Hi.", "provider_specific_fields": fields}, "anthropic")
    kept: JsonValue = {"provider_specific_fields": {"container": {"id": "c"}}}
    assert message.content[1:] == (ProviderBlock(provider="anthropic", data=kept),)


def test_details_of_reasoning_are_collected_over_the_stream() -> None:
    pieces = [piece(provider_specific_fields={"reasoning_details": [number]}) for number in (1, 2)]
    (block,) = decode_message(assemble(pieces), "openrouter").content
    assert block == ProviderBlock(provider="openrouter", data={"reasoning_details": [1, 2]})


def test_a_refusal_is_what_the_model_said() -> None:
    assert decode_message({"content": None, "refusal": "I can't."}, "openai").text == "I can't."


@pytest.mark.parametrize(
    ("finish_reason", "ours"),
    [
        ("stop", "end"),
        ("length", "length"),
        ("tool_calls", "tool_calls"),
        ("content_filter", "content_filter"),
        ("odd", "odd"),
    ],
)
def test_stop_reasons_are_ours_where_we_have_one(finish_reason: str, ours: str) -> None:
    assert stop_reason(finish_reason, Message.assistant("Hi.")) == ours


def test_a_reply_with_calls_stopped_for_them_whatever_the_server_says() -> None:
    assert stop_reason("stop", Message.assistant(ToolCallBlock(id="a", name="t", arguments={}))) == "tool_calls"


def test_usage_is_read_under_its_several_names() -> None:
    openai = decode_usage(
        [
            {
                "prompt_tokens": 100,
                "completion_tokens": 50,
                "prompt_tokens_details": {"cached_tokens": 40, "cache_creation_tokens": 10},
                "completion_tokens_details": {"reasoning_tokens": 30},
            }
        ]
    )
    counts = (100, 50, 40, 10, 30)
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
    assert tuple(getattr(openai, name) for name in names) == counts
    deepseek = decode_usage([{"prompt_tokens": 100, "prompt_cache_hit_tokens": 40, "prompt_tokens_details": None}])
    assert deepseek.cache_read_tokens == 40
    assert decode_usage([]).total_tokens == decode_usage([{}]).total_tokens == 0
    assert decode_usage([]).requests == 1


def test_counts_that_a_provider_keeps_apart_are_made_inclusive() -> None:
    usage = decode_usage(
        [
            {
                "prompt_tokens": 3,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 1000},
                "completion_tokens_details": {"reasoning_tokens": 70},
            }
        ]
    )
    assert (usage.input_tokens, usage.output_tokens) == (1003, 75)


def test_a_stream_that_counts_several_times_is_counted_once() -> None:
    usage = decode_usage(
        [
            {"prompt_tokens": 100, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 40}},
            {"prompt_tokens": 0, "completion_tokens": 50},
        ]
    )
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (100, 50, 40)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.text(max_size=20),
    st.lists(st.dictionaries(st.text(max_size=5), JSON, max_size=3), max_size=3),
    st.lists(st.integers(1, 5), min_size=1),
)
def test_however_a_stream_is_cut_its_message_is_the_same(
    text: str, calls: list[dict[str, Any]], sizes: list[int]
) -> None:
    def cut(whole: str) -> list[str]:
        pieces: list[str] = []
        while whole:
            size = sizes[len(pieces) % len(sizes)]
            pieces.append(whole[:size])
            whole = whole[size:]
        return pieces

    stream = [piece(content=part) for part in cut(text)]
    for index, arguments in enumerate(calls):
        stream.append(fragment(index, "", id=f"call_{index}", name="t"))
        stream += [fragment(index, part) for part in cut(json.dumps(arguments))]
    at_once = {
        "content": text,
        "tool_calls": [
            {"id": f"call_{index}", "function": {"name": "t", "arguments": json.dumps(arguments)}}
            for index, arguments in enumerate(calls)
        ],
    }
    assert decode_message(assemble(stream), "openai") == decode_message(at_once, "openai")
    assert [call.arguments for call in decode_message(at_once, "openai").tool_calls] == calls


@pytest.mark.parametrize("name", ["cached_tokens", "num_cached_tokens", "prompt_cache_hit_tokens"])
def test_what_came_from_the_cache_is_counted_by_whatever_name_and_place(name: str) -> None:
    assert decode_usage([{"prompt_tokens": 100, name: 40}]).cache_read_tokens == 40
    kept = decode_usage([{"prompt_tokens": 100, "prompt_tokens_details": {"cache_write_tokens": 30}}])
    assert (kept.input_tokens, kept.cache_write_tokens) == (100, 30)


def test_a_count_that_is_corrected_downwards_at_the_end_is_the_corrected_one() -> None:
    usage = decode_usage([{"prompt_tokens": 15}, {"prompt_tokens": 13, "completion_tokens": 8}, {}])
    assert (usage.input_tokens, usage.output_tokens) == (13, 8)


def test_arguments_that_come_as_an_object_are_read_too() -> None:
    (call,) = decode_message(
        {"tool_calls": [{"id": "a", "function": {"name": "t", "arguments": {"n": 1}}}]}, "ollama"
    ).tool_calls
    assert call.arguments == {"n": 1}
    pieces = [piece(tool_calls=[{"index": 0, "id": "a", "function": {"name": "t", "arguments": {"n": 1}}}])]
    assert decode_message(assemble(pieces), "ollama").tool_calls[0].arguments == {"n": 1}


def test_thinking_that_is_a_part_of_the_content_is_read() -> None:
    content = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Hi."}]
    message = decode_message({"content": content}, "mistral")
    assert message.content == (ThinkingBlock(text="hm", provider="mistral"), TextBlock(text="Hi."))
    assert list(DeltaReader().read(piece(content=content))) == [ReasoningDelta(text="hm"), TextDelta(text="Hi.")]


def test_thinking_in_marks_in_front_of_the_words_is_thinking() -> None:
    message = decode_message({"content": "<think>\nhm\n</think>\n\nHi."}, "groq")
    assert message.content == (ThinkingBlock(text="\nhm\n", provider="groq"), TextBlock(text="\n\nHi."))
    assert decode_message({"content": "<think>\n</think>Hi."}, "groq").content == (TextBlock(text="Hi."),)
    # What was given apart is all that was thought.
    both = decode_message({"content": "<think> is a mark.", "reasoning": "hm"}, "groq")
    assert both.text == "<think> is a mark."


def test_a_stream_shows_thinking_in_marks_as_thinking() -> None:
    reader = DeltaReader()
    pieces = [piece(content=words) for words in ("<th", "ink>h", "m</", "think>Hi", " <")]
    shown = [delta for choice in (*pieces, {"finish_reason": "stop"}) for delta in reader.read(choice)]
    assert shown == [
        ReasoningDelta(text="h"),
        ReasoningDelta(text="m"),
        TextDelta(text="Hi"),
        TextDelta(text=" <"),
    ]
    held = DeltaReader()
    shown = [delta for choice in (piece(content="<t"), {"finish_reason": "stop"}) for delta in held.read(choice)]
    assert shown == [TextDelta(text="<t")]
