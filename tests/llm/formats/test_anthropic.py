from __future__ import annotations

from typing import Any

from agentcore.llm.formats.anthropic import encode_message, encode_tool, turns
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
from agentcore.messages.message import CITED

CALLS = Message.assistant(
    "Look.", ToolCallBlock(id="a", name="read", arguments={}), ToolCallBlock(id="b", name="stop", arguments={})
)


def result(call_id: str, *content: ResultBlock, is_error: bool = False) -> Message:
    block = ToolResultBlock(call_id=call_id, name="read", content=content, is_error=is_error)
    return Message(role="tool", content=(block,))


def said(*content: Any) -> list[dict[str, Any]]:
    return list(encode_message(Message.assistant(*content), "anthropic").blocks)


def given(*content: Any) -> list[dict[str, Any]]:
    return list(encode_message(Message.user(*content), "anthropic").blocks)


def answered(message: Message) -> dict[str, Any]:
    ((_, block),) = encode_message(message, "anthropic").results
    return block


def conversation(*messages: Message) -> tuple[list[Any], list[tuple[str, list[Any]]]]:
    system, sides = turns(encode_message(message, "anthropic") for message in messages)
    return system, [(turn.role, turn.blocks) for turn in sides]


def own(data: Any, provider: str = "anthropic") -> ProviderBlock:
    return ProviderBlock(provider=provider, data=data)


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def test_pictures_go_by_value_or_by_address() -> None:
    embedded = ImageBlock(url="data:image/png;base64,aGk=")
    by_value, by_address, inside = given(
        ImageBlock(data="aGk=", media_type="image/png"), ImageBlock(url="https://example.com/a.png"), embedded
    )
    assert by_value["source"] == {"type": "base64", "media_type": "image/png", "data": "aGk="}
    assert by_address["source"] == {"type": "url", "url": "https://example.com/a.png"}
    assert inside == by_value


def test_documents_go_by_value_or_by_address_with_their_name() -> None:
    by_value, by_address, inside, long = given(
        DocumentBlock(data="aGk=", name="plan.pdf"),
        DocumentBlock(url="https://example.com/a.pdf"),
        DocumentBlock(url="data:application/pdf;base64,aGk="),
        DocumentBlock(data="aGk=", name="x" * 600),
    )
    source = {"type": "base64", "media_type": "application/pdf", "data": "aGk="}
    assert by_value == {"type": "document", "source": source, "title": "plan.pdf"}
    assert by_address == {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}}
    assert inside == {"type": "document", "source": source}
    assert long["title"] == "x" * 500


def test_text_that_says_nothing_is_left_out() -> None:
    assert given("", " \n", "Hi.") == [text("Hi.")]
    assert conversation(Message.user("Hi."), Message.assistant(""), Message.user("Still there?"))[1] == [
        ("user", [text("Hi."), text("Still there?")])
    ]


def test_the_arguments_of_a_call_are_an_object_whatever_the_model_wrote() -> None:
    well, badly = said(
        ToolCallBlock(id="a", name="read", arguments={"path": "ä"}),
        ToolCallBlock(id="b", name="read", arguments="{oops"),
    )
    assert well == {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "ä"}}
    assert badly["input"] == {"malformed": "{oops"}


def test_ids_and_names_that_the_provider_refuses_are_made_plain_in_calls_and_answers_alike() -> None:
    (call,) = said(ToolCallBlock(id="functions.read:0", name="read </file", arguments={}))
    assert (call["id"], call["name"]) == ("functions_read_0", "read___file")
    assert answered(result("functions.read:0"))["tool_use_id"] == call["id"]


def test_an_answer_holds_pictures_and_documents_and_says_whether_it_is_an_error() -> None:
    picture = ImageBlock(data="aGk=", media_type="image/png")
    shown = answered(result("a", TextBlock(text="Shot."), picture, DocumentBlock(data="aGk=", name="plan.pdf")))
    assert [part["type"] for part in shown["content"]] == ["text", "image", "document"]
    assert shown["content"][2]["title"] == "plan.pdf"
    assert "is_error" not in shown
    assert answered(result("a", TextBlock(text="No."), is_error=True)) == {
        "type": "tool_result",
        "tool_use_id": "a",
        "is_error": True,
        "content": [text("No.")],
    }
    assert "content" not in answered(result("a"))
    assert answered(result("a", is_error=True))["content"]


def test_answers_come_first_in_a_turn_and_in_the_order_of_the_calls() -> None:
    _, sides = conversation(
        Message.user("Go."),
        CALLS,
        Message.user("Wait!"),
        result("b", TextBlock(text="2")),
        result("a", TextBlock(text="1")),
        Message.user("So?"),
    )
    assert [role for role, _ in sides] == ["user", "assistant", "user"]
    answers = sides[2][1]
    assert [block.get("tool_use_id") for block in answers[:2]] == ["a", "b"]
    assert answers[2:] == [text("Wait!"), text("So?")]


def test_answers_to_the_calls_of_two_messages_that_follow_each_other_are_in_their_order() -> None:
    more = Message.assistant(ToolCallBlock(id="c", name="read", arguments={}))
    _, sides = conversation(CALLS, more, result("c"), result("b"), result("a"))
    assert [role for role, _ in sides] == ["assistant", "user"]
    assert [block["tool_use_id"] for block in sides[1][1]] == ["a", "b", "c"]


def test_what_the_system_says_first_stands_apart_and_what_it_says_later_stays_in_its_place() -> None:
    system, sides = conversation(
        Message.system("Be brief.", "Be kind."), Message.user("Hi."), Message.assistant("Yo."), Message.system("Hurry.")
    )
    assert system == [text("Be brief."), text("Be kind.")]
    assert sides[-1] == ("user", [text("Hurry.")])


def test_thinking_goes_back_to_who_signed_it() -> None:
    blocks = said(
        ThinkingBlock(text="", signature="s1", provider="anthropic"),
        RedactedThinkingBlock(data="xyz", provider="anthropic"),
        ThinkingBlock(text="old", signature="s2"),
        ThinkingBlock(text="unsigned", provider="anthropic"),
        ThinkingBlock(text="other", signature="s3", provider="bedrock"),
        RedactedThinkingBlock(data="zyx", provider="bedrock"),
        ReasoningBlock(id="rs_1", encrypted_content="xyz"),
        "Hi.",
    )
    assert blocks == [
        {"type": "thinking", "thinking": "", "signature": "s1"},
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "thinking", "thinking": "old", "signature": "s2"},
        text("Hi."),
    ]


def test_blocks_of_the_providers_own_go_back_to_it_in_their_places() -> None:
    use: dict[str, Any] = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found: dict[str, Any] = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    blocks = said(
        "Let me see.",
        own(use),
        own(found),
        own({"provider_specific_fields": {"x": 1}}),
        own({"type": "web_search_call"}, "openai"),
        UnknownBlock(type="hologram"),
        "There.",
    )
    assert blocks == [text("Let me see."), use, found, text("There.")]
    document = {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}}
    assert given("Read this:", own(document)) == [text("Read this:"), document]


def test_a_text_is_cut_and_cited_as_it_came_unless_it_is_another_one_now() -> None:
    citation = {"type": "web_search_result_location", "url": "https://example.com"}
    cut = own({"type": CITED, "parts": [{"length": 5}, {"length": 3, "citations": [citation]}, {"length": 1}]})
    assert said("It is 42.", cut) == [text("It is"), text(" 42") | {"citations": [citation]}, text(".")]
    assert said("It is hidden.", cut) == [text("It is hidden.")]
    assert encode_message(Message.assistant("It is 42.", cut), "minimax").blocks == (text("It is 42."),)


def test_a_tool_is_told_with_its_schema() -> None:
    tool = ToolSchema(name="read", description="Reads.", parameters={"type": "object"})
    assert encode_tool(tool) == {"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}
