"""The routes of files and folders: read, written and listed, streamed both ways."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import IO, Annotated, Final, final
from urllib.parse import parse_qs

import anyio
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agentcore.errors import PathError
from agentcore.wire.archive import pack_folder, unpack_folder
from agentcore.workspace import Entry, LocalWorkspace
from agentcore.workspace.files import FILES, open_at_once, path_errors, stat_path
from agentcore_serve.refused import Refused
from agentcore_serve.routes.table import Call
from agentcore_serve.workspaces.calls import check_boot, hub_of, use
from agentcore_serve.workspaces.confine import check_path, check_paths
from agentcore_serve.workspaces.hub import OpenWorkspace

_PIECE: Final = 1 << 18
_MAX_APPENDED: Final = 64 * 1024 * 1024
_SEND_SECONDS: Final = 30.0
_RANGE: Final = re.compile(r"bytes=(\d*)-(\d*)")


class PathQuery(BaseModel):
    """The path that a request is about, relative to the root or absolute in the workspace."""

    model_config = ConfigDict(extra="forbid")

    path: str = "."


class ReadQuery(PathQuery):
    """Which file."""

    max_bytes: int | None = Field(default=None, ge=0)
    """Refuse a file that has more."""


class WriteQuery(PathQuery):
    """Which file."""

    mode: Annotated[str, Field(pattern=r"^[0-7]{3}$")] = "666"
    """Of a new file, less what the umask takes; a file that is there keeps its own."""


class AppendQuery(PathQuery):
    """Which file."""

    id: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")] | None = None
    """The same id twice is appended once."""


class NameQuery(BaseModel):
    """The name of a private folder."""

    model_config = ConfigDict(extra="forbid")

    name: str


def path_of(call: Call) -> str:
    """Return the path of the query, with bytes that are not UTF-8 as the system has them."""
    query = call.connection.scope["query_string"].decode("latin-1")
    return parse_qs(query, errors="surrogateescape", keep_blank_values=True).get("path", ["."])[-1]


async def list_folder(call: Call) -> list[Entry]:
    """List a folder."""
    async with use(call) as opened:
        path = await check_path(opened.workspace, path_of(call))
        return list(await opened.workspace.list(path))


async def stat(call: Call) -> Entry | None:
    """Return the entry at a path, or null."""
    async with use(call) as opened:
        return await opened.workspace.stat(await check_path(opened.workspace, path_of(call)))


async def append(call: Call) -> None:
    """Add the body to the end of a file."""
    check_boot(call)
    data = bytearray()
    async with aclosing(_pieces(call, min(_MAX_APPENDED, hub_of(call).limits.file_bytes))) as pieces:
        async for piece in pieces:
            data += piece

    async def carry_out() -> None:
        async with use(call) as opened:
            await opened.workspace.append(await check_path(opened.workspace, path_of(call)), bytes(data))

    if call.query.id is None:
        await carry_out()
        return
    key = (hub_of(call).find(call.identity, call.params["workspace"]).id, f"append {call.query.id}")
    await hub_of(call).commands.do(key, carry_out, call.request.receive, wait=None, ends=False)


async def write(call: Call) -> None:
    """Replace a file with the body, which goes to a temporary file first."""
    async with use(call) as opened, _temporary(call) as folder:
        path = await check_path(opened.workspace, path_of(call))
        content = folder / "content"
        await _save(call, content)
        await FILES.run(content.chmod, int(call.query.mode, 8))
        await opened.workspace.upload(str(content), path)


async def write_folder(call: Call) -> None:
    """Unpack the body, a tar, into a folder. Nothing is written before all of it was checked."""
    limits = hub_of(call).limits
    async with use(call) as opened, _temporary(call) as folder:
        path = await check_path(opened.workspace, path_of(call))
        archive, unpacked = folder / "archive", folder / "unpacked"
        # Headers, and the rest of the last block of each file.
        await _save(call, archive, extra=limits.members * 1024)
        names = await FILES.run(_unpack, archive, unpacked, limits.file_bytes, limits.members)
        await check_paths(opened.workspace, await FILES.run(_written, unpacked, path, names))
        await opened.workspace.upload(str(unpacked), path)


def _unpack(archive: Path, unpacked: Path, max_bytes: int, max_members: int) -> list[str]:
    unpacked.mkdir()
    with archive.open("rb") as file:
        return unpack_folder(file, str(unpacked), max_bytes=max_bytes, max_members=max_members)


def _written(unpacked: Path, path: str, names: list[str]) -> list[str]:
    """Return the paths that will be written: a link is replaced, whereas a file that is one already is written through."""
    return [os.path.dirname(f"{path}/{name}") if (unpacked / name).is_symlink() else f"{path}/{name}" for name in names]


async def read(call: Call) -> Response:
    """Return a file, or a part of it (`Range`)."""
    return _Answer(call, _open_file, b"application/octet-stream")


async def read_folder(call: Call) -> Response:
    """Return a folder as a tar."""
    return _Answer(call, _open_folder, b"application/x-tar")


async def _open_file(call: Call, opened: OpenWorkspace, folder: Path) -> IO[bytes]:
    path = await check_path(opened.workspace, path_of(call))
    most = hub_of(call).limits.file_bytes
    if call.query.max_bytes is not None:
        most = min(most, call.query.max_bytes)
    if isinstance(opened.workspace, LocalWorkspace):
        return await FILES.run(_open, path, path, most)
    # Elsewhere a file comes whole, and it is looked at first how much that is.
    entry = await opened.workspace.stat(path)
    if entry is not None and entry.kind == "file" and entry.size > most:
        raise _too_large(path, entry.size, most)
    if entry is None or entry.kind != "file":
        await opened.workspace.read(path, max_bytes=0)  # it says why not
    await opened.workspace.download(path, str(folder / "content"))
    return await FILES.run(_open, str(folder / "content"), path, most)


async def _open_folder(call: Call, opened: OpenWorkspace, folder: Path) -> IO[bytes]:
    path = await check_path(opened.workspace, path_of(call))
    source = path
    if not isinstance(opened.workspace, LocalWorkspace):
        source = str(folder / "content")
        await opened.workspace.download(path, source)
    return await FILES.run(_pack, source, folder / "archive")


def _pack(source: str, archive: Path) -> IO[bytes]:
    with archive.open("wb") as file:
        pack_folder(source, file)
    return archive.open("rb")


def _open(path: str, shown: str, max_bytes: int) -> IO[bytes]:
    with path_errors(shown):
        entry = stat_path(path)
        if entry is not None and entry.kind == "other":
            raise PathError(shown, "not_a_file", f"{shown!r} is not a file but a device, a pipe or a socket.")
        file = open(path, "rb", opener=open_at_once)  # noqa: SIM115 - the answer closes it
    size = os.fstat(file.fileno()).st_size
    if size > max_bytes:
        file.close()
        raise _too_large(shown, size, max_bytes)
    return file


def _too_large(path: str, size: int, most: int) -> PathError:
    return PathError(
        path,
        "too_large",
        f"{path!r} has {size} bytes; at most {most} are read at once. Look at a part of it with a command "
        "(head, tail, sed), or allow more with max_bytes.",
    )


@final
class _Answer(Response):
    """A file, read piece by piece while the workspace is held open."""

    def __init__(
        self, call: Call, open_content: Callable[[Call, OpenWorkspace, Path], Awaitable[IO[bytes]]], media: bytes
    ) -> None:
        super().__init__()
        self._media = media
        self._call = call
        self._open_content = open_content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        async with use(self._call) as opened, _temporary(self._call) as folder:
            file = await self._open_content(self._call, opened, folder)
            try:
                status = os.fstat(file.fileno())
                start, end = _range_of(self._call, status.st_size)
                headers = [
                    (b"content-type", self._media),
                    (b"content-length", str(end - start).encode()),
                    (b"accept-ranges", b"bytes"),
                    (b"agentcore-mode", f"{status.st_mode & 0o777:03o}".encode()),
                    # Never something that a browser runs.
                    (b"content-disposition", b"attachment"),
                ]
                part = end - start != status.st_size
                if part:
                    headers.append((b"content-range", f"bytes {start}-{end - 1}/{status.st_size}".encode()))
                await send({"type": "http.response.start", "status": 206 if part else 200, "headers": headers})
                await _send_content(file, start, end, send)
            finally:
                file.close()


async def _send_content(file: IO[bytes], start: int, end: int, send: Send) -> None:
    await FILES.run(file.seek, start)
    while start < end:
        piece = await FILES.run(file.read, min(_PIECE, end - start))
        if not piece:
            raise RuntimeError(
                "a file became shorter while it was sent"
            )  # the connection is cut, so nobody takes it for whole
        start += len(piece)
        with anyio.fail_after(_SEND_SECONDS):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _range_of(call: Call, size: int) -> tuple[int, int]:
    wanted = call.connection.headers.get("range", "")
    match = _RANGE.fullmatch(wanted.strip())
    if match is None or "if-range" in call.connection.headers or match.groups() == ("", ""):
        return 0, size  # several ranges, other units: all of it, as RFC 9110 allows
    first, last = match.groups()
    if not first:
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1 if last else size)
    if start >= end:
        raise Refused(
            416, "range_not_satisfiable", "The file has no such part.", headers={"Content-Range": f"bytes */{size}"}
        )
    return start, end


async def _save(call: Call, path: Path, *, extra: int = 0) -> None:
    file = await FILES.run(path.open, "wb")
    try:
        async with aclosing(_pieces(call, hub_of(call).limits.file_bytes + extra)) as pieces:
            async for piece in pieces:
                await FILES.run(file.write, piece)
    finally:
        file.close()


async def _pieces(call: Call, most: int) -> AsyncGenerator[bytes]:
    refusal = Refused(413, "too_large", f"At most {most} bytes are taken.")
    length = call.connection.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most:
        raise refusal
    size = 0
    async with aclosing(call.request.stream()) as pieces:
        async for piece in pieces:
            size += len(piece)
            if size > most:
                raise refusal
            if piece:
                yield piece  # noqa: ASYNC119 whoever iterates closes it


@asynccontextmanager
async def _temporary(call: Call) -> AsyncGenerator[Path]:
    """Yield a new folder beside the store, for what is on its way."""
    folder = await FILES.run(_new_folder, hub_of(call).temporary)
    try:
        yield Path(folder.name)
    finally:
        with anyio.CancelScope(shield=True):
            await FILES.run(folder.cleanup)


def _new_folder(parent: Path) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(dir=parent)
