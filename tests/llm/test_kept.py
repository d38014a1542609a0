from __future__ import annotations

import gc
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from agentcore.llm.caches import IdentityCache, PrefixCache
from agentcore.messages import Message


def numbered(*numbers: int) -> list[Message]:
    return [Message.user(f"{number}") for number in numbers]


class Writer:
    """Writes messages, and counts them."""

    def __init__(self) -> None:
        self.written = 0

    def __call__(self, messages: Sequence[Message]) -> bytes:
        self.written += len(messages)
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
    gc.collect()
    assert len(kept) == 0


def test_many_values_that_come_and_go_leave_nothing() -> None:
    kept = IdentityCache[Message, str](lambda message: message.text)
    for number in range(1000):
        assert kept(Message.user(f"{number}")) == f"{number}"
    gc.collect()
    assert len(kept) == 0


def test_a_list_that_grows_is_written_once() -> None:
    write = Writer()
    beginnings = PrefixCache(write)
    messages = numbered(1, 2)
    for number in range(3, 8):
        assert bytes(beginnings(messages)) == b",".join(message.text.encode() for message in messages)
        messages += numbered(number)
    assert write.written == 6
    assert bytes(beginnings([])) == b""


def test_after_a_rewind_it_is_written_anew() -> None:
    write = Writer()
    beginnings = PrefixCache(write)
    messages = numbered(1, 2, 3, 4)
    beginnings(messages)
    assert bytes(beginnings(messages[:2])) == b"1,2"
    other = [*messages[:2], *numbered(5)]
    assert bytes(beginnings(other)) == b"1,2,5"
    assert bytes(beginnings(messages)) == b"1,2,3,4"


def test_two_conversations_that_begin_with_the_same_words_do_not_mix() -> None:
    beginnings = PrefixCache(Writer())
    (system,) = numbered(0)
    one, other = [system, *numbered(1)], [system, *numbered(2)]
    for number in range(3, 6):
        assert bytes(beginnings(one)) == b",".join(message.text.encode() for message in one)
        assert bytes(beginnings(other)) == b",".join(message.text.encode() for message in other)
        one += numbered(number)
        other += numbered(-number)
    assert len(beginnings) == 2
    del one, other, system
    gc.collect()
    assert len(beginnings) == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=30))
def test_whatever_a_list_becomes_it_is_written_as_it_is(changes: list[tuple[int, int]]) -> None:
    beginnings = PrefixCache(Writer())
    messages: list[Message] = []
    for number, (kind, amount) in enumerate(changes):
        if kind == 0:
            del messages[amount:]
        elif kind == 1 and amount < len(messages):
            messages[amount] = Message.user(f"changed {number}")
        else:
            messages += [Message.user(f"{number}.{each}") for each in range(amount)]
        assert bytes(beginnings(messages)) == b",".join(message.text.encode() for message in messages)
