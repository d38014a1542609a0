from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore._text import replace_lone_surrogates as clean
from agentcore.llm.formats.decoding import ThinkTags, split_thinking

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))


@given(ANY_TEXT, ANY_TEXT)
def test_whatever_comes_can_be_stored_and_whole_text_stays_as_it_is(key: str, text: str) -> None:
    assert clean("\ud83d\ude00 a\ud83db\ude00") == "\U0001f600 a\ufffdb\ufffd"
    stored = clean(text)
    assert stored.encode().decode() == stored
    assert clean(stored) is stored
    json.dumps(clean({key: [text, {"n": 1, key: None, "b": True}]}), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("text", "thought", "said"),
    [
        ("Hi.", "", "Hi."),
        ("", "", ""),
        ("<think>hm</think>Hi.", "hm", "Hi."),
        ("\n <think>hm</think>\nHi.", "hm", "\nHi."),
        ("<think>cut sho", "cut sho", ""),
        ("<think>a < b</think>c </think> d", "a < b", "c </think> d"),
        ("Write <think> first.", "", "Write <think> first."),
        ("<thinking>", "", "<thinking>"),
        ("<thi", "", "<thi"),
        ("<think>hm</thin", "hm</thin", ""),
    ],
)
def test_only_a_mark_in_front_of_all_words_begins_thinking(text: str, thought: str, said: str) -> None:
    assert split_thinking(text) == (thought, said)


@given(st.text("<think>/ a", max_size=40), st.lists(st.integers(0, 40)))
def test_where_the_words_are_cut_changes_nothing(text: str, cuts: list[int]) -> None:
    at = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    tags = ThinkTags()
    pieces = [piece for begin, end in pairwise(at) for piece in tags.feed(text[begin:end])]
    pieces += tags.finish()
    thought = "".join(words for is_thought, words in pieces if is_thought)
    said = "".join(words for is_thought, words in pieces if not is_thought)
    assert (thought, said) == split_thinking(text)
