from __future__ import annotations

import base64
import copy
import json
import pickle
import re
import shlex
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, JsonValue

from agentcore.errors import SecretError
from agentcore.events import ActionApproved, ActionEvent, MessageEvent, ObservationEvent, parse_event
from agentcore.messages import (
    DocumentBlock,
    ImageBlock,
    Message,
    ProviderBlock,
    ReasoningBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from agentcore.secrets import Masker

KEY = "sk-Zx81/q+ä 'n\"\\7&<>\n%end"
"""A value that every encoding writes in another way."""

values = st.text(st.characters(codec="utf-8"), min_size=6, max_size=20).filter(lambda value: value.strip())
surroundings = st.text(st.characters(codec="utf-8", exclude_characters="<"), max_size=12)
# Few letters, so that values overlap each other, themselves and the ends of pieces.
close_values = st.lists(st.text("ab", min_size=6, max_size=9), min_size=1, max_size=4)
close_texts = st.text("abc", max_size=60)


def named(*values: str) -> Masker:
    return Masker((f"S{number}", value) for number, value in enumerate(values))


def test_a_value_is_replaced_by_its_name() -> None:
    masker = Masker([("TOKEN", "hunter2!"), ("OTHER", "correct horse")])
    assert masker.mask_text("login hunter2!, then correct horse.") == "login <secret:TOKEN>, then <secret:OTHER>."


@pytest.mark.parametrize(
    "written",
    [
        json.dumps(KEY)[1:-1],
        json.dumps(KEY, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(KEY))[3:-3],
        json.dumps(KEY).replace("u00e4", "u00E4")[1:-1],
        json.dumps(KEY).replace("/", "\\/")[1:-1],
        json.dumps(KEY, ensure_ascii=False)[1:-1]
        .replace("&", "\\u0026")
        .replace("<", "\\u003c")
        .replace(">", "\\u003e"),
        quote(KEY),
        quote(KEY, safe=""),
        quote_plus(KEY),
        re.sub("%..", lambda match: match[0].lower(), quote(KEY)),
        re.sub("%..", lambda match: match[0].lower(), quote_plus(KEY)),
        quote(KEY, safe="!'()*"),
        base64.b64encode(KEY.encode()).decode(),
        base64.b64encode(KEY.encode()).decode().rstrip("="),
        base64.b64encode((KEY + "\n").encode()).decode(),
        base64.urlsafe_b64encode(KEY.encode()).decode(),
        KEY.encode().hex(),
        KEY.encode().hex().upper(),
        KEY.replace("\n", "\r\n"),
        repr(KEY)[1:-1],
        ascii(KEY)[1:-1],
        str(KEY.encode())[2:-1],
        KEY.replace("'", "'\\''"),
        shlex.quote(KEY)[1:-1],
        repr(repr(KEY))[3:-3],
        json.dumps(repr(KEY))[2:-2],
    ],
)
def test_every_written_form_is_replaced_as_a_whole(written: str) -> None:
    masker = Masker([("KEY", KEY)])
    assert masker.mask_text(f"a {written} b") == "a <secret:KEY> b"
    assert masker.mask_bytes(f"a {written} b".encode()) == b"a <secret:KEY> b"


@given(value=values, before=st.binary(max_size=7), after=st.binary(max_size=7), urlsafe=st.booleans())
def test_base64_of_something_longer_is_masked_at_every_alignment(
    value: str, before: bytes, after: bytes, urlsafe: bool
) -> None:
    encode = base64.urlsafe_b64encode if urlsafe else base64.b64encode
    data = value.encode()
    text = encode(before + data + after).decode()
    first, last = -(-8 * len(before) // 6), 8 * (len(before) + len(data)) // 6
    masked = Masker([("S", value)]).mask_text(text)
    # All characters that depend on the value alone are gone; the two that also hold bits of its neighbours may stay.
    begin, mask, end = masked.partition("<secret:S>")
    assert mask
    assert len(begin) <= first
    assert len(end) <= len(text) - last


@given(value=values, before=surroundings, after=surroundings)
def test_json_and_addresses_do_not_show_a_value(value: str, before: str, after: str) -> None:
    masker = Masker([("S", value)])
    whole = before + value + after
    for ascii_only in (True, False):
        written = json.dumps([whole], ensure_ascii=ascii_only)
        left = masker.mask_text(written).split("<secret:S>")
        assert len(left) > 1
        assert not any(json.dumps(value, ensure_ascii=ascii_only)[1:-1] in piece for piece in left)
    for quoted, bare in ((quote(whole), quote(value)), (quote_plus(whole), quote_plus(value))):
        left = masker.mask_text(quoted).split("<secret:S>")
        assert len(left) > 1
        assert not any(bare in piece for piece in left)


@given(value=values, before=surroundings, after=surroundings)
def test_python_does_not_show_a_value(value: str, before: str, after: str) -> None:
    masker = Masker([("S", value)])
    for written in (repr(value), repr({"a": before + value + after}), str(KeyError(value + after)), ascii([value])):
        assert "<secret:S>" in masker.mask_text(written)
        stream = masker.stream()
        assert "".join(map(stream.feed, written)) + stream.finish() == masker.mask_text(written)


def test_the_longest_value_names_the_mask_where_several_begin() -> None:
    masker = Masker([("SHORT", "abcdef"), ("LONG", "abcdef-ghi")])
    assert masker.mask_text("abcdef-ghi abcdef-gh") == "<secret:LONG> <secret:SHORT>-gh"


def test_no_end_of_a_value_stays_when_two_overlap() -> None:
    masker = Masker([("A", "one-two-three"), ("B", "three-four-five")])
    assert masker.mask_text("[one-two-three-four-five]") == "[<secret:A>]"
    assert masker.mask_text("[one-two-threethree-four-five]") == "[<secret:A><secret:B>]"


def test_a_value_in_a_row_of_itself_is_one_stretch() -> None:
    assert named("aaaaaa").mask_text("x" + "a" * 50_000 + "x") == "x<secret:S0>x"


@given(values=close_values, text=close_texts)
@example(values=["ababab", "bababa"], text="abababababab")
def test_masking_agrees_with_looking_at_every_place(values: list[str], text: str) -> None:
    assert named(*values).mask_text(text) == looked_at_every_place(values, text)


def looked_at_every_place(values: list[str], text: str) -> str:
    result, at, covered = "", 0, 0
    while at < len(text):
        here = [value for value in values if text.startswith(value, at)]
        if here and at >= covered:
            result += f"<secret:S{values.index(max(here, key=len))}>"
        covered = max([covered, *(at + len(value) for value in here)])
        if at >= covered:
            result += text[at]
        at += 1
    return result


@pytest.mark.parametrize("others", [20, pytest.param(60, marks=pytest.mark.slow)])
@given(values=close_values, text=close_texts)
def test_the_number_of_other_values_makes_no_difference(others: int, values: list[str], text: str) -> None:
    few = [(f"S{number}", value) for number, value in enumerate(values)]
    many = [*few, *((f"OTHER{number}", f"other value {number}") for number in range(others))]
    assert Masker(few).mask_text(text) == Masker(many).mask_text(text)


@given(values=close_values, text=close_texts)
def test_bytes_are_masked_like_the_text_they_hold(values: list[str], text: str) -> None:
    masker = named(*values, "ä secret of ünïcode")
    assert masker.mask_bytes(text.encode()).decode() == masker.mask_text(text)
    assert masker.mask_bytes(b"\xff\x00 \xc3\xa4 secret of \xc3\xbcn\xc3\xafcode") == b"\xff\x00 <secret:S%d>" % len(
        values
    )


def test_what_holds_no_secret_comes_back_as_the_same_object() -> None:
    event = a_full_action("nothing to hide")
    arguments: dict[str, JsonValue] = {"a": ["b", {"c": None}], "d": 1.5}
    text = "nothing to hide"
    for masker in (Masker(), named("something"), named(*(f"something {number}" for number in range(200)))):
        assert masker.mask_text(text) is text
        assert masker.mask_json(arguments) is arguments
        assert masker.mask_event(event) is event


def test_masking_twice_is_masking_once() -> None:
    masker = Masker([("A", "secret"), ("B", "code:A"), ("C", "plain-value")])
    once = masker.mask_text("a secret code:A in plain-value, <secret:C> said")
    assert once == "a <secret:A> <secret:B> in <secret:C>, <secret:C> said"
    assert masker.mask_text(once) is once


def test_keys_of_json_are_masked_and_none_gets_lost() -> None:
    masker = Masker([("T", "tell-nobody")])
    encoded = base64.b64encode(b"tell-nobody").decode()
    value: dict[str, Any] = {"tell-nobody": 1, encoded: [2, {"deep": "tell-nobody!"}], "n": None, "b": True}
    assert masker.mask_json(value) == {
        "<secret:T>": 1,
        "<secret:T>'": [2, {"deep": "<secret:T>!"}],
        "n": None,
        "b": True,
    }


SECRET = "tell-nobody"
BASE64 = base64.b64encode(b"...tell-nobody...").decode()


def a_full_action(words: str) -> ActionEvent:
    return ActionEvent(
        reply_id="reply_1",
        tool_name="terminal",
        call_id="call_1",
        arguments={"command": f"echo {words}", "env": {words: [words]}, "timeout": 30},
        malformed=words,
        before=(
            TextBlock(text=words),
            ImageBlock(url=f"https://example.org/?key={words}"),
            DocumentBlock(url=f"https://example.org/?key={words}", name=f"{words}.pdf"),
            ToolCallBlock(id="t", name="n", arguments=words),
            ToolResultBlock(call_id="t", name="n", content=(TextBlock(text=words),)),
            ThinkingBlock(text=words),
            ReasoningBlock(id="r", summary=("first", words)),
        ),
    )


def test_every_string_of_an_event_is_masked_and_nothing_else_changes() -> None:
    event = a_full_action(SECRET)
    masked = Masker([("T", SECRET)]).mask_event(event)
    assert SECRET not in masked.model_dump_json()
    assert masked == a_full_action("<secret:T>").model_copy(update={"id": event.id, "timestamp": event.timestamp})
    assert parse_event(masked.model_dump_json()) == masked


def test_ids_kinds_media_and_what_is_a_provider_s_own_are_left_alone() -> None:
    event = MessageEvent(
        id=SECRET,
        cause=SECRET,
        reply_id=SECRET,
        message=Message.assistant(
            ImageBlock(data=BASE64, media_type="image/png"),
            ImageBlock(url=f"data:image/png;base64,{BASE64}"),
            DocumentBlock(data=BASE64, name="plan.pdf"),
            DocumentBlock(url=f"data:application/pdf;base64,{BASE64}"),
            ProviderBlock(provider="p", data={"text": SECRET}),
            RedactedThinkingBlock(data=SECRET),
            ThinkingBlock(text="signed, and clean", signature=SECRET),
            ReasoningBlock(id=SECRET, summary=("clean",), encrypted_content=SECRET),
        ),
    )
    assert Masker([("T", SECRET)]).mask_event(event) is event


def test_an_address_that_only_looks_like_media_is_masked() -> None:
    block = ImageBlock(url=f"data:image/png;base64,{SECRET}?{SECRET}")
    assert Masker([("T", SECRET)]).mask_model(block).url == "data:image/png;base64,<secret:T>?<secret:T>"


def test_a_signed_block_that_holds_a_secret_is_dropped_whole() -> None:
    spoiled = ThinkingBlock(text=f"the key is {SECRET}", signature="sig")
    clean = ThinkingBlock(text="no key here", signature="sig")
    sealed = ReasoningBlock(id="r1", summary=("a", SECRET), encrypted_content="gAAAA")
    open_item = ReasoningBlock(id="r2", summary=("a", SECRET))
    event = MessageEvent(message=Message.assistant(spoiled, clean, sealed, open_item, "words"))
    masked = Masker([("T", SECRET)]).mask_event(event)
    assert masked.message.content == (
        clean,
        ReasoningBlock(id="r2", summary=("a", "<secret:T>")),
        TextBlock(text="words"),
    )


def test_a_signed_block_by_itself_loses_its_signature_with_the_secret() -> None:
    masker = Masker([("T", SECRET)])
    assert masker.mask_model(ThinkingBlock(text=SECRET, signature="sig")) == ThinkingBlock(text="<secret:T>")
    sealed = ReasoningBlock(id="r", summary=(SECRET,), encrypted_content="gAAAA")
    assert masker.mask_model(sealed) == ReasoningBlock(id="r", summary=("<secret:T>",))


def test_fields_of_a_newer_version_are_masked_too() -> None:
    event = MessageEvent.model_validate(
        {
            "message": {"role": "user", "content": [{"type": "hologram", "says": SECRET}], SECRET: "x"},
            "mood": {"words": [SECRET, 1]},
        }
    )
    masked = Masker([("T", SECRET)]).mask_event(event)
    assert SECRET not in masked.model_dump_json()
    assert masked.model_extra == {"mood": {"words": ["<secret:T>", 1]}}
    assert masked.message.model_extra == {"<secret:T>": "x"}
    assert SECRET in event.model_dump_json()


def test_a_model_of_the_program_s_own_is_masked() -> None:
    class Finding(BaseModel):
        title: str
        seen: set[str]
        tags: dict[str, str] = {}
        score: float = 0.5

    finding = Finding(title=f"found {SECRET}", seen={SECRET, "x"}, tags={SECRET: SECRET})
    assert Masker([("T", SECRET)]).mask_model(finding) == Finding(
        title="found <secret:T>", seen={"<secret:T>", "x"}, tags={"<secret:T>": "<secret:T>"}
    )


def test_arguments_say_where_a_name_does_not_stand_for_the_value_alone() -> None:
    masker = Masker([("T", SECRET), ("U", "nobody-else")])
    arguments: dict[str, JsonValue] = {"plain": f"-u {SECRET}", "encoded": BASE64, "both": "tell-nobody-else"}
    action = ActionEvent(reply_id="r", tool_name="t", call_id="c", arguments=arguments)
    approval = ActionApproved(cause=action.id, arguments=arguments)
    answer = ObservationEvent(tool_name="t", call_id="c", content=(TextBlock(text=BASE64),))
    for masked in (masker.mask_event(action).arguments, masker.mask_event(approval).arguments):
        assert masked is not None
        assert masked["plain"] == "-u <secret:T>"
        assert "<secret:T:encoded>" in str(masked["encoded"])
        assert masked["both"] == "<secret:T:encoded>"
    assert "<secret:T>" in masker.mask_event(answer).text


def test_the_first_of_two_names_with_one_value_names_the_mask() -> None:
    assert Masker([("A", "the same"), ("B", "the same")]).mask_text("the same") == "<secret:A>"


@pytest.mark.parametrize("value", ["", "short", "      ", "\n\t \n\t ", "lone \ud800"])
def test_a_value_that_can_t_be_masked_is_refused_without_being_told(value: str) -> None:
    with pytest.raises(SecretError, match="The value of secret 'T' can't be used") as caught:
        Masker([("T", value)])
    assert len(value) == 0 or not value.strip() or value not in str(caught.value)


def test_blanks_around_a_value_need_not_be_there() -> None:
    masker = Masker([("T", "from-a-file\n"), ("SHORT", "  tiny  ")])
    assert masker.mask_text("from-a-file, tiny") == "<secret:T>, tiny"


def test_a_masker_shows_and_gives_away_no_value() -> None:
    masker = Masker([("T", SECRET)])
    assert repr(masker) == str(masker) == "Masker(names=('T',))"
    for give in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="can't be copied or pickled"):
            give(masker)


QUOTED = 'it\'s a "pass\\wörd"/&x'


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize(
    "written",
    [
        json.dumps(QUOTED, ensure_ascii=False),
        json.dumps(json.dumps(QUOTED)),
        json.dumps(json.dumps(QUOTED, ensure_ascii=False)),
        repr(QUOTED),
        repr(repr(QUOTED)),
        repr(QUOTED.encode()),
        quote(QUOTED),
    ],
)
def test_what_is_masked_in_an_argument_is_masked_in_the_json_of_the_arguments(written: str, ascii_only: bool) -> None:
    masker = Masker([("S", QUOTED)])
    assert "<secret:S>" in masker.mask_text(written)
    masked = masker.mask_text(json.dumps({"a": written}, ensure_ascii=ascii_only))
    assert "<secret:S>" in masked
    assert "pass" not in masked
