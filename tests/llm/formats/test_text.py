from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from agentcore._text import replace_lone_surrogates as clean

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))


def test_halves_of_a_character_are_joined_and_lone_ones_replaced() -> None:
    assert clean("\ud83d\ude00 ok") == "\U0001f600 ok"
    assert clean("a\ud83db") == "a\ufffdb"
    assert clean("a\ude00") == "a\ufffd"


@given(st.text())
def test_whole_text_stays_as_it_is(text: str) -> None:
    assert clean(text) is text


@given(ANY_TEXT)
def test_whatever_comes_can_be_stored(text: str) -> None:
    assert clean(text).encode().decode() == clean(text)


@given(ANY_TEXT, ANY_TEXT)
def test_json_is_cleaned_all_the_way_down(key: str, text: str) -> None:
    json.dumps(clean({key: [text, {"n": 1, key: None, "b": True}]}), ensure_ascii=False).encode()
