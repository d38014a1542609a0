from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from agentcore.errors import WorkspaceError, WorkspaceLost, WorkspaceNotOpen
from agentcore.testing.workspace_process_contract import refused
from agentcore_sandbox.connection import HelperConnection
from agentcore_sandbox.frames import WINDOW, FrameKind, encode
from agentcore_sandbox.workspace import BoxWorkspace
from boxes_fake_helper import HELLO, FakeBox, FakeHelper, Script, answering, be_well, pipe

K = FrameKind


# The beginning.


async def test_the_first_words_name_the_place_and_its_variables() -> None:
    said: dict[str, Any] = {}

    async def script(helper: FakeHelper) -> None:
        said.update(await helper.greet())
        await helper.next()

    async with BoxWorkspace(FakeBox(script)) as workspace:
        assert workspace.root == "/workspace"
    assert (said["version"], said["epochs"], said["root"], said["state"]) == (1, {}, "/workspace", "/state")
    assert said["env"] == {"A": "b"}


async def refused_opening(script: Script, expected: type[WorkspaceError], **options: Any) -> WorkspaceError:
    box = FakeBox(script, **options)
    box.words = "the last words"
    workspace = BoxWorkspace(box)
    error = await refused(expected, workspace.__aenter__())
    assert not workspace.is_open
    assert box.stopped == 1
    return error


async def test_a_box_without_python_says_how_to_add_it() -> None:
    async def script(helper: FakeHelper) -> None:
        await helper.take_program()
        await helper.stream.send(b"no python\n")

    assert "apt-get install" in str(await refused_opening(script, WorkspaceError))


async def test_what_comes_instead_of_a_greeting_is_shown() -> None:
    async def script(helper: FakeHelper) -> None:
        await helper.stream.send(b"sh: exec format error\n" + b"x" * 5000)

    error = str(await refused_opening(script, WorkspaceError))
    assert "exec format error" in error
    assert "the last words" in error
    assert len(error) < 1000


async def test_a_helper_that_ends_at_once_is_a_box_that_is_lost_and_says_why() -> None:
    async def script(helper: FakeHelper) -> None:
        await helper.take_program()

    error = await refused_opening(script, WorkspaceLost, reason="oom")
    assert isinstance(error, WorkspaceLost)
    assert error.reason == "oom"
    assert "memory" in str(error)
    assert "the last words" in str(error)


@pytest.mark.parametrize("kind", ["fenced", "root", "version"])
async def test_a_helper_may_refuse_to_start(kind: str) -> None:
    async def script(helper: FakeHelper) -> None:
        await helper.greet({"refused": kind, "message": "its own words"})

    error = await refused_opening(script, WorkspaceError)
    if kind == "fenced":
        assert isinstance(error, WorkspaceLost)
        assert error.reason == "fenced"
    else:
        assert "its own words" in str(error)


@pytest.mark.parametrize(
    "first",
    [
        encode(K.PONG, 0),
        encode(K.HELLO, 0, b"[]"),
        encode(K.HELLO, 0, b"{}"),
        encode(K.HELLO, 0, json.dumps({**HELLO, "root": "not/absolute"}).encode()),
        encode(K.HELLO, 0, json.dumps({**HELLO, "version": 2}).encode()),
        encode(K.HELLO, 0, json.dumps(HELLO).encode()) + encode(K.PONG, 0),
    ],
)
async def test_a_hello_that_is_none_is_not_believed(first: bytes) -> None:
    async def script(helper: FakeHelper) -> None:
        await helper.take_program()
        await helper.stream.send(b"agentcore-helper 1\n" + first)
        await helper.next()

    await refused_opening(script, WorkspaceLost)


# Losing it.


async def test_those_who_wait_when_the_helper_ends_are_told_why_and_share_the_next_one() -> None:
    async def die(helper: FakeHelper) -> None:
        await helper.greet()
        for _ in range(3):
            await helper.next()

    box = FakeBox(die, be_well, reason="oom")
    errors: list[WorkspaceLost] = []

    async with BoxWorkspace(box) as workspace:

        async def ask() -> None:
            errors.append(await refused(WorkspaceLost, workspace.stat("a")))

        async def ask_again() -> None:
            assert await workspace.stat("a") is None

        with anyio.fail_after(30):
            for each in (ask, ask_again):
                async with anyio.create_task_group() as tasks:
                    for _ in range(3):
                        tasks.start_soon(each)
    assert [error.reason for error in errors] == ["oom"] * 3
    assert box.opened == 2


async def test_a_new_helper_is_told_all_epochs() -> None:
    told: list[dict[str, int]] = []
    asked = [("a", 1), ("b", 7), ("a", 2)]

    async def script(helper: FakeHelper) -> None:
        told.append((await helper.greet())["epochs"])
        frame = await helper.next()
        owner, epoch = asked[len(told) - 1]
        assert json.loads(frame.payload) == {"op": "fence", "epoch": epoch, "owner": owner}
        await helper.say(K.RESULT, frame.channel, {"ended": 0})

    async with BoxWorkspace(FakeBox(script)) as workspace:
        for owner, epoch in asked:
            await workspace.fence(epoch, owner)
    assert told == [{}, {"a": 1, "b": 7}, {"a": 2, "b": 7}]


async def test_a_workspace_that_was_left_ends_those_who_wait() -> None:
    async def script(helper: FakeHelper) -> None:
        await helper.greet()
        await helper.next()
        asked.set()
        await anyio.sleep_forever()

    asked = anyio.Event()
    errors: list[Exception] = []
    workspace = BoxWorkspace(FakeBox(script))

    async def ask() -> None:
        errors.append(await refused(WorkspaceNotOpen, workspace.stat("a")))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            async with workspace:
                tasks.start_soon(ask)
                await asked.wait()
    assert len(errors) == 1


async def test_silence_is_the_end() -> None:
    ours, theirs = pipe()
    async with anyio.create_task_group() as tasks:
        helper = FakeHelper(theirs)
        connection = HelperConnection(ours, {}, ping=0.02, silence=0.1)

        async def say_hello_and_no_more() -> None:
            await helper.greet()
            while True:
                await theirs.receive()

        tasks.start_soon(say_hello_and_no_more)
        with anyio.fail_after(30):
            end = await connection.run(lambda: None)
        assert end.kind == "silent"
        tasks.cancel_scope.cancel()
    await ours.aclose()
    await theirs.aclose()


# Taking turns.


async def test_who_sends_much_delays_nobody_by_more_than_a_few_frames() -> None:
    seen: list[tuple[FrameKind, int]] = []

    async def script(helper: FakeHelper) -> None:
        await helper.greet()
        first = await helper.next()
        await others_asked.wait()
        while sum(kind == K.OPEN for kind, _ in seen) < 3:
            frame = await helper.next()
            seen.append((frame.kind, frame.channel))
        await helper.say(K.RESULT, first.channel, {})
        for channel in {channel for kind, channel in seen if kind == K.OPEN}:
            await helper.say(K.RESULT, channel, {"entry": None})

    others_asked = anyio.Event()
    async with BoxWorkspace(FakeBox(script)) as workspace:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(workspace.write, "a", b"x" * WINDOW)
                await anyio.wait_all_tasks_blocked()
                for _ in range(3):
                    tasks.start_soon(workspace.stat, "b")
                await anyio.wait_all_tasks_blocked()
                others_asked.set()
    # Three channels that have one frame each, and what one write takes at once of the one with a megabyte.
    assert sum(kind == K.DATA for kind, _ in seen) <= 4


async def test_no_more_is_sent_than_the_window_until_it_is_allowed() -> None:
    async def answer(helper: FakeHelper, channel: int) -> None:
        size = 0
        while size < WINDOW:
            size += len((await helper.next()).payload)
        await anyio.wait_all_tasks_blocked()
        sizes.append(size)
        for _ in range(3):
            await helper.say(K.CREDIT, channel, b"\0\0\0\0\5")
            sizes.append(len((await helper.next()).payload))
        await helper.say(K.RESULT, channel, {"error": {"kind": "workspace", "message": "enough"}})

    sizes: list[int] = []
    async with BoxWorkspace(FakeBox(answering(answer))) as workspace:
        with anyio.fail_after(30):
            assert str(await refused(WorkspaceError, workspace.write("a", b"x" * 2 * WINDOW))) == "enough"
    assert sizes == [WINDOW, 5, 5, 5]


async def test_what_was_not_begun_leaves_no_trace_when_it_is_cancelled() -> None:
    seen: list[FrameKind] = []

    async def script(helper: FakeHelper) -> None:
        await helper.greet()
        await cancelled.wait()
        while True:
            frame = await helper.next()
            seen.append(frame.kind)
            await helper.say(K.RESULT, frame.channel, {"entry": None})

    cancelled = anyio.Event()
    async with BoxWorkspace(FakeBox(script)) as workspace:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                # The first fills the pipe, so the rest stays here.
                tasks.start_soon(workspace.stat, "a")
                await anyio.wait_all_tasks_blocked()
                with anyio.move_on_after(0):
                    await workspace.run("x" * 300_000)
                cancelled.set()
    assert seen == [K.OPEN]
