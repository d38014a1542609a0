from __future__ import annotations

import gc
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from agentcore.llm.caches import IdentityCache, IdentityTupleCache, PrefixCache
from agentcore.messages import Message


def numbered(*numbers: int) -> list[Message]:
    return [Message.user(f"{number}") for number in numbers]


def write(messages: Sequence[Message]) -> bytes:
    return b",".join(message.text.encode() for message in messages)


def test_a_value_is_made_once_as_long_as_it_lives() -> None:
    made: list[str] = []

    def make(message: Message) -> str:
        made.append(message.text)
        return message.text

    kept = IdentityCache(make)
    one, same = numbered(1, 1)
    assert [kept(one), kept(one), kept(same)] == ["1", "1", "1"]
    assert made == ["1", "1"]
    kept.drop(one)
    assert kept(one) == "1"
    assert len(made) == 3
    del one, same
    for number in range(100):
        assert kept(Message.user(f"{number}")) == f"{number}"
    gc.collect()
    assert len(kept) == 0


def test_two_conversations_that_begin_with_the_same_words_do_not_mix() -> None:
    beginnings = PrefixCache(write)
    (system,) = numbered(0)
    one, other = [system, *numbered(1)], [system, *numbered(2)]
    for number in range(3, 6):
        assert bytes(beginnings(one)) == write(one)
        assert bytes(beginnings(other)) == write(other)
        one += numbered(number)
        other += numbered(-number)
    assert len(beginnings) == 2
    del one, other, system
    gc.collect()
    assert len(beginnings) == 0


def test_a_list_that_grows_is_written_once_and_anew_after_a_rewind() -> None:
    written: list[int] = []

    def count(messages: Sequence[Message]) -> bytes:
        written.append(len(messages))
        return write(messages)

    beginnings = PrefixCache(count)
    messages = numbered(1, 2)
    for number in range(3, 8):
        assert bytes(beginnings(messages)) == write(messages)
        messages += numbered(number)
    assert sum(written) == 6
    for other in ([], messages[:2], [*messages[:2], *numbered(5)], messages):
        assert bytes(beginnings(other)) == write(other)


def test_what_is_made_of_several_messages_goes_with_them() -> None:
    kept = IdentityTupleCache()
    one, other = numbered(1, 2)
    made = kept((one, other), lambda: Message.user("12"))
    assert kept((one, other), lambda: Message.user("no")) is made
    assert kept((one,), lambda: Message.user("1")).text == "1"
    assert len(kept) == 1
    del one
    gc.collect()
    assert len(kept) == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=30))
def test_whatever_a_list_becomes_it_is_written_as_it_is(changes: list[tuple[int, int]]) -> None:
    beginnings = PrefixCache(write)
    messages: list[Message] = []
    for number, (kind, amount) in enumerate(changes):
        if kind == 0:
            del messages[amount:]
        elif kind == 1 and amount < len(messages):
            messages[amount] = Message.user(f"changed {number}")
        else:
            messages += [Message.user(f"{number}.{each}") for each in range(amount)]
        assert bytes(beginnings(messages)) == write(messages)
