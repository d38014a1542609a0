"""Processes in a box: how they start, what they are told and write, and how they end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from boxes_raw import (
    CANCEL,
    DATA,
    EACH_PYTHON,
    EOF,
    EXIT,
    WINDOW,
    RawHelper,
    is_running,
    open_helper,
    wait_for_pids,
    wait_until_gone,
)


@pytest.fixture(params=EACH_PYTHON)
def helper(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RawHelper]:
    with open_helper(request.param, tmp_path) as helper:
        yield helper


def test_a_command_has_its_streams_and_its_exit_code(helper: RawHelper) -> None:
    reply = helper.ask("process", line="cat; echo err >&2; exit 3", data=b"typed")
    assert (reply.result, reply.data, reply.stderr) == ({"code": 3}, b"typed", b"err\n")
    reply = helper.ask("process", argv=["printf", "<%s>", "a  b", "$HOME", ""])
    assert reply.data == b"<a  b><$HOME><>"


def test_a_signal_is_128_and_its_number(helper: RawHelper) -> None:
    assert helper.ask("process", line="kill -KILL $$").result == {"code": 137}
    assert helper.ask("process", line="kill -TERM $$").result == {"code": 143}


def test_a_program_that_is_not_there_is_127_and_one_that_may_not_run_126(helper: RawHelper, tmp_path: Path) -> None:
    reply = helper.ask("process", argv=["no-such-program", "--help"])
    assert reply.result == {"code": 127}
    assert b"no-such-program" in reply.stderr
    (tmp_path / "root" / "text").write_text("echo as a script $1")
    assert helper.ask("process", argv=["./text"]).result == {"code": 126}
    (tmp_path / "root" / "text").chmod(0o755)
    assert helper.ask("process", argv=["./text", "too"]).data == b"as a script too\n"


def test_without_bash_lines_are_refused_and_programs_run(helper: RawHelper, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "echo").symlink_to("/bin/echo")
    env = {"PATH": str(tmp_path / "bin")}
    assert "there is no bash" in helper.ask("process", line="echo", env=env).message
    assert helper.ask("process", argv=["echo", "fine"], env=env).data == b"fine\n"
    assert helper.ask("process", argv=["nope"], env=env).result == {"code": 127}


def test_a_command_has_the_variables_that_it_should_have_and_nothing_of_the_helpers(helper: RawHelper) -> None:
    reply = helper.ask("process", argv=["env", "-0"], env={"GIVEN": "two\nlines"})
    variables = dict(line.split("=", 1) for line in reply.data.decode().split("\0") if line)
    marks = variables.pop("AGENTCORE_PROCESSES").split(":")
    assert len(marks) == 3
    assert marks[0].startswith("test-")
    home = helper.hello["home"]
    assert variables == {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "GIVEN": "two\nlines",
    }
    assert b"TERM=xterm-256color\r\n" in helper.ask("process", argv=["env"], pty=True).data


def test_a_command_inherits_no_file_and_no_ignored_signal(helper: RawHelper) -> None:
    assert helper.ask("process", line="echo /proc/self/fd/*").data.split() == [
        f"/proc/self/fd/{number}".encode() for number in (0, 1, 2, 255)
    ] or helper.ask("process", argv=["ls", "/proc/self/fd"]).data.split() == [b"0", b"1", b"2", b"3"]
    status = helper.ask("process", argv=["grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status"]).data.split()
    # Signals 32 and 33 belong to the C library, which has a program that it spawns ignore them.
    assert [int(mask, 16) & ~(0b11 << 31) for mask in status[1::2]] == [0, 0]


def test_a_command_is_ended_before_the_helper_when_memory_runs_out(helper: RawHelper) -> None:
    own = int(Path(f"/proc/{helper.process.pid}/oom_score_adj").read_text())
    assert int(helper.ask("process", argv=["cat", "/proc/self/oom_score_adj"]).data) == min(1000, own + 300)


def test_a_command_cannot_look_into_the_helper(helper: RawHelper) -> None:
    # Root may everything, where it has its capabilities; in a box it has not.
    if os.getuid() == 0:
        command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "bash", "-c"]
    else:
        command = ["bash", "-c"]
    pid = helper.hello["pid"]
    for looking in (f"echo >/proc/{pid}/fd/1", f"cat /proc/{pid}/environ", f"head -c1 /proc/{pid}/mem"):
        reply = helper.ask("process", argv=[*command, looking])
        assert reply.result["code"] != 0, looking
        assert b"ermission denied" in reply.stderr
    helper.ping()


def test_a_line_may_be_longer_than_an_argument_and_than_a_frame(helper: RawHelper) -> None:
    lines = "".join(f"line {number:06}\n" for number in range(25_000))
    reply = helper.ask("process", line=f"cat <<'END'\n{lines}END\necho \"$0 $#\" >&2; exit 5\n")
    assert reply.result == {"code": 5}
    assert reply.data == lines.encode()
    assert reply.stderr == b"bash 0\n"


def test_what_cannot_be_started_is_said(helper: RawHelper, tmp_path: Path) -> None:
    assert helper.ask("process", line="true", cwd="not/there").reason == "missing"
    assert "not/there" in helper.ask("process", line="true", cwd="not/there").message
    (tmp_path / "root" / "file").touch()
    assert helper.ask("process", line="true", cwd="file").reason == "not_a_folder"
    reply = helper.ask("process", argv=["echo", *("x" * 100_000 for _ in range(40))])
    assert reply.message.startswith("Could not start ['echo'] (the first 1 of 41 arguments) in ")
    never: list[dict[str, Any]] = [
        {},
        {"line": "a", "argv": ["b"]},
        {"argv": []},
        {"argv": [1]},
        {"line": "a\0b"},
        {"argv": ["a\0b"]},
    ]
    for wrong in never:
        assert helper.ask("process", **wrong).result["error"]["kind"] == "workspace", wrong
    environments: list[Any] = [{"A=B": "c"}, {"": "c"}, {"A": "\0"}, {"A": 1}, []]
    for env in environments:
        assert helper.ask("process", line="true", env=env).result["error"]["kind"] == "workspace", env
    for size in ([0, 1], [80], "80", [80, 70000], [True, 1]):
        assert helper.ask("process", line="true", pty=True, size=size).result["error"]["kind"] == "workspace", size


def test_a_terminal_has_its_size_and_belongs_to_the_process(helper: RawHelper) -> None:
    watching = "trap 'stty size' WINCH; stty size; tty; echo own >/dev/tty; while :; do sleep 0.05; done"
    channel = helper.open("process", line=watching, pty=True, size=[101, 31])
    assert b"31 101\r\n/dev/pts/" in helper.wait_for_output(channel, b"own\r\n")
    assert helper.wait_for(EOF, channel).payload == b"\2"
    assert helper.call(channel, "resize", columns=132, rows=50)["result"] is None
    helper.wait_for_output(channel, b"50 132\r\n")
    channel = helper.open("process", argv=["bash", "-c", "echo up; exec sleep 1000"], pty=True)
    helper.wait_for_output(channel, b"up\r\n")
    helper.send(DATA, channel, b"\x03")
    assert helper.wait_for(EXIT, channel).value == {"code": 130}
    helper.send(CANCEL, channel)
    assert helper.finish(channel).result == {"code": 130}


def test_the_end_of_what_is_typed_is_ctrl_d_as_often_as_it_is_sent(helper: RawHelper) -> None:
    channel = helper.open("process", line="cat; echo one; cat; echo two", pty=True)
    helper.wait_for(EOF, channel)
    for word in (b"one\r\n", b"two\r\n"):
        helper.send(EOF, channel, b"\0")
        helper.wait_for_output(channel, word)
    assert helper.wait_for(EXIT, channel).value == {"code": 0}


def test_calls_are_answered_or_refused(helper: RawHelper) -> None:
    channel = helper.open("process", line="trap 'exit 7' USR1; echo up; while :; do sleep 0.05; done")
    helper.wait_for_output(channel, b"up\n")
    assert "has no terminal" in helper.call(channel, "resize", columns=1, rows=1)["error"]["message"]
    for wrong in ({}, {"signal": -1}, {"signal": 1000}, {"signal": "9"}):
        assert "error" in helper.call(channel, "signal", **wrong)
    assert "error" in helper.call(channel, "fly")
    helper.call(channel, "signal", signal=signal.SIGUSR1)
    assert helper.wait_for(EXIT, channel).value == {"code": 7}
    assert helper.call(channel, "signal", signal=signal.SIGTERM)["result"] is None
    assert helper.call(channel, "terminate")["result"] is True


@pytest.mark.slow
def test_leaving_ends_all_that_was_started_whether_it_takes_notice_or_not(helper: RawHelper, tmp_path: Path) -> None:
    command = """
        trap '' TERM
        echo $$ >>pids
        setsid bash -c 'echo $$ >>pids; exec sleep 1000' &
        (setsid bash -c '(echo $BASHPID >>pids; trap "" TERM; while :; do sleep 0.1; done) &' >/dev/null 2>&1 &)
        env -i "$(command -v setsid)" "$(command -v bash)" -c 'echo $$ >>pids; while :; do sleep 0.1; done' &
        while :; do sleep 0.1; done
    """
    for terminal in (False, True):
        channel = helper.open("process", line=command, pty=terminal)
        pids = wait_for_pids(tmp_path / "root" / "pids", 4)
        helper.send(CANCEL, channel)
        # Its terminal is closed under it.
        assert helper.finish(channel).result == {"code": 129 if terminal else 137}
        assert not any(is_running(pid) for pid in pids)
        (tmp_path / "root" / "pids").unlink()


def test_a_process_has_time_to_end_well(helper: RawHelper) -> None:
    channel = helper.open("process", line="trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done")
    helper.wait_for_output(channel, b"up\n")
    assert helper.call(channel, "terminate") == {"id": 3, "result": True}
    assert helper.wait_for(EXIT, channel).value == {"code": 3}
    helper.wait_for_output(channel, b"bye\n")


def test_who_reads_nothing_any_more_is_reported_and_holds_nobody_up(helper: RawHelper) -> None:
    channel = helper.open("process", line="exec 0<&-; echo closed; sleep 1000")
    helper.wait_for_output(channel, b"closed\n")
    helper.send_data(channel, b"x" * WINDOW)
    assert helper.wait_for(EOF, channel).payload == b"\0"
    assert helper.ask("process", argv=["echo", "other"]).data == b"other\n"


def test_what_a_process_writes_waits_for_credit_and_nothing_is_lost(helper: RawHelper) -> None:
    channel = helper.open("process", line="head -c 3000000 /dev/zero | tee >(cat >&2)")
    seen = 0
    while seen < WINDOW:
        seen += len(helper.wait_for(DATA, channel).payload)
    assert seen == WINDOW
    # Whatever comes before the answer was sent in spite of the window.
    helper.ping()
    assert not [frame for frame in helper.waiting if frame.kind == DATA]
    helper.credit(channel, WINDOW)
    reply = helper.finish(channel)
    assert len(reply.data) == 3_000_000 - WINDOW
    assert len(reply.stderr) == 3_000_000


def test_orphans_are_collected(helper: RawHelper, tmp_path: Path) -> None:
    channel = helper.open(
        "process", line="for i in 1 2 3; do (setsid bash -c 'echo $$ >>pids; sleep 0.05' &) ; done; echo up; cat"
    )
    helper.wait_for_output(channel, b"up\n")
    pids = wait_for_pids(tmp_path / "root" / "pids", 3)
    wait_until_gone(*pids)
    helper.send(CANCEL, channel)
    helper.finish(channel)
    children = Path(f"/proc/{helper.process.pid}/task/{helper.process.pid}/children").read_text().split()
    assert children == []
