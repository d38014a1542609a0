"""The other direction: a real helper that is sent garbage ends, with all that it started, and never hangs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentcore_sandbox.bootstrap import BOOT_COMMAND, GREETING, payload
from agentcore_sandbox.frames import FrameKind, FrameReader, encode, encode_json
from boxes_plain import commands_below

K = FrameKind
_SECONDS = 60

ASKED = st.fixed_dictionaries(
    {
        "op": st.sampled_from(
            ["process", "read", "write", "list", "stat", "get_tree", "put_tree", "private", "listen", "fence"]
        )
    },
    optional={
        "path": st.text(max_size=5) | st.integers(),
        "line": st.just("sleep 1000 & cat") | st.integers(),
        "argv": st.lists(st.text(max_size=3), max_size=2),
        "env": st.dictionaries(st.text(max_size=3), st.text(max_size=3) | st.integers(), max_size=2),
        "pty": st.booleans(),
        "size": st.lists(st.integers(-1, 100_000), max_size=3),
        "max_bytes": st.integers(-1, 2**70),
        "port": st.integers(-1, 70_000) | st.just(0),
        "name": st.text(max_size=5),
        "epoch": st.integers(-1, 2**70),
        "owner": st.text(max_size=3),
        "cwd": st.just(".") | st.text(max_size=3),
    },
)
CALLED = st.fixed_dictionaries(
    {"id": st.integers(0, 5), "call": st.sampled_from(["signal", "interrupt", "terminate", "resize", "drain", "x"])},
    optional={"signal": st.integers(-1, 100), "columns": st.integers(-1, 10), "started_within": st.floats()},
)
NUMBERS = st.sampled_from([0, 1, 2, 3, 5, 7])


def json_frame(kind: FrameKind, channel: int, value: dict[str, Any]) -> bytes:
    return encode_json(kind, channel, value)


FRAMES = (
    st.builds(json_frame, st.just(K.OPEN), NUMBERS, ASKED)
    | st.builds(json_frame, st.just(K.CALL), NUMBERS, CALLED)
    | st.builds(encode, st.sampled_from([K.DATA, K.EOF, K.CANCEL, K.CREDIT, K.PING]), NUMBERS, st.binary(max_size=10))
    | st.builds(encode, st.sampled_from(list(K)), NUMBERS, st.binary(max_size=40))
    | st.binary(max_size=20)
)


@contextmanager
def helper_in(folder: Path) -> Generator[subprocess.Popen[bytes]]:
    """Start a helper that was greeted, and wait for its end."""
    folder.mkdir(exist_ok=True)
    hello: dict[str, Any] = {
        "version": 1,
        "epochs": {},
        "box": "b",
        "root": str(folder),
        "state": f"{folder}-state",
        "silence": 30,
    }
    helper = subprocess.Popen(BOOT_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert helper.stdin is not None
    assert helper.stdout is not None
    try:
        helper.stdin.write(payload() + encode_json(K.HELLO, 0, hello))
        helper.stdin.flush()
        answer = b""
        while not list(FrameReader().feed(answer.partition(GREETING)[2])):
            more = os.read(helper.stdout.fileno(), 65536)
            assert more, answer
            answer += more
        yield helper
    finally:
        helper.stdin.close()
        helper.stdout.close()
        helper.wait(_SECONDS)
    assert commands_below(folder) == []


@pytest.mark.slow
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(pieces=st.lists(FRAMES, max_size=12))
def test_whatever_a_helper_is_sent_it_ends_when_the_stream_does(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("garbage") / "project"
    with helper_in(folder) as helper:
        assert helper.stdin is not None
        try:
            helper.stdin.write(b"".join(pieces))
            helper.stdin.flush()
        except BrokenPipeError:
            return


@pytest.mark.slow
@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param(b"\5\0\0\0\1\xff\xff\xff\xff", id="4 GB"),
        pytest.param(b"\x63\0\0\0\1\0\0\0\0", id="an unknown kind"),
        pytest.param(encode(K.OPEN, 2, b"{}"), id="a channel of its own"),
        pytest.param(encode(K.OPEN, 1, b"["), id="no JSON"),
        pytest.param(encode(K.OPEN, 1, b"[" * 60_000), id="deep JSON"),
        pytest.param(encode(K.RESULT, 1, b"{}"), id="a result"),
        pytest.param(encode(K.DATA, 1, b"x"), id="data for nothing"),
    ],
)
def test_garbage_ends_a_helper_with_all_that_it_started(garbage: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    with helper_in(folder) as helper:
        assert helper.stdin is not None
        assert helper.stdout is not None
        asked = {"op": "process", "line": "setsid sleep 1000 & exec sleep 1000"}
        number = 3 if garbage.startswith(b"\4\0\0\0\1") else 1
        if garbage[:5] != encode(K.DATA, 1)[:5]:
            helper.stdin.write(encode_json(K.OPEN, 5 if number == 3 else 1, asked))
        helper.stdin.write(garbage)
        helper.stdin.flush()
        while helper.stdout.read(65536):
            pass
        assert helper.wait(_SECONDS) != 0


def test_a_flood_that_nobody_reads_hinders_no_kill(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    with helper_in(folder) as helper:
        assert helper.stdin is not None
        for channel in range(1, 20, 2):
            helper.stdin.write(encode_json(K.OPEN, channel, {"op": "process", "line": "yes"}))
        # Its output is full soon; then its input ends.
        helper.stdin.flush()


def test_a_program_that_is_cut_off_never_begins(tmp_path: Path) -> None:
    for size in (0, 5, 8, 100, len(payload()) - 1):
        ended = subprocess.run(BOOT_COMMAND, input=payload()[:size], capture_output=True, timeout=_SECONDS, check=False)
        assert ended.stdout == b""
        assert ended.returncode != 0
