"""Files of this machine on their way to and from a server: opened, packed and unpacked off the event loop."""

from __future__ import annotations

import os
import stat as modes
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Final

import anyio

from agentcore.errors import PathError
from agentcore.wire.archive import pack_folder, unpack_folder
from agentcore.workspace.files import FILES, open_at_once, path_errors

_PIECE: Final = 1 << 18
_MAX_FOLDER: Final = 1 << 40


async def send_pieces(path: str) -> AsyncIterator[bytes]:
    """Yield the content of a file, opened anew each time this is called."""
    file = await FILES.run(open_file, path)
    try:
        while piece := await FILES.run(file.read, _PIECE):
            yield piece
    finally:
        file.close()


async def save_pieces(pieces: AsyncIterator[bytes], target: Path) -> None:
    """Write what arrives to a file."""
    file = await FILES.run(target.open, "wb")
    try:
        async for piece in pieces:
            await FILES.run(file.write, piece)
    finally:
        file.close()


def open_file(path: str) -> IO[bytes]:
    """Open a file; a device, pipe or socket is refused."""
    with path_errors(path):
        file = open(path, "rb", opener=open_at_once)  # noqa: SIM115 - the caller closes it
    if not modes.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise PathError(path, "not_a_file", f"{path!r} is not a file but a device, a pipe or a socket.")
    return file


def stat_file(path: str) -> os.stat_result:
    """Look at a path, links followed."""
    with path_errors(path):
        return os.stat(path)


def pack(folder: str, archive: str) -> None:
    """Write a folder to an archive."""
    with open(archive, "wb") as file:
        pack_folder(folder, file)


def unpack(archive: str, folder: str) -> None:
    """Unpack an archive into a new folder."""
    Path(folder).mkdir()
    with open(archive, "rb") as file:
        unpack_folder(file, folder, max_bytes=_MAX_FOLDER)


@asynccontextmanager
async def temporary_folder() -> AsyncGenerator[Path]:
    """Yield a new folder, and remove it."""
    folder = await FILES.run(tempfile.TemporaryDirectory)
    try:
        yield Path(folder.name)
    finally:
        with anyio.CancelScope(shield=True):
            await FILES.run(folder.cleanup)
