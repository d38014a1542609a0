"""Folders as they travel: a tar without compression, each of whose members is checked where it arrives.

Above: a workspace on a server, in both directions. It unpacks into a new folder of its own, never over what is there, so no
link that was there before can lead a file elsewhere. All of it blocks.
"""

from __future__ import annotations

import os
import shutil
import stat as modes
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final, cast, final

from agentcore.errors import PathError
from agentcore.workspace.files import open_at_once, path_errors

MAX_MEMBERS: Final = 100_000
"""How many files, folders and links one archive may have."""
# Names are far shorter; a header that says it is longer would be read into memory.
_MAX_HEADER: Final = 1 << 20
_PIECE: Final = 1 << 16


def pack_folder(folder: str, archive: IO[bytes]) -> None:
    """Write what is in a folder to an archive. Links stay links; pipes, sockets and devices are left out.

    Raises:
        PathError: Something in it can't be read.
    """
    with path_errors(folder), tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, name in _walk(folder, ""):
            with path_errors(path):
                _add(tar, path, name)


def _walk(folder: str, prefix: str) -> Iterator[tuple[str, str]]:
    with path_errors(folder), os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        name = f"{prefix}{entry.name}"
        yield entry.path, name
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path, f"{name}/")


def _add(tar: tarfile.TarFile, path: str, name: str) -> None:
    info = tarfile.TarInfo(name)
    found = os.lstat(path)
    info.mode = modes.S_IMODE(found.st_mode) & 0o777
    if modes.S_ISLNK(found.st_mode):
        info.type, info.linkname = tarfile.SYMTYPE, os.readlink(path)
        tar.addfile(info)
    elif modes.S_ISDIR(found.st_mode):
        info.type = tarfile.DIRTYPE
        tar.addfile(info)
    elif modes.S_ISREG(found.st_mode):
        with open(path, "rb", opener=open_at_once) as file:
            info.size = os.fstat(file.fileno()).st_size
            tar.addfile(info, file)


def unpack_folder(archive: IO[bytes], folder: str, *, max_bytes: int, max_members: int = MAX_MEMBERS) -> list[str]:
    """Unpack an archive into an empty folder, and return the names in it.

    A link may point anywhere, as one that a command makes may; nothing is ever written through it.

    Args:
        archive: From `pack_folder`, or any tar without compression that can be read at any place.
        folder: Where to; it has to be empty.
        max_bytes: The most bytes of all files together.
        max_members: The most members.

    Raises:
        PathError: A member is absolute, leaves the folder, lies below a link or a file, or is neither file, folder nor
            link; there are too many; or it is not an archive. What was unpacked until then is there.
    """
    names: list[str] = []
    left = max_bytes
    try:
        with tarfile.open(fileobj=cast("IO[bytes]", _Checked(archive)), mode="r:", encoding="utf-8") as tar:
            for info in tar:
                if len(names) >= max_members:
                    raise PathError(info.name, "too_large", f"The archive has more than {max_members} members.")
                name = safe_name(info.name)
                if info.size > left and info.isreg():
                    raise PathError(name, "too_large", f"The files of the archive have more than {max_bytes} bytes.")
                left -= _unpack(tar, info, folder, name)
                names.append(name)
                setattr(tar, "members", [])  # noqa: B010 - or it keeps all of them; unknown to its stubs
    except tarfile.TarError as error:
        raise PathError("archive", "invalid", f"That is not a tar without compression: {error}.") from error
    return names


def safe_name(name: str) -> str:
    """Return the name of a member without dots.

    Raises:
        PathError: It is absolute, or leaves the folder.
    """
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name:
        raise PathError(name, "invalid", f"The archive has a member {name!r}, which would be outside of the folder.")
    return str(PurePosixPath(*parts))


def _unpack(tar: tarfile.TarFile, info: tarfile.TarInfo, folder: str, name: str) -> int:
    target = Path(folder, name)
    with path_errors(name):
        make_parents(Path(folder), PurePosixPath(name))
        if info.isdir():
            if not _is_folder(target):
                target.mkdir()
            return 0
        if target.is_symlink() or target.exists():
            raise PathError(name, "invalid", f"The archive has two members {name!r}.")
        if info.issym():
            target.symlink_to(info.linkname)
            return 0
        if not info.isreg() or info.issparse():
            raise PathError(
                name, "not_a_file", f"The archive has a member {name!r} that is not a file, folder or link."
            )
        content = tar.extractfile(info)
        assert content is not None
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with content, open(os.open(target, flags, info.mode & 0o777 | 0o600), "wb") as file:
            shutil.copyfileobj(content, file, _PIECE)
            os.fchmod(file.fileno(), info.mode & 0o777 | 0o600)
        return info.size


def make_parents(folder: Path, name: PurePosixPath) -> None:
    """Make the folders above a member, where nothing else may be: a link or a file there is an error."""
    for part in name.parts[:-1]:
        folder = folder / part
        if not _is_folder(folder):
            folder.mkdir()


def _is_folder(path: Path) -> bool:
    try:
        return modes.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return False


@final
class _Checked:
    """The archive as tarfile reads it, except that no header can make it read without bound."""

    def __init__(self, archive: IO[bytes]) -> None:
        self._archive = archive

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MAX_HEADER:
            raise PathError("archive", "invalid", "A header of the archive is longer than any name can be.")
        return self._archive.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._archive.seek(offset, whence)

    def tell(self) -> int:
        return self._archive.tell()
