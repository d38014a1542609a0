"""The fence of a box: a later owner ends what earlier ones started, and an earlier one does nothing any more."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from boxes_raw import (
    CANCEL,
    HELLO,
    PYTHONS,
    RawHelper,
    boot,
    greeting,
    is_running,
    open_helper,
    wait_for_pids,
)
from rounds import some_quick

_PYTHON = PYTHONS[0]
_LEFT = """
    trap '' TERM HUP
    echo $$ >>pids
    setsid bash -c 'echo $$ >>pids; exec sleep 1000' >/dev/null 2>&1 &
    (setsid bash -c '(echo $BASHPID >>pids; trap "" TERM; while :; do sleep 0.1; done) &' >/dev/null 2>&1 &)
    while :; do sleep 0.1; done
"""


def of(epoch: int, owner: str = "c") -> dict[str, dict[str, int]]:
    """Return the epochs of one owner, as a client says them."""
    return {"epochs": {owner: epoch}}


def start_some(helper: RawHelper, tmp_path: Path) -> list[int]:
    (tmp_path / "root" / "pids").unlink(missing_ok=True)
    helper.open("process", line=_LEFT)
    return wait_for_pids(tmp_path / "root" / "pids", 3)


@contextmanager
def stopped(pid: int) -> Generator[None]:
    """Stop a process meanwhile, if it is there."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_a_higher_epoch_ends_the_helper_before_with_all_that_it_started(tmp_path: Path) -> None:
    with open_helper(_PYTHON, tmp_path, **of(3)) as older:
        assert older.hello["epochs"] == {"c": 3}
        pids = start_some(older, tmp_path)
        with open_helper(_PYTHON, tmp_path, **of(4)) as newer:
            # Its greeting comes when they are gone.
            assert not any(is_running(pid) for pid in [*pids, older.process.pid])
            assert newer.ask("process", argv=["echo", "fine"]).data == b"fine\n"


def test_a_helper_that_takes_no_notice_is_ended_too(tmp_path: Path) -> None:
    with open_helper(_PYTHON, tmp_path, **of(3)) as older:
        pids = start_some(older, tmp_path)
        with stopped(older.process.pid), open_helper(_PYTHON, tmp_path, **of(4)):
            assert not any(is_running(pid) for pid in [*pids, older.process.pid])


def test_what_a_killed_helper_left_is_ended_by_the_next_one(tmp_path: Path) -> None:
    for epoch in (5, 6, 6):
        with open_helper(_PYTHON, tmp_path, **of(epoch)) as older:
            pids = start_some(older, tmp_path)
            older.process.kill()
            older.process.wait()
            assert all(is_running(pid) for pid in pids)
            with open_helper(_PYTHON, tmp_path, **of(6)):
                assert not any(is_running(pid) for pid in pids)


def test_without_an_epoch_the_next_one_ends_what_a_killed_one_left_and_spares_one_that_lives(tmp_path: Path) -> None:
    with open_helper(_PYTHON, tmp_path) as living, open_helper(_PYTHON, tmp_path) as dead:
        lives = start_some(living, tmp_path)
        left = start_some(dead, tmp_path)
        dead.process.kill()
        dead.process.wait()
        with open_helper(_PYTHON, tmp_path):
            assert not any(is_running(pid) for pid in left)
            assert all(is_running(pid) for pid in lives)


def test_the_fence_can_be_raised_later_and_spares_the_helpers_own(tmp_path: Path) -> None:
    with open_helper(_PYTHON, tmp_path, **of(1)) as older, open_helper(_PYTHON, tmp_path) as newer:
        pids = start_some(older, tmp_path)
        own = newer.open("process", line="echo $$; exec sleep 1000")
        newer.wait_for_output(own, b"\n")
        result = newer.ask("fence", epoch=2, owner="c").result
        assert result["ended"] >= 4
        assert not any(is_running(pid) for pid in [*pids, older.process.pid])
        assert newer.ask("fence", epoch=2, owner="c").result == {"ended": 0}
        newer.send(CANCEL, own)
        assert newer.finish(own).result == {"code": 143}


def test_owners_of_one_helper_do_not_hinder_one_another(tmp_path: Path) -> None:
    with open_helper(_PYTHON, tmp_path) as shared:
        assert shared.ask("fence", epoch=7, owner="a").result == {"ended": 0}
        pids = start_some(shared, tmp_path)
        assert shared.ask("fence", epoch=1, owner="b").result == {"ended": 0}
        # One of them is opened again, by the same program.
        assert shared.ask("fence", epoch=8, owner="a").result == {"ended": 0}
        assert all(is_running(pid) for pid in pids)
        assert shared.ask("fence", epoch=7, owner="a").result["error"]["kind"] == "fenced"
        assert shared.ask("stat", path=".").result["entry"]["kind"] == "dir"


def test_helpers_of_other_owners_are_spared_with_what_they_run(tmp_path: Path) -> None:
    with open_helper(_PYTHON, tmp_path, **of(5, "a")) as first, open_helper(_PYTHON, tmp_path) as unowned:
        pids = [*start_some(first, tmp_path), *start_some(unowned, tmp_path)]
        with open_helper(_PYTHON, tmp_path, **of(1, "b")) as second:
            assert all(is_running(pid) for pid in pids)
            for helper in (first, second, unowned):
                assert helper.ask("stat", path=".").result["entry"]["kind"] == "dir"


def test_a_helper_of_two_owners_is_ended_by_the_next_opening_of_one_and_goes_on_for_the_other(tmp_path: Path) -> None:
    both = {"a": 1, "b": 1}
    with open_helper(_PYTHON, tmp_path, epochs=both) as shared:
        pids = start_some(shared, tmp_path)
        with open_helper(_PYTHON, tmp_path, **of(2, "a")):
            assert not any(is_running(pid) for pid in [*pids, shared.process.pid])
            # The program that had both starts another one: the other one is still its own, and nobody ends it for the first.
            with open_helper(_PYTHON, tmp_path, epochs=both) as again:
                others = start_some(again, tmp_path)
                with open_helper(_PYTHON, tmp_path, **of(3, "a")):
                    assert all(is_running(pid) for pid in [*others, again.process.pid])
                    assert again.ask("stat", path=".").result["entry"]["kind"] == "dir"
                    assert again.ask("fence", epoch=1, owner="a").result["error"]["kind"] == "fenced"


def test_a_helper_that_was_overtaken_works_for_another_owner_that_comes(tmp_path: Path) -> None:
    with open_helper(_PYTHON, tmp_path) as helper:
        (tmp_path / "state" / "epoch").write_text('{"owners": {"a": 2}, "helpers": [], "clean": true}')
        assert helper.ask("fence", epoch=1, owner="a").result["error"]["kind"] == "fenced"
        assert helper.ask("stat", path=".").result["error"]["kind"] == "fenced"
        assert helper.ask("fence", epoch=1, owner="b").result == {"ended": 0}
        assert helper.ask("stat", path=".").result["entry"]["kind"] == "dir"


def test_a_lower_epoch_is_refused_and_does_nothing(tmp_path: Path) -> None:
    with open_helper(_PYTHON, tmp_path, **of(7)) as latest:
        pids = start_some(latest, tmp_path)
        with boot(_PYTHON, tmp_path) as late:
            late.send(HELLO, 0, greeting(tmp_path, **of(6)))
            late.line()
            refused = late.frame().value
            assert refused["refused"] == "fenced"
            assert "opening 7" in refused["message"]
            assert late.wait_for_end() == 0
        with open_helper(_PYTHON, tmp_path) as late:
            assert late.ask("fence", epoch=6, owner="c").result["error"]["kind"] == "fenced"
            for op in ("stat", "list"):
                assert late.ask(op, path=".").result["error"]["kind"] == "fenced"
        assert all(is_running(pid) for pid in pids)
        assert latest.ask("stat", path=".").result["entry"]["kind"] == "dir"


def test_a_helper_that_was_overtaken_does_nothing_any_more(tmp_path: Path) -> None:
    with open_helper(_PYTHON, tmp_path, **of(1)) as older:
        assert older.ask("stat", path=".").result["entry"] is not None
        # As when the next owner could not end it: in another namespace, say.
        file = tmp_path / "state" / "epoch"
        file.write_text('{"owners": {"c": 2}, "helpers": [], "clean": true}')
        for _ in range(2):
            assert older.ask("process", line="echo >made").result["error"]["kind"] == "fenced"
        assert not (tmp_path / "root" / "made").exists()


def test_a_new_owner_that_was_killed_in_the_middle_leaves_the_rest_to_the_next(tmp_path: Path) -> None:
    with open_helper(_PYTHON, tmp_path, **of(1)) as older:
        pids = start_some(older, tmp_path)
        file = tmp_path / "state" / "epoch"
        # It has written that it comes, and no more.
        file.write_text(
            file.read_text()
            .replace('{"owners": {"c": 1}, "helpers"', '{"owners": {"c": 2}, "helpers"')
            .replace("true", "false")
        )
        with open_helper(_PYTHON, tmp_path, **of(2)):
            assert not any(is_running(pid) for pid in [*pids, older.process.pid])


@pytest.mark.parametrize(
    "content",
    some_quick(["", "{", "[]", '{"owners": "x"}', '{"owners": {"c": 1}, "helpers": [{"pid": 1}, 5], "clean": 1}'], 5),
)
def test_a_file_that_a_command_spoiled_harms_nothing(content: str, tmp_path: Path) -> None:
    with open_helper(_PYTHON, tmp_path, **of(1)) as older:
        pids = start_some(older, tmp_path)
        (tmp_path / "state" / "epoch").write_text(content)
        with open_helper(_PYTHON, tmp_path, **of(2)) as newer:
            # They have the box's mark.
            assert not any(is_running(pid) for pid in pids)
            assert newer.ask("stat", path=".").result["entry"]["kind"] == "dir"


def test_a_helper_that_ended_well_leaves_no_record(tmp_path: Path) -> None:
    with open_helper(_PYTHON, tmp_path, **of(1)) as helper:
        assert str(helper.process.pid) in (tmp_path / "state" / "epoch").read_text()
    assert '"helpers": []' in (tmp_path / "state" / "epoch").read_text()


def test_where_all_processes_are_the_boxes_all_are_ended_with_or_without_a_mark(tmp_path: Path) -> None:
    if shutil.which("unshare") is None or os.getuid() != 0:
        pytest.skip(
            "needs root and unshare (apt install util-linux), for a namespace of processes: run the tests as root"
        )
    # A namespace of processes of the test. In it: a first process, a stranger of it, and one helper after the other.
    script = tmp_path / "first.py"
    script.write_text(_FIRST_PROCESS)
    result = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *_source()])},
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "ended by the fence\n"


def _source() -> list[str]:
    import agentcore_sandbox  # noqa: PLC0415 - only its place is asked for

    return [str(Path(path).parent) for path in agentcore_sandbox.__path__]


_FIRST_PROCESS = """
import os, subprocess, sys, time
from pathlib import Path
from boxes_raw import PYTHONS, is_running, open_helper

tmp_path = Path(sys.argv[1])
assert os.getpid() == 1
stranger = subprocess.Popen(["sleep", "1000"], start_new_session=True, env={})
with open_helper(PYTHONS[0], tmp_path, epochs={"c": 1}, whole=True) as helper:
    # It is not this one's parent's, and has nothing by which it could be known.
    assert stranger.wait(10) == -15, stranger.returncode
    print("ended by the fence")
"""
