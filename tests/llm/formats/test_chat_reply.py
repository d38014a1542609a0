from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agentcore.llm import ReasoningDelta, TextDelta, ToolCallDelta
from agentcore.llm.formats.chat_reply import decode_message, decode_usage
from agentcore.llm.formats.chat_stream import ChatPieces
from agentcore.llm.formats.decoding import read_arguments
from agentcore.messages import ProviderBlock, RedactedThinkingBlock, TextBlock, ThinkingBlock


def assemble(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    joined = ChatPieces()
    for each in pieces:
        joined.read(each)
    return joined.message()


def piece(**delta: Any) -> dict[str, Any]:
    return {"index": 0, "delta": delta}


def fragment(index: int | None, arguments: str, **more: Any) -> dict[str, Any]:
    function = {"arguments": arguments, "name": more.pop("name", None)}
    return piece(tool_calls=[{"index": index, "function": function, **more}])


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


def test_deltas_show_what_a_piece_says() -> None:
    shown = list(ChatPieces().read(piece(content="a", reasoning="b", tool_calls=[{"index": 0, "id": "x"}])))
    assert shown == [ReasoningDelta(text="b"), TextDelta(text="a"), ToolCallDelta(index=0, id="x")]
    assert list(ChatPieces().read({"index": 0, "delta": None})) == []


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
    reader = ChatPieces()
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


def test_thinking_in_marks_in_front_of_the_words_is_thinking() -> None:
    message = decode_message({"content": "<think>\nhm\n</think>\n\nHi."}, "groq")
    assert message.content == (ThinkingBlock(text="\nhm\n", provider="groq"), TextBlock(text="\n\nHi."))
    assert decode_message({"content": "<think>\n</think>Hi."}, "groq").content == (TextBlock(text="Hi."),)
    # What was given apart is all that was thought.
    both = decode_message({"content": "<think> is a mark.", "reasoning": "hm"}, "groq")
    assert both.text == "<think> is a mark."


def test_a_stream_shows_thinking_in_marks_as_thinking() -> None:
    reader = ChatPieces()
    pieces = [piece(content=words) for words in ("<th", "ink>h", "m</", "think>Hi", " <")]
    shown = [delta for choice in (*pieces, {"finish_reason": "stop"}) for delta in reader.read(choice)]
    assert shown == [
        ReasoningDelta(text="h"),
        ReasoningDelta(text="m"),
        TextDelta(text="Hi"),
        TextDelta(text=" <"),
    ]
    held = ChatPieces()
    shown = [delta for choice in (piece(content="<t"), {"finish_reason": "stop"}) for delta in held.read(choice)]
    assert shown == [TextDelta(text="<t")]
