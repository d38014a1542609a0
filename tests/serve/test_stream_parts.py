"""What streams are made of: encoded events, recent deltas, and waking in slices."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import anyio
import pytest

from agentcore.conversation import StreamDelta
from agentcore.conversation.guards import LoopAffinity
from agentcore.conversation.watch import HeadSignal
from agentcore.wire import DeltaFrame, Gap
from agentcore_serve.followed import GrowthSignal
from agentcore_serve.streams import StreamHub
from agentcore_serve.streams.deltas import RecentDeltas, join_pieces
from agentcore_serve.streams.encode import SOCKET, EncodedEvents
from agentcore_serve.streams.fanout import FanOut
from agentcore_serve.streams.watcher import Watcher
from watching import GrowingLog


def text(offset: int, text: str, **more: object) -> StreamDelta:
    return StreamDelta.model_validate({"type": "text", "reply_id": "r", "offset": offset, "text": text, **more})


async def test_an_event_is_encoded_once_and_the_oldest_goes_when_there_is_no_room() -> None:
    log = GrowingLog()
    log.append("a" * 1000, "b" * 1000, "c" * 1000)
    first, second, third = log.state.events
    encoded = EncodedEvents(room=3000)
    frame = encoded.get(1, first, 3)
    assert encoded.get(1, first, 3) is frame
    assert encoded.get(2, first, 3) is not frame
    encoded.get(1, first, 3)  # used last of the two
    encoded.get(1, second, 3)
    assert encoded.size <= 3000
    assert encoded.get(1, first, 3) is frame
    encoded.get(1, second, 3)
    encoded.get(1, third, 3)
    assert encoded.get(1, first, 3) is not frame
    assert encoded.size <= 3000


def test_pieces_that_continue_each_other_are_joined() -> None:
    begin = StreamDelta(type="tool_call", reply_id="r", tool_name="look")
    pieces = [
        *(text(0, "Hel"), text(3, "lo"), text(5, "!")),
        begin,
        StreamDelta(type="tool_call", reply_id="r", text="{"),
        StreamDelta(type="tool_call", reply_id="r", offset=1, text="}"),
        begin.model_copy(update={"offset": 2}),
        StreamDelta(type="reset", reply_id="r"),
        StreamDelta(type="reset", reply_id="r"),
        text(0, "a", attempt=2),
        text(5, "b", attempt=2),
    ]
    assert [(piece.type, piece.offset, piece.text) for piece in join_pieces(pieces)] == [
        ("text", 0, "Hello!"),
        ("tool_call", 0, "{}"),
        ("tool_call", 2, ""),
        ("reset", 0, ""),
        ("reset", 0, ""),
        ("text", 0, "a"),
        ("text", 5, "b"),
    ]


def test_who_is_behind_the_past_of_deltas_gets_a_gap() -> None:
    deltas = RecentDeltas(room=1000)
    deltas.add([text(0, "x" * 600)])
    behind = deltas.end
    deltas.add([text(600, "y" * 600)])
    assert [frame.type for frame in deltas.since(behind)] == ["delta"]
    gap, rest = deltas.since(0)
    assert gap == Gap(lost=1)
    assert isinstance(rest, DeltaFrame)
    assert rest.items[0].text[0] == "y"
    assert deltas.since(deltas.end) == []
    deltas.clear()
    assert deltas.since(behind) == [Gap(lost=1)]


class Slow:
    """A watcher that takes its time once it was woken."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.news = anyio.Event()
        self.done = False

    def wake(self) -> None:
        self.news.set()

    async def run(self) -> None:
        await self.news.wait()
        began = perf_counter()
        while perf_counter() - began < self._seconds:
            pass
        self.done = True


async def test_a_fan_out_lets_others_run_between_its_slices() -> None:
    fan_out = FanOut(slice_seconds=0.005)
    turns = 0
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            watchers = [Slow(0.001) for _ in range(200)]
            for watcher in watchers:
                tasks.start_soon(watcher.run)
            await anyio.wait_all_tasks_blocked()

            async def count() -> None:
                nonlocal turns
                while True:
                    await anyio.lowlevel.checkpoint()
                    turns += 1

            tasks.start_soon(count)
            took = await fan_out.wake(watchers)
            assert took >= 0.15
            assert fan_out.size <= 16
            assert turns >= 10
            while not all(watcher.done for watcher in watchers):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize("watchers", [3, 40])
async def test_a_few_watchers_are_woken_at_once_and_more_than_a_slice_by_the_task(watchers: int) -> None:
    log = GrowingLog()
    async with StreamHub() as hub, anyio.create_task_group() as tasks:
        streams = hub.of(log)
        sent: list[bytes] = []
        followed: list[Watcher] = []

        async def follow() -> None:
            async def keep(data: bytes) -> None:
                await anyio.lowlevel.checkpoint()
                sent.append(data)

            with streams.watch(0, SOCKET, deltas=False) as watcher:
                followed.append(watcher)
                await watcher.run(keep)

        for _ in range(watchers):
            tasks.start_soon(follow)
        await anyio.wait_all_tasks_blocked()

        for number in range(3):
            sent.clear()
            log.append(f"message {number}")
            await anyio.wait_all_tasks_blocked()
            assert len(sent) == watchers

        log.close()
        await anyio.wait_all_tasks_blocked()
        assert [watcher.said_bye for watcher in followed] == [True] * watchers
        assert len(hub) == 0


@pytest.mark.parametrize("make", [lambda: HeadSignal(LoopAffinity(None)), GrowthSignal], ids=["head", "growth"])
async def test_a_listener_is_called_at_each_ring_until_it_ends(make: Callable[[], HeadSignal | GrowthSignal]) -> None:
    signal = make()
    heard: list[int] = []
    end = signal.listen(lambda: heard.append(1))

    signal.notify()
    signal.close()
    end()
    signal.notify()

    assert len(heard) == 2
