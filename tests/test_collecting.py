"""Loading without the garbage collector."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from agentcore._collecting import without_collections


@pytest.fixture(autouse=True)
def _collector_as_before() -> Iterator[None]:
    before = gc.isenabled()
    yield
    (gc.enable if before else gc.disable)()


@without_collections
def collects() -> bool:
    return gc.isenabled()


def test_nothing_is_collected_while_it_runs_and_all_is_as_before_afterwards() -> None:
    gc.enable()
    assert not collects()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    assert not collects()
    assert not gc.isenabled()


def test_an_error_turns_it_on_again() -> None:
    @without_collections
    def fails() -> None:
        raise LookupError

    gc.enable()
    with pytest.raises(LookupError):
        fails()
    assert gc.isenabled()


def test_of_several_threads_the_last_one_turns_it_on_again() -> None:
    begun, go_on = threading.Barrier(3), threading.Event()

    @without_collections
    def waits() -> None:
        begun.wait(20)
        go_on.wait(20)

    gc.enable()
    threads = [threading.Thread(target=waits) for _ in range(2)]
    for thread in threads:
        thread.start()
    begun.wait(20)
    assert not collects()
    assert not gc.isenabled()
    go_on.set()
    for thread in threads:
        thread.join(20)
    assert gc.isenabled()
