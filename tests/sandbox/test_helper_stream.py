"""The stream to a helper: its greeting, what it does not put up with, whose turn it is, and how it ends."""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agentcore_sandbox.bootstrap import GREETING
from boxes_raw import (
    CALL,
    CANCEL,
    CREDIT,
    DATA,
    EACH_PYTHON,
    EOF,
    EXIT,
    HELLO,
    OPEN,
    PING,
    PONG,
    PYTHONS,
    RESULT,
    WINDOW,
    RawHelper,
    boot,
    greeting,
    open_helper,
    wait_for_pids,
    wait_until_gone,
)
from living import still_running
from rounds import some_quick


@pytest.fixture(params=EACH_PYTHON)
def python(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def helper(python: str, tmp_path: Path) -> Iterator[RawHelper]:
    with open_helper(python, tmp_path) as helper:
        yield helper


def left_behind(helper: RawHelper, tmp_path: Path) -> list[int]:
    """Start what takes no notice of anything, in all the ways of hiding there are."""
    command = """
        trap '' TERM HUP
        echo $$ >>pids
        setsid bash -c 'echo $$ >>pids; exec sleep 1000' >/dev/null 2>&1 &
        env -i "$(command -v setsid)" "$(command -v bash)" -c '(trap "" TERM; echo $BASHPID >>pids; while :; do sleep 0.1; done) &' &
        while :; do sleep 0.1; done
    """
    helper.open("process", line=command)
    helper.open("process", line="echo $$ >>pids; exec sleep 1000", pty=True)
    return wait_for_pids(tmp_path / "root" / "pids", 4)


def test_it_greets_with_what_it_found(helper: RawHelper, tmp_path: Path) -> None:
    assert helper.hello["version"] == 1
    assert helper.hello["pid"] == helper.process.pid
    assert helper.hello["root"] == os.path.realpath(tmp_path / "root")
    assert helper.hello["epochs"] == {}
    assert helper.hello["home"].startswith("/")
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    helper.ping()


@pytest.mark.parametrize(
    ("wrong", "refused"),
    some_quick(
        [
            ({"version": 2}, "version"),
            ({"root": "/not/there"}, "root"),
            ({"root": "/etc/passwd"}, "root"),
            ({"root": 7}, "failed"),
            ({"state": "/proc/state"}, "failed"),
            ({"state": "/dev/null"}, "failed"),
            ({"env": {"A": 1}}, "failed"),
            ({"epochs": {"c": "1"}}, "failed"),
            ({"epochs": 1}, "failed"),
            ({"epochs": {"c": -1}}, "failed"),
            ({"silence": 0}, "failed"),
        ],
        4,
    ),
)
def test_a_greeting_that_cannot_be_met_is_refused(wrong: dict[str, Any], refused: str, tmp_path: Path) -> None:
    with boot(PYTHONS[0], tmp_path) as helper:
        helper.send(HELLO, 0, greeting(tmp_path, **wrong))
        assert helper.line() == GREETING
        frame = helper.frame()
        assert frame.kind == HELLO
        assert frame.value["refused"] == refused
        assert frame.value["message"]
        assert helper.wait_for_end() == 0


def test_the_folder_for_state_is_not_a_link_and_nobody_elses(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "state").symlink_to("elsewhere")
    with boot(PYTHONS[0], tmp_path) as helper:
        helper.send(HELLO, 0, greeting(tmp_path))
        helper.line()
        assert "only this user can open" in helper.frame().value["message"]
    assert list((tmp_path / "elsewhere").iterdir()) == []


def frame(kind: int, channel: int, payload: bytes = b"") -> bytes:
    return struct.pack(">BII", kind, channel, len(payload)) + payload


_NEVER_SENT = {
    "a kind that there is not": frame(14, 1),
    "kind 0": frame(0, 0),
    "a frame that is too long": struct.pack(">BII", PING, 0, 65537),
    "four gigabytes": struct.pack(">BII", DATA, 1, 0xFFFFFFFF),
    "text": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "an even channel": frame(OPEN, 2, b'{"op":"stat","path":"."}'),
    "channel 0": frame(OPEN, 0, b'{"op":"stat","path":"."}'),
    "the same channel twice": frame(OPEN, 99, b"{}") * 2,
    "a channel that was never open": frame(DATA, 12345, b"x"),
    "a connection that was never accepted": frame(DATA, 2, b"x"),
    "no JSON": frame(OPEN, 3, b"{"),
    "JSON that is no object": frame(OPEN, 3, b"[]"),
    "JSON that is too deep": frame(OPEN, 3, b"[" * 60_000),
    "no UTF-8": frame(OPEN, 3, b'{"op":"\xff"}'),
    "JSON that never ends": frame(OPEN, 3, b" " * 65536) + frame(PING, 0),
    "what only the helper sends": frame(RESULT, 3, b"{}"),
    "another greeting": frame(HELLO, 0, b"{}"),
    "credit for nothing": frame(OPEN, 3, b'{"op":"process","line":"cat"}') + frame(CREDIT, 3, struct.pack(">BI", 1, 1)),
    "half a credit": frame(OPEN, 3, b'{"op":"process","line":"cat"}') + frame(CREDIT, 3, b"\1"),
    "the end of another stream": frame(OPEN, 3, b'{"op":"process","line":"cat"}') + frame(EOF, 3, b"\1"),
    "a call without a number": frame(OPEN, 3, b'{"op":"process","line":"cat"}') + frame(CALL, 3, b"{}"),
    "more than the window": frame(OPEN, 3, b'{"op":"process","line":"sleep 1000"}') + frame(DATA, 3, b"x" * 65536) * 40,
}


@pytest.mark.parametrize("name", some_quick(_NEVER_SENT, 5))
def test_what_nobody_sends_ends_everything(name: str, tmp_path: Path) -> None:
    with open_helper(PYTHONS[0], tmp_path) as helper:
        helper.open("process", line="echo $$ >>pids; exec sleep 1000")
        pids = wait_for_pids(tmp_path / "root" / "pids", 1)
        # It may have enough before all of it is written.
        with suppress(BrokenPipeError):
            helper.send_raw(_NEVER_SENT[name])
        assert helper.wait_for_end() == 76
        wait_until_gone(*pids)


@pytest.mark.parametrize("sent", some_quick([b"", b"\x0a", frame(PING, 0) + b"\4\0\0", frame(OPEN, 1, b"{}")[:-1]], 4))
def test_a_cut_stream_ends_everything(sent: bytes, python: str, tmp_path: Path) -> None:
    with open_helper(python, tmp_path) as helper:
        pids = left_behind(helper, tmp_path)
        helper.send_raw(sent)
        helper.end_input()
        assert helper.wait_for_end() == 0
        wait_until_gone(*pids)


@pytest.mark.slow
def test_silence_ends_everything(python: str, tmp_path: Path) -> None:
    with open_helper(python, tmp_path, silence=1.5) as helper:
        pids = left_behind(helper, tmp_path)
        # Nothing is sent any more, and nothing is closed.
        assert helper.wait_for_end() == 0
        wait_until_gone(*pids)


@pytest.mark.parametrize("number", some_quick([signal.SIGTERM, signal.SIGHUP, signal.SIGINT], 3))
def test_a_signal_ends_everything(number: signal.Signals, helper: RawHelper, tmp_path: Path) -> None:
    pids = left_behind(helper, tmp_path)
    helper.process.send_signal(number)
    assert helper.wait_for_end() == 0
    wait_until_gone(*pids)


def test_nobody_reads_any_more_and_everything_ends(helper: RawHelper, tmp_path: Path) -> None:
    pids = left_behind(helper, tmp_path)
    helper.open("process", argv=["yes"])
    assert helper.process.stdout is not None
    helper.process.stdout.close()
    assert helper.wait_for_end() == 0
    wait_until_gone(*pids)


def test_a_flood_delays_nobody(helper: RawHelper, tmp_path: Path) -> None:
    (tmp_path / "root" / "big").write_bytes(b"x" * (8 * WINDOW))
    flood = helper.open("process", argv=["yes"])
    reading = helper.open("read", path="big", max_bytes=8 * WINDOW)
    # Both have filled all there is between here and there before anything else is asked.
    helper.wait_for(DATA, flood)
    helper.wait_for(DATA, reading)
    before = [0, 0, 0]
    helper.send(PING)
    other = helper.open("process", line="printf other")
    third = helper.open("stat", path="big")
    wanted = {(PONG, 0): 0, (DATA, other): 0, (RESULT, third): 0}
    count = 0
    while not all(wanted.values()):
        each = helper.frame()
        count += 1
        if (each.kind, each.channel) in wanted:
            wanted[each.kind, each.channel] = count
        elif each.kind == DATA:
            helper.credit(each.channel, len(each.payload))
            before[0] += len(each.payload)
    # What had been written before, and a few frames.
    assert before[0] <= 4 * WINDOW
    helper.send(CANCEL, flood)
    helper.finish(flood)
    assert len(helper.finish(reading).data) > 0


def test_channels_take_turns(helper: RawHelper, tmp_path: Path) -> None:
    (tmp_path / "root" / "big").write_bytes(b"x" * WINDOW)
    channels = [helper.open("read", path="big", max_bytes=WINDOW) for _ in range(3)]
    order: list[int] = []
    while len(order) < 48:
        each = helper.frame()
        if each.kind == DATA:
            order.append(each.channel)
    first = [order.index(channel) for channel in channels]
    assert max(first) < 8
    # Once all three are at it, none has two turns in a row while the others wait.
    middle = order[max(first) + 4 : 40]
    assert all({*middle[place : place + 3]} == {*channels} for place in range(len(middle) - 3))


def test_urgent_frames_overtake_what_waits(helper: RawHelper, tmp_path: Path) -> None:
    channel = helper.open("process", argv=["cat", "/dev/zero"])
    helper.wait_for(DATA, channel)
    answer = helper.call(channel, "signal", signal=signal.SIGKILL)
    assert answer["result"] is None
    assert helper.wait_for(EXIT, channel).value == {"code": 137}
    helper.send(CANCEL, channel)
    assert helper.finish(channel).result == {"code": 137}


def test_what_comes_late_is_passed_over(helper: RawHelper) -> None:
    channel = helper.open("stat", path=".")
    helper.finish(channel)
    for kind, payload in ((DATA, b"late"), (EOF, b"\0"), (CANCEL, b""), (CREDIT, struct.pack(">BI", 1, 5))):
        helper.send(kind, channel, payload)
    helper.send(CALL, channel, {"id": 1, "call": "terminate"})
    helper.ping()


def test_ops_that_make_no_sense_are_refused_and_nothing_else_happens(helper: RawHelper) -> None:
    for wrong in ({}, {"op": "fly"}, {"op": 7}, {"op": "__init__"}, {"op": "read"}, {"op": "read", "path": 5}):
        channel, helper.next_channel = helper.next_channel, helper.next_channel + 2
        helper.send(OPEN, channel, wrong)
        assert helper.finish(channel).result["error"]["kind"] == "workspace"
    channel = helper.open("stat", path=".")
    helper.send(CALL, channel, {"id": 5, "call": "terminate"})
    helper.finish(channel)
    helper.ping()


def test_cancelling_an_op_ends_it_once(helper: RawHelper, tmp_path: Path) -> None:
    (tmp_path / "root" / "big").write_bytes(b"x" * (4 * WINDOW))
    reading = helper.open("read", path="big", max_bytes=4 * WINDOW)
    helper.wait_for(DATA, reading)
    for _ in range(3):
        helper.send(CANCEL, reading)
    assert helper.finish(reading).result == {"cancelled": True}
    at_once = helper.open("process", line="echo $$ >>pids; exec sleep 1000")
    helper.send(CANCEL, at_once)
    helper.finish(at_once)
    helper.ping()
    assert not [each for each in helper.waiting if each.kind == RESULT]
    # It may have begun before its end was asked for.
    begun = tmp_path / "root" / "pids"
    assert not begun.exists() or not still_running(*map(int, begun.read_text().split()))
