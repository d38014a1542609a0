"""Disks that tell, fail, hang and lose their power."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from random import Random

import anyio
import pytest

from agentcore.testing import CrashingDisk, DiskOperation, FaultyDisk, PowerLost, RecordingDisk


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "disk"
    folder.mkdir()
    return folder


def write(disk: RecordingDisk | FaultyDisk | CrashingDisk, path: Path, *pieces: bytes, sync: bool = False) -> None:
    descriptor = disk.open_append(str(path))
    try:
        for piece in pieces:
            disk.write(descriptor, piece)
        if sync:
            disk.sync(descriptor)
    finally:
        os.close(descriptor)


def cut(disk: CrashingDisk, path: Path, length: int) -> None:
    descriptor = disk.open_append(str(path))
    try:
        disk.truncate(descriptor, length)
    finally:
        os.close(descriptor)


def found(disk: CrashingDisk, folder: Path, kept: object = "least") -> dict[str, bytes | None]:
    """What is there after a loss of power: the bytes of files, None for folders."""
    disk.restore(folder, kept=kept)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def test_a_recording_disk_tells_what_was_done_in_order(tmp_path: Path) -> None:
    disk = RecordingDisk()
    file, folder, moved = str(tmp_path / "f"), str(tmp_path / "d"), str(tmp_path / "g")
    write(disk, tmp_path / "f", b"ab", b"c", sync=True)
    disk.make_folder(folder)
    disk.sync_folder(folder)
    disk.replace(file, moved)
    assert disk.read(moved) == b"abc"
    disk.remove_folder(folder)
    assert list(disk.operations) == [
        DiskOperation("open_append", file),
        DiskOperation("write", file, data=b"ab"),
        DiskOperation("write", file, data=b"c"),
        DiskOperation("sync", file),
        DiskOperation("make_folder", folder),
        DiskOperation("sync_folder", folder),
        DiskOperation("replace", file, target=moved),
        DiskOperation("read", moved),
        DiskOperation("remove_folder", folder),
    ]
    assert (os.listdir(tmp_path), (tmp_path / "g").read_bytes()) == (["g"], b"abc")
    disk.clear()
    with pytest.raises(FileNotFoundError):
        disk.read(str(tmp_path / "none"))
    assert list(disk.operations) == [], "what failed is not recorded"


def test_a_fault_strikes_where_it_was_told_to_and_nowhere_else(tmp_path: Path) -> None:
    disk = FaultyDisk()
    disk.fail("write", at=2, times=2, code=errno.EIO)
    path = tmp_path / "f"
    write(disk, path, b"1")
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output error") as error:
            write(disk, path, b"x")
        assert (error.value.errno, error.value.filename) == (errno.EIO, str(path))
    write(disk, path, b"2", sync=True)
    assert path.read_bytes() == b"12"


def test_a_fault_may_last_until_it_is_mended_and_a_write_that_fails_may_be_there_in_part(tmp_path: Path) -> None:
    disk = FaultyDisk()
    disk.fail(at=3, times=None)
    write(disk, tmp_path / "f", b"1")
    for action in (disk.read, disk.sync_folder, disk.make_folder, disk.open_append):
        with pytest.raises(OSError, match="No space left"):
            action(str(tmp_path / "f"))
    disk.normalize()
    assert disk.read(str(tmp_path / "f")) == b"1"
    disk.fail("write", written=3)
    with pytest.raises(OSError, match="No space left"):
        write(disk, tmp_path / "f", b"123456")
    assert (tmp_path / "f").read_bytes() == b"1123"


async def test_an_operation_hangs_until_it_is_released(tmp_path: Path) -> None:
    disk = FaultyDisk()
    done: list[bool] = []

    async def work() -> None:
        await anyio.to_thread.run_sync(write, disk, tmp_path / "f", b"1")
        done.append(True)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            with disk.hang("write") as hang:
                group.start_soon(work)
                await hang.reached()
                assert (done, (tmp_path / "f").read_bytes()) == ([], b"")
    assert (done, (tmp_path / "f").read_bytes()) == ([True], b"1")


async def test_waiting_for_a_hang_that_never_comes_ends_when_it_is_released() -> None:
    with anyio.fail_after(20), FaultyDisk().hang() as hang:
        async with anyio.create_task_group() as group:
            group.start_soon(hang.reached)
            await anyio.wait_all_tasks_blocked()
            hang.release()


def test_bytes_need_their_file_and_names_their_folder_synced(root: Path, tmp_path: Path) -> None:
    disk = CrashingDisk(root)
    write(disk, root / "f", b"123")
    assert found(disk, tmp_path / "a") == {}
    assert found(disk, tmp_path / "b", "most") == {"f": b"123"}
    write(disk, root / "f", sync=True)
    assert found(disk, tmp_path / "1") == {}, "the name is not there"
    disk.sync_folder(str(root))
    assert found(disk, tmp_path / "2") == {"f": b"123"}
    write(disk, root / "f", b"456")
    write(disk, root / "g", b"789")
    disk.sync_folder(str(root))
    assert found(disk, tmp_path / "3") == {"f": b"123", "g": b""}
    write(disk, root / "f", b"!", sync=True)
    assert found(disk, tmp_path / "4") == {"f": b"123456!", "g": b""}


def test_folders_need_each_of_those_above_synced(root: Path, tmp_path: Path) -> None:
    disk = CrashingDisk(root)
    disk.make_folder(str(root / "a"))
    disk.make_folder(str(root / "a" / "b"))
    write(disk, root / "a" / "b" / "f", b"1", sync=True)
    disk.sync_folder(str(root / "a" / "b"))
    disk.sync_folder(str(root / "a"))
    assert found(disk, tmp_path / "1") == {}
    disk.sync_folder(str(root))
    assert found(disk, tmp_path / "2") == {"a": None, "a/b": None, "a/b/f": b"1"}


def test_a_rename_is_there_or_not_and_never_both_or_none(root: Path, tmp_path: Path) -> None:
    disk = CrashingDisk(root)
    write(disk, root / "f", b"old", sync=True)
    write(disk, root / "new", b"new", sync=True)
    disk.sync_folder(str(root))
    disk.replace(str(root / "new"), str(root / "f"))
    assert found(disk, tmp_path / "1") == {"f": b"old", "new": b"new"}
    assert found(disk, tmp_path / "2", "most") == {"f": b"new"}
    outcomes = {tuple(sorted(found(disk, tmp_path / f"r{seed}", Random(seed)))) for seed in range(20)}
    assert outcomes == {("f", "new"), ("f",)}


def test_a_cut_and_a_removal_need_a_sync_too(root: Path, tmp_path: Path) -> None:
    (root / "d").mkdir(parents=True)
    (root / "f").write_bytes(b"123456")
    (root / "d" / "g").write_bytes(b"g")
    disk = CrashingDisk(root)
    cut(disk, root / "f", 2)
    write(disk, root / "f", b"!")
    disk.remove_folder(str(root / "d"))
    assert (root / "f").read_bytes() == b"12!"
    assert found(disk, tmp_path / "1") == {"f": b"123456", "d": None, "d/g": b"g"}
    assert found(disk, tmp_path / "2", "most") == {"f": b"12!"}
    write(disk, root / "f", sync=True)
    disk.sync_folder(str(root))
    assert found(disk, tmp_path / "3") == {"f": b"12!"}


def test_a_file_that_goes_into_another_folder_may_be_in_both_or_in_none(root: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (root / name).mkdir(parents=True)
    (root / "a" / "f").write_bytes(b"1")
    disk = CrashingDisk(root)
    disk.replace(str(root / "a" / "f"), str(root / "b" / "f"))
    assert found(disk, tmp_path / "1") == {"a": None, "b": None, "a/f": b"1"}
    disk.sync_folder(str(root / "b"))
    assert found(disk, tmp_path / "2") == {"a": None, "b": None, "a/f": b"1", "b/f": b"1"}
    disk.sync_folder(str(root / "a"))
    assert found(disk, tmp_path / "3") == {"a": None, "b": None, "b/f": b"1"}


def test_a_removed_folder_may_come_back_without_what_was_in_it(root: Path, tmp_path: Path) -> None:
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "f").write_bytes(b"1")
    os.symlink("nowhere", root / "a" / "link")
    disk = CrashingDisk(root)
    disk.remove_folder(str(root / "a"))
    outcomes = {tuple(sorted(found(disk, tmp_path / f"r{seed}", Random(seed)))) for seed in range(40)}
    assert outcomes == {(), ("a",), ("a", "a/b"), ("a", "a/b", "a/b/f")}


def test_of_unsynced_bytes_any_beginning_may_be_left(root: Path, tmp_path: Path) -> None:
    (root / "f").touch()
    disk = CrashingDisk(root)
    write(disk, root / "f", b"12", b"34", b"56")
    outcomes = {found(disk, tmp_path / f"r{seed}", Random(seed))["f"] for seed in range(100)}
    assert outcomes == {b"", b"1", b"12", b"123", b"1234", b"12345", b"123456"}


def test_the_operation_in_which_the_power_goes_is_begun_and_not_finished(root: Path, tmp_path: Path) -> None:
    (root / "f").touch()
    for at, sure, at_most in [(2, b"", b"12"), (3, b"", b"12"), (4, b"12", b"12")]:
        disk = CrashingDisk(root, lose_power_at=at)
        (root / "f").write_bytes(b"")
        if at < 4:
            with pytest.raises(PowerLost, match="power was lost"):
                write(disk, root / "f", b"12", sync=True)
        else:
            write(disk, root / "f", b"12", sync=True)
        assert disk.power == (at == 4)
        assert disk.operations == min(at, 3)
        assert found(disk, tmp_path / f"{at}-least") == {"f": sure}
        assert found(disk, tmp_path / f"{at}-most", "most") == {"f": at_most}


def test_without_power_nothing_is_done(tmp_path: Path) -> None:
    disk = CrashingDisk(tmp_path)
    disk.make_folder(str(tmp_path / "a"))
    disk.lose_power()
    for action in (disk.read, disk.open_append, disk.make_folder, disk.sync_folder, disk.remove_folder):
        with pytest.raises(PowerLost):
            action(str(tmp_path / "a"))
    assert (disk.operations, disk.power, os.listdir(tmp_path)) == (1, False, ["a"])


def test_what_is_outside_of_the_folder_is_passed_on(root: Path, tmp_path: Path) -> None:
    disk = CrashingDisk(root)
    write(disk, tmp_path / "elsewhere", b"1", sync=True)
    disk.sync_folder(str(tmp_path))
    assert (tmp_path / "elsewhere").read_bytes() == b"1"
    assert found(disk, tmp_path / "1") == {}
