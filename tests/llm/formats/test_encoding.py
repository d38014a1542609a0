"""How messages are written for each interface, read from the requests that a server gets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentcore.llm.formats.chat import encode_messages
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
    UnknownBlock,
)
from agentcore.messages.message import CITED
from model_route import request_body

Json = dict[str, Any]

CALLS = Message.assistant(
    ToolCallBlock(id="a", name="read", arguments={"path": "ä"}), ToolCallBlock(id="b", name="stop", arguments="{oops")
)
HI = Message.user("Hi.")
PNG = ImageBlock(data="aGk=", media_type="image/png")
PDF = DocumentBlock(data="aGk=", name="plan.pdf")
FILE: Json = {"type": "file", "file": {"filename": "plan.pdf", "file_data": "data:application/pdf;base64,aGk="}}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


def result(call_id: str, *content: ResultBlock, is_error: bool = False) -> Message:
    block = ToolResultBlock(call_id=call_id, name="read", content=content, is_error=is_error)
    return Message(role="tool", content=(block,))


async def chat(*messages: Message, model: str = "openai/m") -> list[Any]:
    return (await request_body(messages, model=model, api_mode="chat"))["messages"]


def through_litellm(*messages: Message, model: str) -> list[Any]:
    """The chat form of providers that only litellm reaches in it."""
    return json.loads(json.dumps(encode_messages(messages, model)))


async def claude(*messages: Message) -> tuple[Any, list[Json]]:
    body = await request_body(messages, model="anthropic/claude-sonnet-4-5", prompt_caching=False)
    return body.get("system"), body["messages"]


async def blocks(message: Message) -> list[Json]:
    """One message's blocks, as Anthropic gets them."""
    _, turns = await claude(HI, Message.assistant("Yo."), message)
    return turns[1]["content"][1:] if message.role == "assistant" else turns[2]["content"]


async def items(*messages: Message, model: str = "openai/gpt-5") -> list[Any]:
    return (await request_body(messages, model=model, api_mode="responses"))["input"]


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


# -- Chat Completions --------------------------------------------------------------------------------------------------


async def test_chat_has_plain_words_and_parts_for_pictures_and_documents() -> None:
    nameless, elsewhere = DocumentBlock(data="aGk="), DocumentBlock(url="https://example.com/a", name="Plan B")
    sheet = DocumentBlock(data="aGk=", media_type="text/csv", name="a.csv")
    shown = Message.user("See:", ImageBlock(url="https://example.com/a.png"), PNG, PDF, nameless, elsewhere, sheet)
    system, words, parts = through_litellm(Message.system("Be brief.", "Be kind."), HI, shown, model="openai/gpt-5")
    assert system == {"role": "system", "content": "Be brief.\nBe kind."}
    assert words == {"role": "user", "content": "Hi."}
    said, linked, picture, *files = parts["content"]
    assert (said, picture, files[0]) == (text("See:"), PICTURE, FILE)
    assert linked["image_url"] == {"url": "https://example.com/a.png"}
    assert [file["file"] for file in files[1:]] == [
        {**FILE["file"], "filename": "document.pdf"},
        {"filename": "Plan B.pdf", "file_data": "https://example.com/a"},
        {"filename": "a.csv", "file_data": "data:text/csv;base64,aGk="},
    ]


async def test_chat_has_answers_in_the_order_of_the_calls_whose_arguments_are_json() -> None:
    one, two = result("a", TextBlock(text="1")), result("b", TextBlock(text="2"))
    _, called, *rest = await chat(HI, CALLS, two, one, Message.user("So?"))
    assert called["content"] is None
    first, second = (call["function"] for call in called["tool_calls"])
    assert first == {"name": "read", "arguments": '{"path": "ä"}'}
    assert json.loads(second["arguments"]) == {"malformed": "{oops"}
    assert [(message["role"], message["content"]) for message in rest] == [
        ("tool", "1"),
        ("tool", "2"),
        ("user", "So?"),
    ]
    assert [message["tool_call_id"] for message in rest[:2]] == ["a", "b"]


async def test_chat_has_pictures_and_documents_inside_an_answer_where_they_may_and_after_it_elsewhere() -> None:
    answers = (CALLS, result("a", TextBlock(text="Shot."), PNG), result("b", PNG, PDF))
    for provider in ("gemini", "vertex_ai", "bedrock", "anthropic"):
        inside = through_litellm(*answers, model=f"{provider}/model")
        assert [part["type"] for part in inside[1]["content"]] == ["text", "image_url"]
        assert inside[2]["content"] == [PICTURE, FILE]
    _, _, one, two, after = await chat(HI, *answers)
    assert one["content"] == "Shot.\n(The picture of this result follows in the next message.)"
    assert two["content"] == "(The picture and the document of this result follow in the next message.)"
    assert (after["role"], after["content"]) == ("user", [PICTURE, PICTURE, FILE])


THOUGHT = Message.assistant(
    ThinkingBlock(text="hm", signature="sig", provider="anthropic"),
    RedactedThinkingBlock(data="xyz", provider="anthropic"),
    ThinkingBlock(text="ah", provider="deepseek"),
    "Hi.",
)
UNSAID = Message.assistant(ThinkingBlock(text="hm", signature="sig"), RedactedThinkingBlock(data="xyz"), "Hi.")
SIGNED = [{"type": "thinking", "thinking": "hm", "signature": "sig"}, {"type": "redacted_thinking", "data": "xyz"}]


@pytest.mark.parametrize(
    ("said", "model", "more"),
    [
        (UNSAID, "anthropic/claude", {"thinking_blocks": SIGNED}),
        (UNSAID, "deepseek/deepseek-reasoner", {"reasoning_content": "hm"}),
        (UNSAID, "openai/gpt-5", {}),
        (THOUGHT, "anthropic/claude", {"thinking_blocks": SIGNED}),
        (THOUGHT, "deepseek/deepseek-reasoner", {"reasoning_content": "ah"}),
        (THOUGHT, "bedrock/claude", {}),
    ],
)
def test_chat_has_thinking_for_who_signed_it_or_reads_it_in_words(said: Message, model: str, more: Json) -> None:
    assert through_litellm(said, model=model) == [{"role": "assistant", "content": "Hi.", **more}]


async def test_chat_leaves_out_blocks_of_other_interfaces() -> None:
    item = ProviderBlock(provider="openai", data={"type": "web_search_call", "id": "ws_1"})
    odd = ProviderBlock(provider="openai", data=["odd"])
    said = Message.assistant(ReasoningBlock(id="rs_1"), UnknownBlock(type="hologram"), odd, "Hi.", item)
    assert (await chat(HI, said))[1:] == [{"role": "assistant", "content": "Hi."}]


def test_what_only_its_provider_can_read_goes_back_to_that_provider_only() -> None:
    call = {"id": "srvtoolu_1", "type": "function", "function": {"name": "web_search", "arguments": "{}"}}
    sent = {"content": "Found.", "tool_calls": [call], "provider_specific_fields": {"web_search_results": [1]}}
    said = decode_message(sent, "anthropic")
    assert said.tool_calls == ()
    (back,) = through_litellm(said, model="anthropic/claude")
    assert back == {"role": "assistant"} | sent
    (elsewhere,) = through_litellm(said, model="openai/gpt-5")
    assert elsewhere == {"role": "assistant", "content": "Found."}


def test_fields_of_the_providers_own_are_kept_and_repetitions_are_not() -> None:
    fields = {"refusal": None, "reasoning_content": "hm", "container": {"id": "c"}, "citations": None}
    message = decode_message({"content": "Hi.", "provider_specific_fields": fields}, "anthropic")
    kept: Any = {"provider_specific_fields": {"container": {"id": "c"}}}
    assert message.content[1:] == (ProviderBlock(provider="anthropic", data=kept),)


# -- Anthropic ---------------------------------------------------------------------------------------------------------


async def test_claude_has_pictures_and_documents_by_value_or_by_address() -> None:
    sent = await blocks(
        Message.user(
            PNG,
            ImageBlock(url="data:image/png;base64,aGk="),
            ImageBlock(url="https://example.com/a.png"),
            PDF,
            DocumentBlock(url="data:application/pdf;base64,aGk="),
            DocumentBlock(url="https://example.com/a.pdf"),
            DocumentBlock(data="aGk=", name="x" * 600),
        )
    )
    png = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "aGk="}
    assert sent[0] == sent[1] == {"type": "image", "source": png}
    assert sent[2]["source"] == {"type": "url", "url": "https://example.com/a.png"}
    assert sent[3:6] == [
        {"type": "document", "source": pdf, "title": "plan.pdf"},
        {"type": "document", "source": pdf},
        {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}},
    ]
    assert sent[6]["title"] == "x" * 500


async def test_claude_has_arguments_that_are_objects_and_ids_and_names_that_it_takes() -> None:
    odd = ToolCallBlock(id="functions.read:0", name="read </file", arguments={})
    _, (_, called, answered) = await claude(HI, Message.assistant(*CALLS.content, odd), result("functions.read:0"))
    well, badly, plain = called["content"]
    assert well == {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "ä"}}
    assert badly["input"] == {"malformed": "{oops"}
    assert (plain["id"], plain["name"]) == ("functions_read_0", "read___file")
    assert plain["id"] in [block["tool_use_id"] for block in answered["content"]]


async def test_claude_has_answers_that_show_what_they_have_and_say_whether_they_are_errors() -> None:
    error = result("b", TextBlock(text="No."), is_error=True)
    _, (_, _, answers) = await claude(HI, CALLS, result("a", TextBlock(text="Shot."), PNG, PDF), error)
    shown, failed = answers["content"]
    assert [part["type"] for part in shown["content"]] == ["text", "image", "document"]
    assert "is_error" not in shown
    assert failed == {"type": "tool_result", "tool_use_id": "b", "is_error": True, "content": [text("No.")]}
    _, (_, _, answers) = await claude(HI, CALLS, result("a"), result("b", is_error=True))
    shown, failed = answers["content"]
    assert "content" not in shown
    assert failed["content"]


async def test_claude_has_answers_first_in_a_turn_in_the_order_of_the_calls_and_no_empty_text() -> None:
    more = Message.assistant(ToolCallBlock(id="c", name="read", arguments={}))
    one, two, three = (result(name, TextBlock(text=name)) for name in "abc")
    _, turns = await claude(
        Message.user("", " \n", "Go."), CALLS, more, Message.user("Wait!"), three, two, one, Message.user("So?")
    )
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert turns[0]["content"] == [text("Go.")]
    answers = turns[2]["content"]
    assert [block.get("tool_use_id") for block in answers[:3]] == ["a", "b", "c"]
    assert answers[3:] == [text("Wait!"), text("So?")]
    _, turns = await claude(HI, Message.assistant(""), Message.user("Still there?"))
    assert [turn["content"] for turn in turns] == [[text("Hi."), text("Still there?")]]


async def test_claude_has_what_the_system_says_first_apart_and_what_it_says_later_in_its_place() -> None:
    first = Message.system("Be brief.", "Be kind.")
    system, turns = await claude(first, HI, Message.assistant("Yo."), Message.system("Hurry."))
    assert system == [text("Be brief."), text("Be kind.")]
    assert turns[-1] == {"role": "user", "content": [text("Hurry.")]}


async def test_claude_has_its_own_thinking_and_blocks_back_in_their_places_and_nobody_elses() -> None:
    use: Json = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    said = Message.assistant(
        ThinkingBlock(text="", signature="s1", provider="anthropic"),
        ThinkingBlock(text="old", signature="s2"),
        ThinkingBlock(text="unsigned", provider="anthropic"),
        ThinkingBlock(text="other", signature="s3", provider="bedrock"),
        RedactedThinkingBlock(data="zyx", provider="bedrock"),
        ReasoningBlock(id="rs_1", encrypted_content="xyz"),
        ProviderBlock(provider="anthropic", data=use),
        ProviderBlock(provider="anthropic", data={"provider_specific_fields": {"x": 1}}),
        ProviderBlock(provider="openai", data={"type": "web_search_call"}),
        UnknownBlock(type="hologram"),
        "There.",
    )
    assert await blocks(said) == [
        {"type": "thinking", "thinking": "", "signature": "s1"},
        {"type": "thinking", "thinking": "old", "signature": "s2"},
        use,
        text("There."),
    ]
    document: Any = {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}}
    own = ProviderBlock(provider="anthropic", data=document)
    assert await blocks(Message.user("Read this:", own)) == [text("Read this:"), document]


async def test_claude_has_a_text_cut_and_cited_as_it_came_unless_it_is_another_one_now() -> None:
    citation = {"type": "web_search_result_location", "url": "https://example.com"}
    parts: Any = [{"length": 5}, {"length": 3, "citations": [citation]}, {"length": 1}]
    cut = ProviderBlock(provider="anthropic", data={"type": CITED, "parts": parts})
    said = Message.assistant("It is 42.", cut)
    assert await blocks(said) == [text("It is"), text(" 42") | {"citations": [citation]}, text(".")]
    assert await blocks(Message.assistant("It is hidden.", cut)) == [text("It is hidden.")]


# -- Responses ---------------------------------------------------------------------------------------------------------


async def test_responses_have_system_messages_at_the_start_as_instructions_and_later_ones_as_items() -> None:
    messages = [Message.system("Be brief."), Message.system("Be kind."), HI, Message.system("Hurry.")]
    body = await request_body(messages, model="openai/gpt-5", api_mode="responses")
    assert body["instructions"] == "Be brief.\n\nBe kind."
    assert body["input"] == [
        {"type": "message", "role": role, "content": [{"type": "input_text", "text": words}]}
        for role, words in (("user", "Hi."), ("system", "Hurry."))
    ]


async def test_responses_have_pictures_and_documents_as_files_or_by_address_in_answers_too() -> None:
    nameless = DocumentBlock(url="data:application/pdf;base64,aGk=")
    address = DocumentBlock(url="https://example.com/a.pdf", name="a.pdf")
    plain, shown = result("a", TextBlock(text="ok")), result("b", TextBlock(text="Shot."), PNG, PDF)
    said, _, _, one, two = await items(Message.user("See:", PDF, nameless, address), CALLS, plain, shown)
    file = {"type": "input_file", "filename": "plan.pdf", "file_data": "data:application/pdf;base64,aGk="}
    image = {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"}
    assert said["content"][1:] == [
        file,
        {**file, "filename": "document.pdf"},
        {"type": "input_file", "file_url": "https://example.com/a.pdf"},
    ]
    assert one == {"type": "function_call_output", "call_id": "a", "output": "ok"}
    assert two["output"] == [{"type": "input_text", "text": "Shot."}, image, file]


async def test_responses_have_reasoning_and_items_back_only_from_whom_they_came() -> None:
    search: Any = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    said = Message.assistant(
        ReasoningBlock(id="rs_1", summary=("Hm.",), encrypted_content="e", provider="openai"),
        ProviderBlock(provider="openai", data=search),
        "It is so.",
        ProviderBlock(provider="openai", data={"type": CITED, "parts": [{"length": 3}], "phase": "commentary"}),
        ToolCallBlock(id="a", name="read", arguments={"path": "x"}),
        ReasoningBlock(id="rs_2"),
        ThinkingBlock(text="hm"),
    )
    _, reasoning, searched, words, call, _ = await items(HI, said, result("a"))
    assert reasoning["encrypted_content"] == "e"
    assert searched == search
    # Its words are others than those that were cut; when they were said still holds.
    assert (words["phase"], [part["text"] for part in words["content"]]) == ("commentary", ["It is so."])
    assert call == {"type": "function_call", "call_id": "a", "name": "read", "arguments": '{"path": "x"}'}
    _, words, call, _ = await items(HI, said, result("a"), model="deepseek/m")
    assert "phase" not in words
    assert call["type"] == "function_call"
