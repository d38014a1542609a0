"""A helper that is none: a command may have replaced it. Whatever it says, nothing happens outside but that the box is lost."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.errors import PathError, WorkspaceError, WorkspaceLost
from agentcore.testing.workspace_process_contract import refused
from agentcore_sandbox.frames import MAX_PAYLOAD, WINDOW, FrameKind, FrameReader, encode
from agentcore_sandbox.workspace import BoxWorkspace
from boxes_fake_helper import HELLO, FakeBox, FakeHelper, Script, answering, be_well, saying

K = FrameKind

# What is not believed. Each of these ends the stream, and the next call has a new one.

PROCESS = {"id": 0, "pid": 12}
ENTRY = {"name": "a", "kind": "file", "size": 1, "modified": 1.5}


async def ask_for_stat(workspace: BoxWorkspace) -> object:
    return await workspace.stat("a")


async def ask_for_list(workspace: BoxWorkspace) -> object:
    return await workspace.list()


async def ask_to_read(workspace: BoxWorkspace) -> object:
    return await workspace.read("a", max_bytes=10)


async def ask_for_private(workspace: BoxWorkspace) -> object:
    return await workspace.private_folder("a")


async def ask_to_run(workspace: BoxWorkspace) -> object:
    return await workspace.run("true")


@pytest.mark.parametrize(
    ("ask", "script"),
    [
        pytest.param(ask_for_stat, script, id=name)
        for name, script in {
            "an unknown channel": saying(K.DATA, b"x", channel=99),
            "a channel of its own": saying(K.DATA, b"x", channel=2),
            "a ping": saying(K.PING, channel=0),
            "a hello again": saying(K.HELLO, HELLO, channel=0),
            "a call": saying(K.CALL, {"id": 1}),
            "no JSON": saying(K.RESULT, b"{"),
            "no UTF-8": saying(K.RESULT, b'{"a": "\xff"}'),
            "no object": saying(K.RESULT, b"[1]"),
            "deep JSON": saying(K.RESULT, b"[" * 60_000),
            "a number of a thousand digits": saying(K.RESULT, b'{"entry": ' + b"9" * 60_000 + b"}"),
            "not a number": saying(K.RESULT, b'{"entry": NaN}'),
            "an entry that is none": saying(K.RESULT, {"entry": [1]}),
            "a negative size": saying(K.RESULT, {"entry": {**ENTRY, "size": -1}}),
            "a size that is none": saying(K.RESULT, {"entry": {**ENTRY, "size": True}}),
            "a kind that is none": saying(K.RESULT, {"entry": {**ENTRY, "kind": "door"}}),
            "a name that is none": saying(K.RESULT, {"entry": {**ENTRY, "name": "\udcff"}}),
            "an error that is none": saying(K.RESULT, {"error": "bad"}),
            "an error of no kind": saying(K.RESULT, {"error": {"kind": "odd", "message": "x"}}),
            "credit for nothing": saying(K.CREDIT, b"\0\0\0\0\1"),
            "credit of the wrong length": saying(K.CREDIT, b"\0"),
            "credit of its own stream": saying(K.CREDIT, b"\1\0\0\0\1"),
            "the end of stream 9": saying(K.EOF, b"\t"),
            "an answer without a number": saying(K.ANSWER, {"id": -1}),
            "an exit code of 999": saying(K.EXIT, {"code": 999}),
            "an accepted connection": saying(K.OPEN, {"op": "accept", "listener": 1}, channel=2),
            "an odd accepted connection": saying(K.OPEN, {"op": "accept", "listener": 1}, channel=7),
        }.items()
    ]
    + [
        pytest.param(ask_to_read, saying(K.DATA, b"x" * 11), id="more than was asked for"),
        pytest.param(ask_for_private, saying(K.RESULT, {"path": "relative"}), id="a relative path"),
        pytest.param(ask_for_private, saying(K.RESULT, {}), id="no path"),
        pytest.param(ask_to_run, saying(K.ANSWER, {"id": 0}), id="no pid"),
    ],
)
async def test_what_no_helper_says_ends_the_stream(
    ask: Callable[[BoxWorkspace], Awaitable[object]], script: Script
) -> None:
    box = FakeBox(script, be_well)
    with anyio.fail_after(30):
        async with BoxWorkspace(box) as workspace:
            error = await refused(WorkspaceLost, ask(workspace))
            assert error.reason == "exited"
            assert await workspace.stat("a") is None
    assert (box.opened, box.stopped) == (2, 1)


@pytest.mark.parametrize(
    "listing", [b"{}", b"[1]", b"[", json.dumps([{**ENTRY, "name": "../a"}]).encode(), b'[{"name": ".."}]']
)
async def test_a_listing_that_is_none_is_not_believed(listing: bytes) -> None:
    async def answer(helper: FakeHelper, channel: int) -> None:
        await helper.say(K.DATA, channel, listing)
        await helper.say(K.RESULT, channel, {})

    async with BoxWorkspace(FakeBox(answering(answer), be_well)) as workspace:
        await refused(WorkspaceLost, workspace.list())
        assert await workspace.stat("a") is None


@pytest.mark.parametrize(
    "header", [b"\5\0\0\0\1\xff\xff\xff\xff", b"\5\0\0\0\1\0\1\0\1", b"\x63\0\0\0\1\0\0\0\1", b"\0" * 9]
)
async def test_a_frame_that_is_none_ends_the_stream_before_its_bytes_come(header: bytes) -> None:
    async def answer(helper: FakeHelper, channel: int) -> None:
        await helper.stream.send(header)

    async with BoxWorkspace(FakeBox(answering(answer), be_well)) as workspace:
        await refused(WorkspaceLost, workspace.stat("a"))
        assert await workspace.stat("a") is None


async def test_a_flood_beyond_the_window_costs_no_more_memory_than_that() -> None:
    async def answer(helper: FakeHelper, channel: int) -> None:
        await helper.say(K.ANSWER, channel, PROCESS)
        while True:
            await helper.say(K.DATA, channel, b"x" * MAX_PAYLOAD)

    async with BoxWorkspace(FakeBox(answering(answer), be_well)) as workspace:
        tracemalloc.start()
        try:
            with anyio.fail_after(30):
                async with workspace.open_process("yes") as process:
                    await refused(WorkspaceLost, process.wait())
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 4 * WINDOW


async def test_errors_arrive_as_what_they_are() -> None:
    errors: dict[str, tuple[dict[str, Any], type[Exception]]] = {
        "path": ({"kind": "path", "path": "/a", "reason": "denied", "message": "No."}, PathError),
        "workspace": ({"kind": "workspace", "message": "No."}, WorkspaceError),
        "fenced": ({"kind": "fenced", "message": "No."}, WorkspaceLost),
        "broken": ({"kind": "broken", "message": ""}, anyio.BrokenResourceError),
    }
    for error, expected in errors.values():
        async with BoxWorkspace(FakeBox(saying(K.RESULT, {"error": error}))) as workspace:
            await refused(expected, workspace.stat("a"))
            assert workspace.is_open


# Garbage.


def encode_object(kind: FrameKind, channel: int, value: dict[str, Any]) -> bytes:
    return encode(kind, channel, json.dumps(value).encode())


FRAMES = st.builds(
    encode, st.sampled_from(list(FrameKind)), st.sampled_from([0, 1, 2, 3, 5]), st.binary(max_size=60)
) | st.builds(
    encode_object,
    st.sampled_from([K.ANSWER, K.RESULT, K.EXIT, K.OPEN]),
    st.sampled_from([1, 2, 3]),
    st.dictionaries(
        st.sampled_from(["id", "code", "error", "entry", "listener", "pid", "path"]),
        st.integers(-2, 300) | st.none() | st.text(max_size=5) | st.just({"kind": "broken"}),
    ),
)


@given(st.lists(FRAMES | st.binary(max_size=30), max_size=12), st.lists(st.integers(1, 40), min_size=1))
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_whatever_comes_nothing_hangs_and_nothing_but_losing_the_box_happens(
    backend: str, pieces: list[bytes], cuts: list[int]
) -> None:
    async def script(helper: FakeHelper) -> None:
        await helper.greet()
        for _ in range(3):
            await helper.next()
        data, at = b"".join(pieces), 0
        for cut in cuts * (len(data) // sum(cuts) + 1):
            await helper.stream.send(data[at : at + cut])
            at += cut

    async def ask(workspace: BoxWorkspace, call: Callable[[BoxWorkspace], Awaitable[object]]) -> None:
        with suppress(WorkspaceError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await call(workspace)

    async def main() -> None:
        with anyio.fail_after(30):
            async with BoxWorkspace(FakeBox(script, be_well)) as workspace:
                async with anyio.create_task_group() as tasks:
                    for call in (ask_for_stat, ask_to_run, ask_to_read):
                        tasks.start_soon(ask, workspace, call)
                assert await workspace.stat("a") is None

    anyio.run(main, backend=backend)


@given(st.lists(st.binary(max_size=200), max_size=8), st.data())
def test_frames_are_the_same_however_they_are_cut(payloads: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(encode(K.DATA, number, payload) for number, payload in enumerate(payloads))
    reader = FrameReader()
    frames: list[bytes] = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        frames += [frame.payload for frame in reader.feed(stream[:size])]
        stream = stream[size:]
    assert frames == payloads
