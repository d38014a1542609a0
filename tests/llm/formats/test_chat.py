from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agentcore.llm.formats.chat import encode_messages, encode_tools
from agentcore.llm.formats.chat_reply import decode_message
from agentcore.messages import (
    DocumentBlock,
    ImageBlock,
    Message,
    ProviderBlock,
    ReasoningBlock,
    RedactedThinkingBlock,
    ResultBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSchema,
    UnknownBlock,
)

CALLS = Message.assistant(
    ToolCallBlock(id="a", name="read", arguments={"path": "ä"}), ToolCallBlock(id="b", name="stop", arguments="{oops")
)
PNG = ImageBlock(data="aGk=", media_type="image/png")
PDF = DocumentBlock(data="aGk=", name="plan.pdf")
FILE = {"type": "file", "file": {"filename": "plan.pdf", "file_data": "data:application/pdf;base64,aGk="}}


def result(call_id: str, *content: ResultBlock) -> Message:
    return Message(role="tool", content=(ToolResultBlock(call_id=call_id, name="read", content=content),))


def encode(*messages: Message, model: str = "openai/gpt-5") -> list[Any]:
    return json.loads(json.dumps(encode_messages(messages, model)))


def test_words_are_plain_text_and_pictures_are_parts() -> None:
    picture = Message.user("See:", ImageBlock(url="https://example.com/a.png"), PNG)
    system, words, parts = encode(Message.system("Be brief.", "Be kind."), Message.user("Hi."), picture)
    assert system == {"role": "system", "content": "Be brief.\nBe kind."}
    assert words == {"role": "user", "content": "Hi."}
    assert parts["content"] == [
        {"type": "text", "text": "See:"},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
    ]


def test_documents_are_files_with_a_name_that_says_what_they_are() -> None:
    nameless, elsewhere = DocumentBlock(data="aGk="), DocumentBlock(url="https://example.com/a", name="Plan B")
    (parts,) = encode(Message.user("See:", PDF, nameless, elsewhere))
    assert parts["content"][:2] == [{"type": "text", "text": "See:"}, FILE]
    assert parts["content"][2]["file"]["filename"] == "document.pdf"
    assert parts["content"][3]["file"] == {"filename": "Plan B.pdf", "file_data": "https://example.com/a"}
    (sheet,) = encode(Message.user(DocumentBlock(data="aGk=", media_type="text/csv", name="a.csv")))
    assert sheet["content"][0]["file"] == {"filename": "a.csv", "file_data": "data:text/csv;base64,aGk="}


def test_calls_are_json_text_even_where_the_model_wrote_none() -> None:
    (message,) = encode(CALLS)
    assert message["content"] is None
    assert [call["id"] for call in message["tool_calls"]] == ["a", "b"]
    assert message["tool_calls"][0]["function"] == {"name": "read", "arguments": '{"path": "ä"}'}
    assert json.loads(message["tool_calls"][1]["function"]["arguments"]) == {"malformed": "{oops"}


def test_answers_follow_in_the_order_of_the_calls() -> None:
    encoded = encode(CALLS, result("b", TextBlock(text="2")), result("a", TextBlock(text="1")), Message.user("So?"))
    assert [(message["role"], message["content"]) for message in encoded[1:]] == [
        ("tool", "1"),
        ("tool", "2"),
        ("user", "So?"),
    ]
    assert [message["tool_call_id"] for message in encoded[1:3]] == ["a", "b"]


def test_pictures_in_an_answer_go_inside_it_where_they_may_and_after_it_elsewhere() -> None:
    answers = (CALLS, result("a", TextBlock(text="Shot."), PNG), result("b", TextBlock(text="ok")))
    inside = encode(*answers, model="anthropic/claude")
    assert [part["type"] for part in inside[1]["content"]] == ["text", "image_url"]
    after = encode(*answers)
    assert [message["role"] for message in after] == ["assistant", "tool", "tool", "user"]
    assert after[1]["content"].startswith("Shot.\n(The picture")
    assert after[3]["content"] == [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]


def test_documents_in_an_answer_go_where_pictures_go() -> None:
    answers = (CALLS, result("a", TextBlock(text="Got it."), PDF), result("b", PNG, PDF))
    for provider in ("gemini", "vertex_ai", "bedrock", "anthropic"):
        inside = encode(*answers, model=f"{provider}/model")
        assert inside[1]["content"] == [{"type": "text", "text": "Got it."}, FILE]
    after = encode(*answers)
    assert [message["role"] for message in after] == ["assistant", "tool", "tool", "user"]
    assert after[1]["content"] == "Got it.\n(The document of this result follows in the next message.)"
    assert after[2]["content"] == "(The picture and the document of this result follow in the next message.)"
    assert [part["type"] for part in after[3]["content"]] == ["file", "image_url", "file"]


def test_thinking_goes_back_signed_to_who_signed_it_in_words_to_who_reads_it_and_else_not_at_all() -> None:
    said = Message.assistant(
        ThinkingBlock(text="hm", signature="sig"), RedactedThinkingBlock(data="xyz"), TextBlock(text="Hi.")
    )
    (signed,) = encode(said, model="anthropic/claude")
    assert signed["thinking_blocks"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "xyz"},
    ]
    (read,) = encode(said, model="deepseek/deepseek-reasoner")
    assert read == {"role": "assistant", "content": "Hi.", "reasoning_content": "hm"}
    (neither,) = encode(said)
    assert neither == {"role": "assistant", "content": "Hi."}


def test_thinking_of_another_provider_stays_here() -> None:
    said = Message.assistant(
        ThinkingBlock(text="hm", signature="sig", provider="anthropic"),
        RedactedThinkingBlock(data="xyz", provider="anthropic"),
        ThinkingBlock(text="ah", provider="deepseek"),
        "Hi.",
    )
    (signed,) = encode(said, model="anthropic/claude")
    assert [block["type"] for block in signed["thinking_blocks"]] == ["thinking", "redacted_thinking"]
    (read,) = encode(said, model="deepseek/deepseek-reasoner")
    assert read == {"role": "assistant", "content": "Hi.", "reasoning_content": "ah"}
    (neither,) = encode(said, model="bedrock/claude")
    assert neither == {"role": "assistant", "content": "Hi."}


def test_what_only_its_provider_can_read_goes_back_to_that_provider_only() -> None:
    call = {"id": "srvtoolu_1", "type": "function", "function": {"name": "web_search", "arguments": "{}"}}
    sent = {"content": "Found.", "tool_calls": [call], "provider_specific_fields": {"web_search_results": [1]}}
    said = decode_message(sent, "anthropic")
    assert said.tool_calls == ()
    (back,) = encode(said, model="anthropic/claude")
    assert back == {"role": "assistant"} | sent
    (elsewhere,) = encode(said)
    assert elsewhere == {"role": "assistant", "content": "Found."}


def test_details_of_reasoning_go_back_in_place_of_its_words() -> None:
    details = [{"type": "reasoning.encrypted", "data": "xyz"}]
    said = decode_message({"content": "Hi.", "reasoning_content": "hm", "reasoning_details": details}, "openrouter")
    assert encode(said, model="openrouter/a/b") == [
        {"role": "assistant", "content": "Hi.", "reasoning_details": details}
    ]


def test_blocks_of_other_interfaces_and_times_are_left_out() -> None:
    said = Message.assistant(
        ReasoningBlock(id="rs_1"), UnknownBlock(type="hologram"), ProviderBlock(provider="openai", data=["odd"]), "Hi."
    )
    item: JsonValue = {"type": "web_search_call", "id": "ws_1"}
    said = said.model_copy(update={"content": (*said.content, ProviderBlock(provider="openai", data=item))})
    assert encode(said) == [{"role": "assistant", "content": "Hi."}]


def test_tools_are_functions() -> None:
    tool = ToolSchema(name="read", description="Reads.", parameters={"type": "object"})
    assert encode_tools([tool]) == [
        {
            "type": "function",
            "function": {"name": "read", "description": "Reads.", "parameters": {"type": "object"}},
        }
    ]


def said(text: str, arguments: str | dict[str, Any]) -> Message:
    return Message.assistant(text, ToolCallBlock(id="a", name="t", arguments=arguments))


TEXTS = st.text(max_size=10)
MESSAGES = st.lists(
    st.one_of(
        st.builds(Message.user, TEXTS),
        st.builds(Message.system, TEXTS),
        st.builds(said, TEXTS, st.one_of(TEXTS, st.dictionaries(TEXTS, st.integers()))),
    ),
    max_size=5,
)


@given(MESSAGES, MESSAGES)
def test_more_messages_leave_the_bytes_of_the_earlier_ones_alone(before: list[Message], after: list[Message]) -> None:
    earlier = json.dumps(encode_messages(before, "openai/gpt-5"))
    assert json.dumps(encode_messages([*before, *after], "openai/gpt-5")).startswith(earlier[:-1])
