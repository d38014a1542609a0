from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from agentcore.errors import PathError
from agentcore.wire.archive import pack_folder, unpack_folder


def _member(
    name: str, kind: bytes = tarfile.REGTYPE, *, data: bytes = b"", link: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(data)
    return info, data


def _archive(*members: tuple[tarfile.TarInfo, bytes]) -> io.BytesIO:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    archive.seek(0)
    return archive


def _refusal(archive: io.BytesIO, folder: Path, *, max_bytes: int = 1000, max_members: int = 10) -> PathError:
    with pytest.raises(PathError) as raised:
        unpack_folder(archive, str(folder), max_bytes=max_bytes, max_members=max_members)
    return raised.value


def test_a_folder_arrives_with_its_links_modes_and_odd_names(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "sub" / "empty").mkdir(parents=True)
    odd = os.fsdecode(b"caf\xe9 \n -rf")
    (source / "sub" / odd).write_bytes(b"\0\xff" * 100_000)
    (source / "run").write_text("#!")
    (source / "run").chmod(0o755)
    (source / "away").symlink_to("/nowhere")
    os.mkfifo(source / "pipe")
    os.link(source / "run", source / "same")
    archive = io.BytesIO()
    pack_folder(str(source), archive)
    archive.seek(0)
    target.mkdir()
    names = unpack_folder(archive, str(target), max_bytes=1_000_000)
    assert sorted(names) == sorted(["away", "run", "same", "sub", f"sub/{odd}", "sub/empty"])
    assert (target / "sub" / odd).read_bytes() == b"\0\xff" * 100_000
    assert (target / "run").stat().st_mode & 0o777 == 0o755
    assert os.readlink(target / "away") == "/nowhere"
    assert (target / "same").read_text() == "#!"
    assert (target / "sub" / "empty").is_dir()


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "a/..", ""])
def test_a_member_that_leaves_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    assert _refusal(_archive(_member(name, data=b"x")), folder).reason == "invalid"
    assert [path.name for path in tmp_path.rglob("*")] == ["folder"]


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("old")
    for below in ("link/new", "link"):
        folder.mkdir()
        goal = str(outside) if below == "link/new" else str(outside / "file")
        _refusal(_archive(_member("link", tarfile.SYMTYPE, link=goal), _member(below, data=b"new")), folder)
        (folder / "link").unlink()
        folder.rmdir()
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("file", "old")]


@pytest.mark.parametrize("kind", [tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_what_is_no_file_folder_or_link_is_refused(tmp_path: Path, kind: bytes) -> None:
    assert _refusal(_archive(_member("x", kind, link="/etc/passwd")), tmp_path).reason == "not_a_file"


def test_an_archive_is_bounded_by_size_and_by_count(tmp_path: Path) -> None:
    for each in ("a", "b", "c"):
        (tmp_path / each).mkdir()
    assert (
        _refusal(_archive(_member("x", data=b"x" * 600), _member("y", data=b"x" * 600)), tmp_path / "a").reason
        == "too_large"
    )
    many = _archive(*(_member(f"{number}") for number in range(11)))
    assert _refusal(many, tmp_path / "b").reason == "too_large"
    huge = tarfile.TarInfo("h")
    huge.size = 1 << 40
    said = io.BytesIO(huge.tobuf() + b"\0" * 2048)
    assert _refusal(said, tmp_path / "c").reason == "too_large"


def test_a_header_cannot_claim_a_gigabyte_of_memory(tmp_path: Path) -> None:
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 1 << 30
    assert _refusal(io.BytesIO(header.tobuf() + b"\0" * 2048), tmp_path).reason == "invalid"


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    assert _refusal(io.BytesIO(b"no tar at all" * 100), tmp_path).reason == "invalid"
