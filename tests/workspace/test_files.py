from __future__ import annotations

import os
import socket
import tempfile
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from agentcore.errors import PathError
from agentcore.testing import cancel_everywhere
from agentcore.testing.workspace_process_contract import refused
from agentcore.workspace import LocalWorkspace
from agentcore.workspace.files import read_file, replacement, write_file
from agentcore.workspace.local import make_private_folder, remove_private_folder


def test_a_write_that_fails_leaves_the_old_content_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")

    def fail() -> None:
        with replacement(str(tmp_path / "file")) as descriptor:
            os.write(descriptor, b"half of the new")
            raise RuntimeError("the power went out")

    with pytest.raises(RuntimeError):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "old"


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="a file always has a name here")
def test_a_program_that_is_killed_while_it_writes_leaves_nothing(tmp_path: Path) -> None:
    try:
        os.close(os.open(tmp_path, os.O_TMPFILE | os.O_WRONLY))
    except OSError:
        pytest.skip("a file always has a name in this file system")
    (tmp_path / "old").write_text("old")
    (tmp_path / "old").chmod(0o640)
    for name in ("old", "new"):
        before = sorted(path.name for path in tmp_path.iterdir())
        with replacement(str(tmp_path / name)) as descriptor:
            os.write(descriptor, b"half")
            # What is there now is what would be left.
            assert sorted(path.name for path in tmp_path.iterdir()) == before
        assert (tmp_path / name).read_text() == "half"
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o640


def nothing_exists(path: str) -> bool:
    return not path


@pytest.mark.parametrize("missing", ["O_TMPFILE", "proc"])
def test_a_file_that_has_to_have_a_name_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    if missing == "proc":
        monkeypatch.setattr(os.path, "exists", nothing_exists)
    else:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    write_file(str(tmp_path / "file"), b"one")
    write_file(str(tmp_path / "file"), b"two")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "two")]


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    (tmp_path / "file").write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The nearest to a full disk that every machine has; Python ignores the signal that comes with it.
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(PathError) as raised:
            write_file(str(tmp_path / "file"), b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert raised.value.reason == "failed"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "old"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_is_read_only_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "file").chmod(0o444)
    with pytest.raises(PathError) as raised:
        write_file(str(tmp_path / "file"), b"new")
    assert raised.value.reason == "denied"
    assert (tmp_path / "file").read_text() == "old"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_file_stays_its_owners(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    os.chown(tmp_path / "file", 12345, 23456)
    write_file(str(tmp_path / "file"), b"new")
    found = (tmp_path / "file").stat()
    assert (found.st_uid, found.st_gid) == (12345, 23456)


def test_a_file_that_does_not_tell_its_size_is_read_to_its_limit() -> None:
    assert read_file("/proc/self/stat", 10_000).startswith(str(os.getpid()).encode())
    with pytest.raises(PathError) as raised:
        read_file("/proc/self/stat", 10)
    assert raised.value.reason == "too_large"


async def test_a_folder_is_not_copied_into_itself(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    async with LocalWorkspace(tmp_path) as workspace:
        for target in ("folder", "folder/below", "link/below"):
            assert (await refused(PathError, workspace.upload(tmp_path / "folder", target))).reason == "invalid"
        await workspace.upload(tmp_path / "folder", "folder2")


async def test_what_belongs_to_a_process_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    os.mkfifo(tmp_path / "from" / "pipe")
    (tmp_path / "from" / "file").write_text("x")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "from" / "socket"))
        async with LocalWorkspace(tmp_path) as workspace:
            with anyio.fail_after(30):
                await workspace.download("from", tmp_path / "to")
                assert (
                    await refused(PathError, workspace.download("from/pipe", tmp_path / "p"))
                ).reason == "not_a_file"
    assert [path.name for path in (tmp_path / "to").iterdir()] == ["file"]


async def test_cancelled_at_every_checkpoint_a_write_is_whole_or_nothing(tmp_path: Path) -> None:
    async with LocalWorkspace(tmp_path) as workspace:
        await workspace.write("file", b"old" * 100_000)
        with anyio.fail_after(60):
            for attempt in cancel_everywhere():
                await attempt(workspace.write, "file", b"new" * 100_000)
                assert await workspace.read("file") in {b"old" * 100_000, b"new" * 100_000}
        assert [entry.name for entry in await workspace.list()] == ["file"]


async def test_a_cancelled_copy_stops_within_a_file(tmp_path: Path) -> None:
    origin, copied = anyio.Path(tmp_path / "from"), anyio.Path(tmp_path / "to")
    await origin.mkdir()
    await (origin / "small").write_text("x")
    await (origin / "zeros").touch()
    # Nothing on the disk, and long enough to be still at it.
    os.truncate(origin / "zeros", 1 << 33)

    def is_written_to() -> bool:
        # It has no name in this folder, where that can be had, but this process has it open.
        held = [path.name for path in Path(copied).glob(".*")]
        for descriptor in Path("/proc/self/fd").glob("*"):
            with suppress(OSError):
                held.append(str(descriptor.readlink()))
        return any(name.startswith(f"{copied}/") or name.endswith("-tmp") for name in held)

    async def under_way() -> bool:
        return await (copied / "small").exists() and await anyio.to_thread.run_sync(is_written_to)

    async with LocalWorkspace(tmp_path) as workspace:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(workspace.upload, origin, "to")
                while not await under_way():
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            while await under_way():
                await anyio.lowlevel.checkpoint()
    assert [path.name async for path in copied.iterdir()] == ["small"]


@pytest.mark.parametrize("git", [False, True], ids=["the project", "the repository"])
def test_a_private_folder_is_not_inside(git: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    (outer / ("project" if git else "tmp")).mkdir(parents=True)
    if git:
        (outer / ".git").mkdir()
        (outer / "tmp").mkdir()
    root = str(outer / "project" if git else outer)
    monkeypatch.setattr(tempfile, "tempdir", str(outer / "tmp"))
    folder = make_private_folder(root, "outputs")
    try:
        assert not Path(folder).is_relative_to(outer)
        assert folder == make_private_folder(root, "outputs")
    finally:
        remove_private_folder(root, "outputs")


def test_two_projects_have_two_private_folders_of_one_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    first, second = (make_private_folder(f"/project/{number}", "outputs") for number in (1, 2))
    assert first != second
    remove_private_folder("/project/1", "outputs")
    assert not Path(first).exists()
    assert Path(second).is_dir()


def test_a_folder_that_others_can_open_is_not_used_as_private(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    prepared = tmp_path / f"agentcore-{os.getuid()}"
    prepared.mkdir()
    prepared.chmod(0o755)
    with pytest.raises(PathError, match="TMPDIR"):
        make_private_folder("/project", "outputs")
    prepared.rmdir()
    (tmp_path / "elsewhere").mkdir(0o700)
    prepared.symlink_to("elsewhere")
    with pytest.raises(PathError, match="TMPDIR"):
        make_private_folder("/project", "outputs")


async def test_reading_what_is_no_file_leaves_nothing_open(tmp_path: Path) -> None:
    async with LocalWorkspace(tmp_path) as workspace:
        for _ in range(3):
            with pytest.raises(PathError):
                await workspace.read(".")
            with pytest.raises(PathError):
                await workspace.read("missing")
        assert str(tmp_path) not in open_files()


def open_files() -> list[str]:
    """Give the paths of what this process has open."""
    return [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
