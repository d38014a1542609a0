"""Files, private folders and trees in a box."""

from __future__ import annotations

import json
import os
import stat as modes
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from boxes_raw import ANSWER, CANCEL, DATA, EACH_PYTHON, EOF, RESULT, WINDOW, RawHelper, open_helper, wait_until_gone
from rounds import some_quick


@pytest.fixture(params=EACH_PYTHON)
def helper(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RawHelper]:
    with open_helper(request.param, tmp_path) as helper:
        yield helper


@pytest.fixture
def root(helper: RawHelper, tmp_path: Path) -> Path:
    return tmp_path / "root"


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_what_was_written_is_read(helper: RawHelper, root: Path) -> None:
    data = bytes(range(256)) * 12_000
    assert helper.ask("write", path="deep/er/file", data=data).result == {}
    assert (root / "deep/er/file").read_bytes() == data
    reply = helper.ask("read", path=str(root / "deep/er/file"), max_bytes=len(data))
    assert (reply.result, reply.data) == ({}, data)
    assert helper.ask("write", path="empty", data=b"").result == {}
    assert helper.ask("read", path="empty", max_bytes=0).data == b""


def test_appending_adds_to_the_end(helper: RawHelper, root: Path) -> None:
    for word in (b"one\n", b"two\n"):
        helper.ask("write", path="new/log", append=True, data=word)
    assert (root / "new/log").read_text() == "one\ntwo\n"


def test_writing_keeps_modes_and_links(helper: RawHelper, root: Path) -> None:
    (root / "script").write_text("old")
    (root / "script").chmod(0o754)
    (root / "link").symlink_to("script")
    (root / "dangling").symlink_to("made")
    helper.ask("write", path="link", data=b"new", mode=0o600)
    helper.ask("write", path="dangling", data=b"new", mode=0o4755)
    assert (root / "link").is_symlink()
    assert (root / "script").read_text() == "new"
    assert modes.S_IMODE((root / "script").stat().st_mode) == 0o754
    assert modes.S_IMODE((root / "made").stat().st_mode) == 0o755
    assert names(root) == ["dangling", "link", "made", "script"]


@pytest.mark.parametrize("ended", ["cancelled", "cut", "killed"])
def test_of_what_was_not_written_to_its_end_nothing_is_left(ended: str, helper: RawHelper, root: Path) -> None:
    (root / "file").write_text("old")
    channel = helper.open("write", path="file")
    other = helper.open("write", path="new/file")
    for each in (channel, other):
        helper.send(DATA, each, b"half of it")
    helper.ping()
    if ended == "cancelled":
        for each in (channel, other):
            helper.send(CANCEL, each)
            helper.finish(each)
    else:
        if ended == "killed":
            helper.process.kill()
        helper.end_input()
        helper.process.wait()
    assert (root / "file").read_text() == "old"
    assert names(root) == ["file", "new"]
    assert names(root / "new") == []


def test_what_cannot_be_used_is_said_with_the_path_as_it_was_written(helper: RawHelper, root: Path) -> None:
    (root / "folder").mkdir()
    (root / "file").write_text("text")
    os.mkfifo(root / "pipe")
    (root / "loop").symlink_to("loop")
    (root / "big").write_bytes(b"x" * 1001)
    reasons = {
        "not/there": "missing",
        "folder": "is_a_folder",
        "file/below": "not_a_folder",
        "pipe": "not_a_file",
        "/dev/zero": "not_a_file",
        "big": "too_large",
        "loop": "invalid",
        "a\0b": "invalid",
        "n" * 300: "invalid",
    }
    for path, reason in reasons.items():
        reply = helper.ask("read", path=path, max_bytes=1000)
        assert (reply.reason, reply.result["error"]["path"]) == (reason, path)
        assert repr(path) in reply.message
    for path in ("folder", "file/below", "pipe", "/dev/null", "loop", "a\0b"):
        for append in (False, True):
            reply = helper.ask("write", path=path, append=append, data=b"x")
            assert reply.reason == reasons.get(path, "not_a_file"), path
    assert helper.ask("list", path="gone").reason == "missing"
    assert helper.ask("list", path="file").reason == "not_a_folder"
    helper.ping()


def test_files_of_proc_are_read_and_bounded_though_they_say_that_they_are_empty(helper: RawHelper) -> None:
    assert b"Name:" in helper.ask("read", path="/proc/self/status", max_bytes=100_000).data
    assert helper.ask("read", path="/proc/self/status", max_bytes=100).reason == "too_large"


def test_a_listing_tells_kinds_and_sizes_in_the_order_of_names(helper: RawHelper, root: Path) -> None:
    (root / "b-dir").mkdir()
    (root / "a-file").write_text("12345")
    os.utime(root / "a-file", (1.5, 1580702706.25))
    (root / "c-link").symlink_to("gone")
    os.mkfifo(root / "d-pipe")
    (root / os.fsdecode(b"caf\xe9\n")).touch()
    entries = json.loads(helper.ask("list", path=".").data)
    assert [(entry["name"], entry["kind"]) for entry in entries] == [
        ("a-file", "file"),
        ("b-dir", "dir"),
        ("caf\\xe9\n", "file"),
        ("c-link", "link"),
        ("d-pipe", "other"),
    ] or [entry["name"] for entry in entries] == sorted(entry["name"] for entry in entries)
    by_name = {entry["name"]: entry for entry in entries}
    assert by_name["a-file"] == {"name": "a-file", "kind": "file", "size": 5, "modified": 1580702706.25}
    assert by_name["caf\\xe9\n"]["kind"] == "file"


def test_a_folder_may_be_longer_than_a_frame_and_a_window(helper: RawHelper, root: Path) -> None:
    for number in range(3_000):
        (root / f"{number:04}-{'n' * 240}").touch()
    entries = json.loads(helper.ask("list", path=".").data)
    assert [int(entry["name"][:4]) for entry in entries] == [*range(3_000)]
    assert json.loads(helper.ask("list", path="/proc/self/fdinfo").data) != []


def test_looking_at_a_path_follows_links(helper: RawHelper, root: Path) -> None:
    (root / "file").write_text("12345")
    (root / "link").symlink_to("file")
    (root / "dangling").symlink_to("gone")
    entry = helper.ask("stat", path="link").result["entry"]
    assert (entry["name"], entry["kind"], entry["size"]) == ("link", "file", 5)
    for path in ("dangling", "gone", "file/below"):
        assert helper.ask("stat", path=path).result == {"entry": None}
    assert helper.ask("stat", path=".").result["entry"]["kind"] == "dir"


def test_names_that_are_not_utf_8_are_usable(helper: RawHelper, root: Path) -> None:
    path = os.fsdecode(b"caf\xe9")
    helper.ask("write", path=path, data=b"x")
    assert [os.fsencode(name) for name in names(root)] == [b"caf\xe9"]
    assert helper.ask("read", path=path, max_bytes=9).data == b"x"
    helper.ask("process", line=f"mv {path} other")
    assert names(root) == ["other"]


def test_a_private_folder_is_only_this_users_and_the_same_each_time(helper: RawHelper, tmp_path: Path) -> None:
    path = helper.ask("private", name="outputs").result["path"]
    assert path == helper.ask("private", name="outputs").result["path"]
    assert path == str(tmp_path / "state" / "private" / "outputs")
    assert modes.S_IMODE(os.stat(path).st_mode) == 0o700
    os.symlink("/etc", f"{path}/link")
    os.makedirs(f"{path}/a/b")
    Path(f"{path}/a/b/c").write_text("x")
    assert helper.ask("unprivate", name="outputs").result == {"path": path}
    assert not os.path.exists(path)
    assert os.path.exists("/etc/passwd")
    assert helper.ask("unprivate", name="outputs").result == {"path": path}
    for name in ("../up", "", "a/b", ".hidden", "n" * 129, "a\n"):
        assert helper.ask("private", name=name).reason == "invalid"
        assert helper.ask("unprivate", name=name).reason == "invalid"


def test_a_private_folder_that_is_a_link_is_not_followed(helper: RawHelper, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    helper.ask("private", name="other")
    (tmp_path / "state" / "private" / "mine").symlink_to(tmp_path / "elsewhere")
    assert helper.ask("private", name="mine").reason == "denied"
    helper.ask("unprivate", name="mine")
    assert (tmp_path / "elsewhere").is_dir()


def record(path: str, kind: str, content: bytes | None = None, **more: Any) -> bytes:
    text = json.dumps({"path": path, "kind": kind, "mode": 0o644, **more}).encode()
    data = struct.pack(">I", len(text)) + text
    if content is not None:
        for piece in (content, b"") if content else (b"",):
            data += struct.pack(">I", len(piece)) + piece
    return data


END = struct.pack(">I", 0)


def test_a_tree_travels_there_and_back(helper: RawHelper, root: Path) -> None:
    big = bytes(range(256)) * 5_000
    tree = record("", "dir") + record("sub", "dir") + record("sub/empty", "dir")
    tree += record("sub/two words\n", "file", big, mode=0o755) + record(os.fsdecode(b"caf\xe9"), "file", b"")
    tree += record("link", "link", target="sub/two words\n") + record("away", "link", target="/nowhere") + END
    (root / "there").mkdir()
    (root / "there" / "kept").write_text("kept")
    os.mkfifo(root / "there" / "pipe")
    assert helper.ask("put_tree", path="there", data=tree).result == {}
    assert (root / "there/link").read_bytes() == big
    assert os.access(root / "there/sub/two words\n", os.X_OK)
    assert (root / "there/sub/empty").is_dir()
    sent = helper.ask("get_tree", path="there")
    assert sent.result == {}
    assert helper.ask("put_tree", path="back", data=sent.data).result == {}
    assert helper.ask("get_tree", path="back").data == sent.data
    assert names(root / "back") == sorted(set(names(root / "there")) - {"pipe"})
    assert (root / "back/away").readlink() == Path("/nowhere")


def test_a_file_is_a_tree_too(helper: RawHelper, root: Path) -> None:
    assert helper.ask("put_tree", path="new/file", data=record("", "file", b"text", mode=0o6755) + END).result == {}
    assert modes.S_IMODE((root / "new/file").stat().st_mode) == 0o755
    (root / "link").symlink_to("new/file")
    data = helper.ask("get_tree", path="link").data
    assert helper.ask("put_tree", path="copy", data=data).result == {}
    assert (root / "copy").read_text() == "text"
    assert helper.ask("get_tree", path="gone").reason == "missing"
    assert helper.ask("get_tree", path="/dev/null").reason == "not_a_file"


@pytest.mark.parametrize(
    "tree",
    some_quick(
        [
            record("../up", "file", b"x"),
            record("a/../../up", "file", b"x"),
            record("/tmp/absolute-agentcore", "file", b"x"),
            record("a//b", "file", b"x"),
            record(".", "dir"),
            record("a\0b", "file", b"x"),
            record("out", "link", target="../outside") + record("out/file", "file", b"x"),
            record("out", "link", target="../outside") + record("out/sub/file", "file", b"x"),
            record("out", "link", target="../outside") + record("out/sub", "dir"),
            record("out", "link", target="../outside/file") + record("out", "file", b"x"),
            record("out", "link", target="../outside") + record("out/link", "link", target="x"),
            record("", "link", target="../outside"),
            record("x", "device"),
            record("x", "file", b"x", mode=-1),
            record("x", "file", b"x", mode="rwx"),
            struct.pack(">I", 0x7FFFFFFF),
            struct.pack(">I", 2) + b"[]",
            record("x", "file"),
            b"\0\0",
            b"",
        ],
        4,
    ),
)
def test_a_tree_leads_nowhere_else(tree: bytes, helper: RawHelper, root: Path) -> None:
    (root / "outside").mkdir()
    channel = helper.open("put_tree", path="tree")
    helper.send(DATA, channel, tree)
    helper.send(EOF, channel, b"\0")
    assert "error" in helper.finish(channel).result
    assert names(root / "outside") == []
    assert set(names(root)) <= {"outside", "tree"}
    assert not [name for name in names(root / "tree") if name != "out"] if (root / "tree").exists() else True
    helper.ping()


def test_a_tree_that_is_cancelled_leaves_no_half_file(helper: RawHelper, root: Path) -> None:
    channel = helper.open("put_tree", path="tree")
    helper.send(DATA, channel, record("whole", "file", b"x") + record("half", "file", b"x" * 100)[:-50])
    helper.ping()
    helper.send(CANCEL, channel)
    helper.finish(channel)
    assert names(root / "tree") == ["whole"]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can reach; pytest's own are closed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder


def test_at_the_limit_of_processes_files_and_signals_still_work(open_folder: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root, for a user who may have no more processes: run the tests as root")
    root = open_folder / "root"
    root.mkdir()
    root.chmod(0o777)
    python = open_folder / "limited"
    python.write_text('#!/bin/sh\nexec setpriv --reuid 54321 --clear-groups prlimit --nproc=6 /usr/bin/python3 "$@"\n')
    python.chmod(0o755)
    with open_helper(str(python), open_folder) as helper:
        bomb = helper.open("process", line="for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; echo $!; wait")
        while True:
            channel = helper.open("process", argv=["sleep", "1000"])
            while (frame := helper.frame()).channel != channel or frame.kind not in {ANSWER, RESULT}:
                pass
            if frame.kind == RESULT:
                assert "Could not start" in frame.value["error"]["message"]
                break
        assert helper.ask("write", path="file", data=b"x" * WINDOW).result == {}
        assert len(json.loads(helper.ask("list", path=".").data)) == 1
        assert helper.ask("read", path="file", max_bytes=WINDOW).data == b"x" * WINDOW
        helper.send(CANCEL, bomb)
        assert "code" in helper.finish(bomb).result
        pid = helper.process.pid
    wait_until_gone(pid)
