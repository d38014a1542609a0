from __future__ import annotations

import base64
from contextlib import nullcontext

import pytest

from agentcore.errors import BadRequest
from agentcore.llm import LLM
from agentcore.llm.catalog import Features
from agentcore.llm.media import check_media, without_unseen
from agentcore.messages import DocumentBlock, ImageBlock, Message, ResultBlock, TextBlock, ToolResultBlock

MIB = 1024 * 1024
CLAUDE = LLM(model="anthropic/claude-sonnet-4-5")
GPT = LLM(model="openai/gpt-5")
OWN = LLM(model="llava", base_url="http://localhost:11434/v1")
UNKNOWN = Features()


def picture(size: int = 30, media_type: str | None = "image/png") -> ImageBlock:
    """A picture of so many bytes."""
    return ImageBlock(data=base64.b64encode(bytes(size)).decode(), media_type=media_type)


def document(size: int = 30, media_type: str = "application/pdf", name: str | None = None) -> DocumentBlock:
    """A document of so many bytes."""
    return DocumentBlock(data=base64.b64encode(bytes(size)).decode(), media_type=media_type, name=name)


def shown(*blocks: ResultBlock) -> Message:
    return Message(role="tool", content=(ToolResultBlock(call_id="a", name="look", content=blocks),))


@pytest.mark.parametrize(
    "message",
    [
        Message.user("See:", picture()),
        shown(TextBlock(text="See:"), picture()),
        Message.user(ImageBlock(url="https://a/b.png")),
    ],
)
def test_a_model_that_is_known_not_to_see_is_sent_no_picture(message: Message) -> None:
    with pytest.raises(
        BadRequest, match=r"openai/gpt-5: the picture in message 2 can't be sent.*no pictures"
    ) as caught:
        check_media([Message.system("Look."), message], GPT, Features(vision=False))
    assert (caught.value.model, caught.value.retryable) == ("openai/gpt-5", False)
    for features in (Features(vision=True), UNKNOWN):
        check_media([Message.system("Look."), message], GPT, features)
    check_media([Message.user("Hello."), shown(TextBlock(text="ok"))], GPT, Features(vision=False))


def test_a_picture_is_as_large_as_the_provider_measures_it() -> None:
    within, over = 5 * MIB * 3 // 4 - 3, 5 * MIB * 3 // 4 + 3
    check_media([Message.user(picture(within))], CLAUDE, UNKNOWN)
    with pytest.raises(BadRequest, match=r"message 1 is too large: 5\.0 MiB.*anthropic takes 5\.0 MiB"):
        check_media([Message.user(picture(over))], CLAUDE, UNKNOWN)
    check_media([Message.user(picture(over))], GPT, UNKNOWN)
    with pytest.raises(BadRequest, match="too large"):
        check_media([Message.user(picture(20 * MIB + 3))], GPT, UNKNOWN)


def test_pictures_of_one_request_are_measured_together() -> None:
    one = picture(17 * MIB)
    check_media([Message.user(one), Message.user("and"), shown(one)], GPT, UNKNOWN)
    with pytest.raises(BadRequest, match="too large together"):
        check_media([Message.user(one), Message.user(one), shown(one)], GPT, UNKNOWN)


@pytest.mark.parametrize("llm", [CLAUDE, GPT, LLM(model="gemini/gemini-2.5-pro")])
def test_a_kind_of_picture_that_nobody_takes_is_named(llm: LLM) -> None:
    with pytest.raises(
        BadRequest, match=r"is 'image/svg\+xml', which can't be sent\. Convert it to one of: .*image/png"
    ):
        check_media([Message.user(picture(media_type="image/svg+xml"))], llm, UNKNOWN)
    with pytest.raises(BadRequest, match="is None"):
        check_media([Message.user(picture(media_type=None))], llm, UNKNOWN)
    heic = [Message.user(picture(media_type="image/heic"))]
    with nullcontext() if llm.provider == "gemini" else pytest.raises(BadRequest, match="image/heic"):
        check_media(heic, llm, UNKNOWN)


def test_a_server_of_ones_own_has_limits_of_its_own() -> None:
    check_media([Message.user(picture(25 * MIB, "image/x-portable-pixmap"))], OWN, UNKNOWN)
    with pytest.raises(BadRequest, match="no pictures"):
        check_media([Message.user(picture())], OWN, Features(vision=False))


ELSEWHERE = DocumentBlock(url="https://example.org/a.pdf")


@pytest.mark.parametrize("message", [Message.user("See:", document(name="plan.pdf")), shown(document(name="plan.pdf"))])
def test_a_model_that_is_known_not_to_take_pdf_is_sent_none_and_it_is_said_what_to_do(message: Message) -> None:
    with pytest.raises(
        BadRequest,
        match=r"openai/gpt-5: the document 'plan\.pdf' in message 2 can't be sent.*no PDF\. Convert it to text or to",
    ):
        check_media([Message.user("Hi."), message], GPT, Features(pdf=False))
    with pytest.raises(BadRequest, match="no PDF"):
        check_media([Message.user(ELSEWHERE)], OWN, Features(pdf=False))
    check_media([message], GPT, Features(vision=True, pdf=True))
    check_media([message, Message.user(ELSEWHERE)], CLAUDE, UNKNOWN)


@pytest.mark.slow
def test_a_document_may_be_as_large_as_the_request() -> None:
    within, over = 32 * MIB * 3 // 4 - 3, 32 * MIB * 3 // 4 + 3
    check_media([Message.user(document(within))], CLAUDE, UNKNOWN)
    with pytest.raises(
        BadRequest, match=r"document in message 1 is too large: 32\.0 MiB.*anthropic takes 32\.0 MiB.*Split"
    ):
        check_media([Message.user(document(over))], CLAUDE, UNKNOWN)
    check_media([Message.user(document(over))], GPT, UNKNOWN)
    with pytest.raises(BadRequest, match=r"takes 66\.7 MiB in a request\. Split"):
        check_media([Message.user(document(50 * MIB + 3))], GPT, UNKNOWN)
    check_media([Message.user(document(50 * MIB + 3))], OWN, UNKNOWN)


def test_documents_and_pictures_are_measured_together() -> None:
    with pytest.raises(BadRequest, match="pictures and documents of this request are too large together"):
        check_media([Message.user(document(21 * MIB)), shown(picture(3 * MIB), picture(3 * MIB))], CLAUDE, UNKNOWN)


def test_a_kind_of_document_that_is_not_taken_is_named() -> None:
    sheet = [Message.user(document(media_type="text/csv"))]
    with pytest.raises(BadRequest, match=r"is 'text/csv', which can't be sent\. Convert it to application/pdf, or put"):
        check_media(sheet, CLAUDE, UNKNOWN)
    with pytest.raises(BadRequest, match="'text/csv'"):
        check_media(sheet, GPT.model_copy(update={"api_mode": "chat"}), UNKNOWN)
    # Its newer interface takes many kinds.
    check_media(sheet, GPT.model_copy(update={"api_mode": "responses"}), UNKNOWN)
    check_media(sheet, OWN, UNKNOWN)


def test_an_address_of_a_document_goes_only_where_somebody_fetches_it() -> None:
    ask = [Message.user(ELSEWHERE)]
    with pytest.raises(BadRequest, match=r"by its address.*read_media.*api_mode='responses'"):
        check_media(ask, GPT, UNKNOWN)
    check_media(ask, GPT, Features(reasoning=True))
    check_media(ask, GPT, Features(mode="responses"))
    check_media(ask, GPT.model_copy(update={"api_mode": "responses"}), UNKNOWN)
    check_media([Message.user(DocumentBlock(url="data:application/pdf;base64,aGk="))], GPT, UNKNOWN)
    for other in (CLAUDE, OWN, LLM(model="gemini/gemini-2.5-pro"), LLM(model="openrouter/a/b")):
        check_media(ask, other, UNKNOWN)


@pytest.mark.parametrize(("block", "what"), [(ImageBlock(), "picture"), (DocumentBlock(), "document")])
def test_what_has_neither_data_nor_an_address_is_refused(block: ResultBlock, what: str) -> None:
    with pytest.raises(BadRequest, match=f"the {what} in message 1 has neither `data` nor `url`"):
        check_media([Message.user(block)], OWN, UNKNOWN)


def test_what_a_model_cannot_see_of_the_past_is_said_in_words() -> None:
    viewed = ToolResultBlock(call_id="a", name="view", content=(TextBlock(text="plan.png"), PICTURE))
    history = [
        Message.user("See:", PICTURE),
        Message.assistant("I see."),
        Message(role="tool", content=(viewed,)),
        Message.user("Go on."),
    ]
    blind = Features(vision=False)
    said = without_unseen(history, blind)
    check_media(said, LLM(model="openai/some-model"), blind)
    assert said[0].text == "See:\n(Here is a picture, which this model can't see.)"
    result = said[2].content[0]
    assert isinstance(result, ToolResultBlock)
    assert result.text == "plan.png\n(Here is a picture, which this model can't see.)"
    assert said[1] is history[1]
    # The same object again: what was written of it is found.
    assert without_unseen(history, blind)[0] is said[0]
    assert without_unseen(history, Features()) is history


PICTURE = ImageBlock(data="eA==", media_type="image/png")
