"""What comes out of a box may be anybody's: it goes where it was asked to, or nowhere."""

from __future__ import annotations

import json
import os
from pathlib import Path
from struct import pack
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore.errors import PathError, WorkspaceLost
from agentcore.testing.workspace_process_contract import refused
from agentcore_sandbox import transfer
from agentcore_sandbox.frames import FrameKind
from agentcore_sandbox.workspace import BoxWorkspace
from boxes_fake_helper import FakeBox, FakeHelper, answering, be_well
from boxes_plain import left_over, open_plain

END = pack(">I", 0)


def record(path: str, kind: str = "file", **more: Any) -> bytes:
    text = json.dumps({"path": path, "kind": kind, "mode": 0o644, **more}).encode()
    return pack(">I", len(text)) + text


def file(path: str, data: bytes = b"content", **more: Any) -> bytes:
    return record(path, **more) + pack(">I", len(data)) + data + END


FOLDER = record("", "dir")


def sending(tree: bytes, *, result: dict[str, Any] | None = None) -> BoxWorkspace:
    """Return a workspace whose helper sends this instead of a folder."""

    async def answer(helper: FakeHelper, channel: int) -> None:
        for at in range(0, len(tree), 60_000):
            await helper.say(FrameKind.DATA, channel, tree[at : at + 60_000])
        await helper.say(FrameKind.RESULT, channel, result or {})

    return BoxWorkspace(FakeBox(answering(answer), be_well))


@pytest.mark.parametrize(
    "tree",
    [
        pytest.param(FOLDER + file("../out"), id="up"),
        pytest.param(FOLDER + file("a/../../out"), id="down and up"),
        pytest.param(FOLDER + file("/out"), id="absolute"),
        pytest.param(FOLDER + record("..", "dir"), id="the folder above"),
        pytest.param(FOLDER + record("a", "link", target="..") + file("a/out"), id="through a link"),
        pytest.param(FOLDER + record("a", "link", target="..") + record("a/b", "dir"), id="a folder through a link"),
        pytest.param(FOLDER + record("a", "link", target="../out") + file("a"), id="onto a link"),
        pytest.param(FOLDER + file("a") + file("a"), id="a file twice"),
        pytest.param(FOLDER + file("a") + file("a/b"), id="below a file"),
        pytest.param(FOLDER + record("x" * 300, "dir"), id="a name that is too long"),
        pytest.param(file("") + file("a"), id="below the file itself"),
    ],
)
async def test_a_tree_that_leads_elsewhere_is_refused_and_nothing_of_it_is_left(tree: bytes, tmp_path: Path) -> None:
    async with sending(tree + END) as workspace:
        await refused(PathError, workspace.download("x", tmp_path / "there" / "in"))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "tree",
    [
        pytest.param(record("", "link", target="/etc/passwd") + END, id="a link instead of a file"),
        pytest.param(FOLDER + record("a", "device") + END, id="a device"),
        pytest.param(FOLDER + record("a", "link") + END, id="a link to nowhere"),
        pytest.param(FOLDER + record("a\0b", "dir") + END, id="a NUL"),
        pytest.param(FOLDER + record("a", mode=-1) + END, id="a mode that is none"),
        pytest.param(FOLDER + b"\0\0\0\2[]" + END, id="no object"),
        pytest.param(FOLDER + b"\xff\xff\xff\xff", id="a record of 4 GB"),
        pytest.param(FOLDER + file("a"), id="no end"),
        pytest.param(FOLDER + record("a") + pack(">I", 1_000_000) + b"x" * 999_999, id="a part of a file"),
        pytest.param(FOLDER + END + file("a"), id="more after the end"),
        pytest.param(b"", id="nothing"),
    ],
)
async def test_what_is_no_tree_ends_the_stream_and_nothing_of_it_is_left(tree: bytes, tmp_path: Path) -> None:
    async with sending(tree) as workspace:
        await refused(WorkspaceLost, workspace.download("x", tmp_path / "in"))
        assert await workspace.stat("a") is None
    assert os.listdir(tmp_path) == []


async def test_more_members_than_are_allowed_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "MAX_MEMBERS", 3)
    async with sending(FOLDER + file("a") + file("b") + file("c") + END) as workspace:
        assert (await refused(PathError, workspace.download("x", tmp_path / "in"))).reason == "too_large"
    assert os.listdir(tmp_path) == []


async def test_an_error_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    error = {"kind": "path", "path": "/workspace/x/b", "reason": "denied", "message": "No permission."}
    async with sending(FOLDER + file("a"), result={"error": error}) as workspace:
        assert (await refused(PathError, workspace.download("x", tmp_path / "in"))).reason == "denied"
    assert os.listdir(tmp_path) == []


async def test_special_bits_do_not_come_out(tmp_path: Path) -> None:
    async with sending(FOLDER + file("a", mode=0o6755) + END) as workspace:
        await workspace.download("x", tmp_path / "in")
    assert (tmp_path / "in" / "a").stat().st_mode & 0o7777 == 0o755


async def test_a_link_that_an_earlier_download_brought_leads_nothing_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_text("kept")
    links = record("folder", "link", target="../elsewhere") + record("file", "link", target="../elsewhere/secret")
    async with sending(FOLDER + links + END) as workspace:
        await workspace.download("x", tmp_path / "in")
    # Files take the place of links.
    async with sending(FOLDER + file("file") + END) as workspace:
        await workspace.download("x", tmp_path / "in")
    assert (tmp_path / "in" / "file").read_text() == "content"
    assert not (tmp_path / "in" / "file").is_symlink()
    # A folder that is a link here is refused before anything is replaced.
    async with sending(FOLDER + file("file", b"new") + file("folder/secret") + END) as workspace:
        error = await refused(PathError, workspace.download("x", tmp_path / "in"))
    assert error.reason == "invalid"
    assert "link" in str(error)
    assert (tmp_path / "in" / "file").read_text() == "content"
    assert (tmp_path / "elsewhere" / "secret").read_text() == "kept"
    assert os.listdir(tmp_path / "elsewhere") == ["secret"]


async def test_a_download_into_a_folder_keeps_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "kept").write_text("kept")
    (tmp_path / "in" / "script").write_text("old")
    (tmp_path / "in" / "script").chmod(0o750)
    async with sending(FOLDER + file("script") + file("new") + END) as workspace:
        await workspace.download("x", tmp_path / "in")
    assert {path.name: path.read_text() for path in (tmp_path / "in").iterdir()} == {
        "kept": "kept",
        "script": "content",
        "new": "content",
    }
    assert (tmp_path / "in" / "script").stat().st_mode & 0o777 == 0o750


async def test_a_download_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    async def answer(helper: FakeHelper, channel: int) -> None:
        await helper.say(FrameKind.DATA, channel, FOLDER + file("a") + record("b") + pack(">I", 1000) + b"x")
        while not list(tmp_path.rglob("b")):
            await checkpoint()
        begun.set()

    begun = anyio.Event()
    async with BoxWorkspace(FakeBox(answering(answer))) as workspace:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(workspace.download, "x", tmp_path / "in")
                await begun.wait()
                tasks.cancel_scope.cancel()
    assert os.listdir(tmp_path) == []


# Between two real ends.


@pytest.mark.slow
async def test_a_large_file_and_a_thousand_small_ones_travel(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "large").write_bytes(os.urandom(1 << 20) * 20)
    for number in range(1000):
        (tmp_path / "tree" / f"{number}").write_text(str(number))
    async with open_plain(tmp_path) as workspace:
        await workspace.upload(tmp_path / "tree", "tree")
        await workspace.download("tree", tmp_path / "back")
        assert left_over(tmp_path) == []
    assert (tmp_path / "back" / "large").read_bytes() == (tmp_path / "tree" / "large").read_bytes()
    assert len(os.listdir(tmp_path / "back")) == 1001


async def test_a_pipe_is_neither_sent_nor_fetched(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    async with open_plain(tmp_path) as workspace:
        with anyio.fail_after(30):
            assert (await refused(PathError, workspace.upload(tmp_path / "pipe", "a"))).reason == "not_a_file"
            await workspace.run("mkfifo pipe")
            assert (await refused(PathError, workspace.download("pipe", tmp_path / "a"))).reason == "not_a_file"
            assert await workspace.stat("a") is None


async def test_what_cannot_be_written_inside_is_said_before_all_of_it_was_sent(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 10_000_000)
    async with open_plain(tmp_path) as workspace:
        await workspace.run("mkdir folder; echo >file")
        with anyio.fail_after(30):
            assert (await refused(PathError, workspace.upload(tmp_path / "large", "folder"))).reason == "is_a_folder"
            error = await refused(PathError, workspace.upload(tmp_path / "large", "file/below"))
            assert error.reason == "not_a_folder"
