from __future__ import annotations

import base64

import pytest

from agentcore.errors import BadRequest
from agentcore.llm import LLM
from agentcore.llm.catalog import Features
from agentcore.llm.media import check_media
from agentcore.messages import ImageBlock, Message, TextBlock, ToolResultBlock

MIB = 1024 * 1024
CLAUDE = LLM(model="anthropic/claude-sonnet-4-5")
GPT = LLM(model="openai/gpt-5")
OWN = LLM(model="llava", base_url="http://localhost:11434/v1")
UNKNOWN = Features()


def picture(size: int = 30, media_type: str | None = "image/png") -> ImageBlock:
    """A picture of so many bytes."""
    return ImageBlock(data=base64.b64encode(bytes(size)).decode(), media_type=media_type)


def shown(*blocks: TextBlock | ImageBlock) -> Message:
    return Message(role="tool", content=(ToolResultBlock(call_id="a", name="look", content=blocks),))


@pytest.mark.parametrize("message", [Message.user("See:", picture()), shown(TextBlock(text="See:"), picture())])
def test_a_model_that_is_known_not_to_see_is_sent_no_picture(message: Message) -> None:
    with pytest.raises(
        BadRequest, match=r"openai/gpt-5: the picture in message 2 can't be sent.*no pictures"
    ) as caught:
        check_media([Message.system("Look."), message], GPT, Features(vision=False))
    assert (caught.value.model, caught.value.retryable) == ("openai/gpt-5", False)


@pytest.mark.parametrize("features", [Features(vision=True), UNKNOWN])
def test_a_model_that_sees_or_may_see_is_sent_pictures(features: Features) -> None:
    check_media([Message.user(picture()), shown(picture()), Message.user(ImageBlock(url="https://a/b"))], GPT, features)


def test_an_address_is_a_picture_too() -> None:
    with pytest.raises(BadRequest):
        check_media([Message.user(ImageBlock(url="https://a/b.png"))], GPT, Features(vision=False))


def test_words_go_to_any_model() -> None:
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


def test_a_kind_that_only_some_take_passes_with_them() -> None:
    heic = [Message.user(picture(media_type="image/heic"))]
    check_media(heic, LLM(model="gemini/gemini-2.5-pro"), UNKNOWN)
    with pytest.raises(BadRequest, match="image/heic"):
        check_media(heic, GPT, UNKNOWN)


def test_a_picture_without_a_kind_is_refused() -> None:
    with pytest.raises(BadRequest, match="is None"):
        check_media([Message.user(picture(media_type=None))], CLAUDE, UNKNOWN)


def test_a_server_of_ones_own_has_limits_of_its_own() -> None:
    check_media([Message.user(picture(25 * MIB, "image/x-portable-pixmap"))], OWN, UNKNOWN)
    with pytest.raises(BadRequest, match="no pictures"):
        check_media([Message.user(picture())], OWN, Features(vision=False))
