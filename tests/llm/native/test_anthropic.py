from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agentcore.errors import BadRequest
from agentcore.llm.catalog import Features
from agentcore.llm.model import CallContext
from agentcore.llm.native.anthropic import AnthropicWire
from agentcore.llm.native.wire import Call
from agentcore.llm.settings import LLMSettings
from agentcore.messages import (
    Message,
    ProviderBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSchema,
)

TOOLS = tuple(ToolSchema(name=name, description="", parameters={"type": "object"}) for name in ("read", "stop"))
HELLO = Message.user("Hi.")
MARK = {"type": "ephemeral"}


def raw(
    *messages: Message,
    tools: tuple[ToolSchema, ...] = (),
    features: Features | None = None,
    streamed: bool = True,
    stop: tuple[str, ...] = (),
    model: str = "anthropic/claude-sonnet-4-5",
    **settings: Any,
) -> bytes:
    told = LLMSettings(model=model, **settings)
    call = Call(told, messages, tools, CallContext(stop=stop), features or Features(), streamed)
    return AnthropicWire(told).body(call)


def body(*messages: Message, **more: Any) -> dict[str, Any]:
    return json.loads(raw(*(messages or (HELLO,)), **more))


def result(call_id: str, text: str) -> Message:
    block = ToolResultBlock(call_id=call_id, name="read", content=(TextBlock(text=text),))
    return Message(role="tool", content=(block,))


def conversation(steps: int) -> Iterator[Message]:
    yield Message.system("Be brief.")
    yield Message.user("Go.")
    for step in range(steps):
        call = ToolCallBlock(id=f"c{step}", name="read", arguments={"step": step})
        yield Message.assistant(ThinkingBlock(text="hm", signature="s", provider="anthropic"), f"Step {step}.", call)
        yield result(f"c{step}", f"Result {step}.")


def marks(value: Any) -> int:
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(map(marks, value.values()))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return sum(map(marks, value)) if isinstance(value, list) else 0  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


@pytest.mark.parametrize(
    "base_url", ["https://api.anthropic.com", "https://api.anthropic.com/v1", "https://api.anthropic.com/v1/messages"]
)
def test_an_address_may_be_given_with_and_without_its_version(base_url: str) -> None:
    assert AnthropicWire(LLMSettings(model="anthropic/x")).url(base_url) == "https://api.anthropic.com/v1/messages"


def test_a_request_is_what_the_interface_takes() -> None:
    sent = body(Message.system("Be brief."), HELLO, tools=TOOLS[:1], prompt_caching=False, max_output_tokens=100)
    assert sent == {
        "tools": [{"name": "read", "description": "", "input_schema": {"type": "object"}}],
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi."}]}],
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "stream": True,
    }
    assert "stream" not in body(streamed=False)
    assert body(stop=("END", " "))["stop_sequences"] == ["END"]


def test_marks_are_on_the_last_tool_the_system_prompt_and_the_last_two_turns_of_the_user() -> None:
    sent = body(*conversation(5), Message.user("And?"), tools=TOOLS)
    assert marks(sent) == 4
    assert sent["tools"][-1]["cache_control"] == MARK
    assert sent["system"][-1]["cache_control"] == MARK
    turns = [turn["content"][-1] for turn in sent["messages"] if turn["role"] == "user"]
    assert [turn.get("cache_control") for turn in turns[-3:]] == [None, MARK, MARK]
    assert turns[-1]["text"] == "And?"


def test_nothing_is_marked_unasked_and_nobodys_own_marks_are_doubled() -> None:
    assert marks(body(*conversation(2), tools=TOOLS, prompt_caching=False)) == 0
    assert marks(body(*conversation(2), tools=TOOLS, features=Features(prompt_caching=False))) == 0
    whole = body(*conversation(2), tools=TOOLS, extra_body={"cache_control": MARK})
    assert whole["cache_control"] == MARK
    assert marks(whole) == 1
    document = ProviderBlock(provider="anthropic", data={"type": "document", "cache_control": {"type": "ephemeral"}})
    assert marks(body(Message.user("Read this:", document))) == 1
    # A turn of the assistant at the end is not marked.
    user, assistant = body(HELLO, Message.assistant(ThinkingBlock(text="hm", signature="s")))["messages"]
    assert (marks(user), marks(assistant)) == (1, 0)


@given(st.integers(0, 6), st.integers(0, 6))
def test_but_for_its_marks_a_request_begins_with_the_bytes_of_the_one_before(first: int, more: int) -> None:
    messages = list(conversation(first + more))
    mark = b',"cache_control":{"type":"ephemeral"}'
    earlier = raw(*messages[: 2 + 2 * first], tools=TOOLS).replace(mark, b"")
    later = raw(*messages, tools=TOOLS).replace(mark, b"")
    prefix = earlier[: earlier.index(b',"model":')].removesuffix(b"]}]")
    assert later.startswith(prefix)


def test_a_message_is_written_for_each_provider_apart() -> None:
    message = Message.assistant(ThinkingBlock(text="hm", signature="s", provider="minimax"), "Hi.")
    assert len(body(HELLO, message)["messages"][1]["content"]) == 1
    assert len(body(HELLO, message, model="minimax/MiniMax-M2")["messages"][1]["content"]) == 2


def test_the_providers_own_tools_stand_beside_ours() -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    sent = body(tools=TOOLS, extra_body={"tools": [search]})
    assert [tool["name"] for tool in sent["tools"]] == ["read", "stop", "web_search"]
    assert sent["tools"][-1] == search | {"cache_control": MARK}
    assert body(extra_body={"service_tier": "auto"})["service_tier"] == "auto"


def test_the_longest_reply_is_the_one_asked_for_or_the_one_the_model_has() -> None:
    known = Features(max_output_tokens=64_000)
    assert body(features=known, max_output_tokens=100)["max_tokens"] == 100
    assert body(features=known)["max_tokens"] == 64_000
    assert body(features=known, streamed=False)["max_tokens"] == 21_000
    assert body()["max_tokens"] == 8192
    assert body(reasoning_effort="high")["max_tokens"] == 8192 + 16_384


@pytest.mark.parametrize(
    ("model", "effort", "thinking", "word"),
    [
        ("claude-3-5-haiku-latest", "high", None, None),
        ("claude-3-haiku-20240307", "none", None, None),
        ("claude-2.1", "high", None, None),
        ("claude-3-7-sonnet-20250219", "high", {"type": "enabled", "budget_tokens": 16_384}, None),
        ("claude-sonnet-4-20250514", "low", {"type": "enabled", "budget_tokens": 4096}, None),
        ("claude-sonnet-4-5-20250929", "minimal", {"type": "enabled", "budget_tokens": 1024}, None),
        ("claude-opus-4-5", "max", {"type": "enabled", "budget_tokens": 51_200}, None),
        ("claude-haiku-4-5", "none", {"type": "disabled"}, None),
        ("claude-haiku-4-5", None, None, None),
        ("claude-opus-4-6", None, None, None),
        ("claude-opus-4-6", "none", {"type": "disabled"}, None),
        ("claude-opus-4-6-20260205", "minimal", {"type": "adaptive"}, "low"),
        ("claude-sonnet-4-6", "xhigh", {"type": "adaptive"}, "high"),
        ("claude-opus-4.6", "max", {"type": "adaptive"}, "max"),
        ("claude-opus-4-7", "xhigh", {"type": "adaptive", "display": "summarized"}, "xhigh"),
        ("claude-opus-4-8", "none", {"type": "disabled"}, None),
        ("claude-sonnet-5", "none", {"type": "disabled"}, None),
        ("claude-sonnet-5", None, None, None),
        ("claude-opus-5", "medium", {"type": "adaptive", "display": "summarized"}, "medium"),
        ("claude-haiku-5-5", "none", {"type": "disabled"}, None),
        ("claude-fable-5", "low", {"type": "adaptive", "display": "summarized"}, "low"),
        ("claude-mythos-preview", "high", {"type": "adaptive", "display": "summarized"}, "high"),
        ("not-a-claude", "high", {"type": "enabled", "budget_tokens": 16_384}, None),
        ("not-a-claude", "none", {"type": "disabled"}, None),
    ],
)
def test_each_model_is_told_to_think_as_it_takes_it(
    model: str, effort: Any, thinking: dict[str, Any] | None, word: str | None
) -> None:
    sent = body(model=f"anthropic/{model}", reasoning_effort=effort, features=Features(max_output_tokens=64_000))
    assert sent.get("thinking") == thinking
    assert sent.get("output_config") == (None if word is None else {"effort": word})


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-sonnet-5-5", "claude-fable-5-1", "claude-opus-6"])
def test_models_that_bind_their_thinking_are_asked_to_leave_out_what_fits_no_longer(model: str) -> None:
    binding = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    model = f"anthropic/{model}"
    assert body(model=model)["thinking"] == {"type": "adaptive"} | binding
    shown = {"type": "adaptive", "display": "summarized"}
    assert body(model=model, reasoning_effort="high")["thinking"] == shown | binding
    beta = AnthropicWire(LLMSettings(model=model)).headers("k")["anthropic-beta"]
    assert beta.startswith("thinking-binding-controls")
    for elsewhere in ({"base_url": "https://example.com"}, {"extra_headers": {"Anthropic-Beta": "other"}}):
        settings = LLMSettings.model_validate({"model": model, **elsewhere})
        assert "anthropic-beta" not in AnthropicWire(settings).headers("k")
        assert "thinking" not in body(model=model, **elsewhere)


def test_what_always_thinks_is_not_silently_left_to_think() -> None:
    with pytest.raises(BadRequest, match="always thinks"):
        body(model="anthropic/claude-opus-5-5", reasoning_effort="none")


def test_thinking_leaves_room_for_words_and_is_never_dropped_for_want_of_it() -> None:
    assert body(max_output_tokens=4000, reasoning_effort="high")["thinking"]["budget_tokens"] == 3200
    with pytest.raises(BadRequest, match="max_output_tokens above 1,280"):
        body(max_output_tokens=1200, reasoning_effort="low")


def test_what_is_not_to_be_dropped_is_sent_as_it_is() -> None:
    sent = body(model="anthropic/claude-opus-4-6", reasoning_effort="xhigh", temperature=0.5, drop_params=False)
    assert sent["output_config"] == {"effort": "xhigh"}
    assert sent["temperature"] == 0.5
    old = body(model="anthropic/claude-3-haiku-20240307", reasoning_effort="low", drop_params=False)
    assert old["thinking"]["type"] == "enabled"


@pytest.mark.parametrize(
    ("model", "effort", "sent"),
    [
        ("claude-3-5-haiku-latest", None, {"temperature", "top_p"}),
        ("claude-sonnet-4-5", None, {"temperature"}),
        ("claude-sonnet-4-5", "low", set[str]()),
        ("claude-sonnet-4-6", "none", {"temperature"}),
        ("claude-opus-4-7", None, set[str]()),
        ("claude-sonnet-5", "none", set[str]()),
    ],
)
def test_chance_is_left_to_models_that_take_no_word_on_it(model: str, effort: Any, sent: set[str]) -> None:
    options = body(model=f"anthropic/{model}", temperature=0.5, top_p=0.9, reasoning_effort=effort)
    assert {name for name in ("temperature", "top_p") if name in options} == sent


def test_what_is_given_besides_goes_before_what_follows_from_settings() -> None:
    schema = {"type": "json_schema", "schema": {"type": "object"}}
    sent = body(
        model="anthropic/claude-opus-4-6",
        reasoning_effort="high",
        extra_body={"output_config": {"format": schema}, "thinking": {"type": "adaptive", "display": "omitted"}},
    )
    assert sent["output_config"] == {"effort": "high", "format": schema}
    assert sent["thinking"] == {"type": "adaptive", "display": "omitted"}


RUN: dict[str, Any] = {"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]}


def ran_in(container: str, expires_at: str | None = "2999-01-01T00:00:00Z") -> Message:
    data: JsonValue = {"type": "container", "id": container, "expires_at": expires_at}
    return Message.assistant("It ran.", ProviderBlock(provider="anthropic", data=data))


@pytest.mark.parametrize(
    ("messages", "extra", "container"),
    [
        ((HELLO, ran_in("c1"), HELLO, ran_in("c2"), HELLO), RUN, "c2"),
        ((HELLO, ran_in("c1"), HELLO), {}, None),
        ((HELLO, ran_in("c1", "2020-01-01T00:00:00Z"), HELLO), RUN, None),
        ((HELLO, ran_in("c1", None), HELLO), RUN, "c1"),
        ((HELLO,), RUN, None),
        ((HELLO, ran_in("c1"), HELLO), RUN | {"container": "mine"}, "mine"),
        ((HELLO, ran_in("c1"), HELLO), RUN | {"container": {"skills": [1]}}, {"skills": [1], "id": "c1"}),
    ],
)
def test_a_container_is_named_only_where_code_may_run_and_it_is_still_there(
    messages: tuple[Message, ...], extra: dict[str, Any], container: Any
) -> None:
    sent = body(*messages, extra_body=extra)
    assert sent.get("container") == container
    assert [len(turn["content"]) for turn in sent["messages"]] == [1] * len(messages)
