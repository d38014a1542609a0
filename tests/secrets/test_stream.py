from __future__ import annotations

import base64
import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentcore.secrets import Masker, SecretRegistry

values = st.lists(st.text("ab", min_size=6, max_size=9), min_size=1, max_size=4)
pieces = st.lists(st.text("abc", max_size=12), max_size=12)


def named(*values: str) -> Masker:
    return Masker((f"S{number}", value) for number, value in enumerate(values))


@given(values=values, pieces=pieces)
@example(values=["aaaaaa"], pieces=["a"] * 30)
@example(values=["ababab", "babababab"], pieces=["aba", "bab", "ab", "a", "b", "c", "ababa", "babc"])
def test_pieces_put_together_are_what_masking_the_whole_gives(values: list[str], pieces: list[str]) -> None:
    masker = named(*values)
    stream = masker.stream()
    given_out = [stream.feed(piece) for piece in pieces]
    assert "".join(given_out) + stream.finish() == masker.mask_text("".join(pieces))


@given(
    value=st.text(st.characters(codec="utf-8"), min_size=6, max_size=12).filter(lambda value: value.strip()),
    around=st.text(max_size=6),
    cuts=st.lists(st.integers(0, 80), max_size=8),
)
def test_a_program_s_output_may_be_cut_inside_a_character(value: str, around: str, cuts: list[int]) -> None:
    masker = Masker([("S", value)])
    whole = (around.encode("utf-8", "replace") + value.encode() + b"\xff") * 2
    stream = masker.byte_stream()
    edges = [0, *sorted(cuts), len(whole)]
    given_out = [stream.feed(whole[start:end]) for start, end in itertools.pairwise(edges)]
    assert b"".join(given_out) + stream.finish() == masker.mask_bytes(whole[: edges[-1]])


def test_only_what_may_become_a_secret_is_held_back() -> None:
    stream = Masker([("T", "zebra-stripes")]).stream()
    assert stream.feed("in the zoo a zeb") == "in the zoo a "
    assert stream.feed("u ran") == "zebu ran"
    assert stream.feed(", a zebra-stri") == ", a "
    assert stream.feed("pes") == "<secret:T>"
    assert stream.feed(" shirt") == " shirt"
    assert stream.feed(" zebra-") == " "
    assert stream.finish() == "zebra-"


def test_an_encoded_secret_that_is_cut_is_found() -> None:
    written = base64.b64encode(b"user:zebra-stripes").decode()
    stream = Masker([("T", "zebra-stripes")]).stream()
    given_out = "".join(stream.feed(character) for character in f"Basic {written} ok") + stream.finish()
    assert given_out == Masker([("T", "zebra-stripes")]).mask_text(f"Basic {written} ok")
    assert "<secret:T>" in given_out


def test_a_row_of_secrets_without_an_end_is_not_kept() -> None:
    stream = Masker([("T", "000000")]).stream()
    given_out = [stream.feed("0" * 100) for _ in range(1_000)]
    assert given_out[0] == "<secret:T>"
    assert not any(given_out[1:])
    assert stream.feed("0!") == "!"
    assert stream.finish() == ""


def test_without_secrets_pieces_pass_as_they_are() -> None:
    stream = Masker().stream()
    piece = "anything"
    assert stream.feed(piece) is piece
    assert stream.finish() == ""


@pytest.mark.parametrize(
    ("text", "unfinished"),
    [
        ("in the zoo!", ""),
        ("a zeb", "zeb"),
        ("a zebra-stripes", ""),
        ("two zebra-stripes of zebra-str", "zebra-str"),
        ("the whole of one with the beginning of another: old-key-", "old-key-"),
        ("an old-key-", "old-key-"),
        ("an old-key-new", "old-key-new"),
    ],
)
def test_a_text_can_be_cut_in_front_of_what_may_go_on_as_a_secret(text: str, unfinished: str) -> None:
    registry = SecretRegistry({"T": "zebra-stripes", "OLD": "old-key-", "NEW": "key-new-key"})
    assert registry.unfinished(text) == len(unfinished)
    assert text.endswith(unfinished)


def test_a_row_of_secrets_without_an_end_can_be_cut() -> None:
    assert SecretRegistry({"T": "000000"}).unfinished("0" * 100_000) < 100
