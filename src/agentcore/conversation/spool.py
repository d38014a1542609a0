"""Whole outputs, kept in the workspace where the model can read them and the project's git does not see them."""

from __future__ import annotations

from typing import final

from agentcore.conversation.core import Core
from agentcore.errors import WorkspaceError
from agentcore.logs import get_logger

__all__ = ["SPOOL_LIMIT", "GrowingSpool", "open_spool", "remove_spool", "spool", "spool_if_room"]

_log = get_logger(__name__)

SPOOL_LIMIT = 256 * 1024 * 1024
"""Bytes that one conversation may keep, while it is open."""


_THE_END = b"\n[The output went on after this, but no more of it was kept.]\n"


async def spool(core: Core, name: str, data: bytes) -> str:
    """Keep an output, masked, and give its path.

    Raises:
        WorkspaceError: It can't be written, or the conversation has kept as much as it may.
    """
    if core.spooled + len(data) > SPOOL_LIMIT:
        raise WorkspaceError(
            f"{name!r} was not kept: outputs of this conversation take {core.spooled:,} bytes already, "
            f"and {SPOOL_LIMIT:,} is the most."
        )
    core.spooled += len(data)
    folder = await core.workspace.private_folder(core.state.conversation_id)
    path = f"{folder}/{name}"
    await core.workspace.write(path, core.secrets.masker.mask_bytes(data))
    return path


async def open_spool(core: Core, name: str, limit: int) -> GrowingSpool:
    """Begin an output that comes piece by piece.

    Raises:
        WorkspaceError: It can't be written, or the conversation has kept as much as it may.
    """
    # An empty one, since there may be one of that name from before a crash.
    return GrowingSpool(core, await spool(core, name, b""), limit)


@final
class GrowingSpool:
    """An output that is kept while it comes: masked, up to a bound. See `agentcore.tools.Spool`."""

    def __init__(self, core: Core, path: str, limit: int) -> None:
        self._core = core
        self._path = path
        self._limit = limit
        self._masker = core.secrets.masker
        self._masking = self._masker.stream()
        self._kept = 0
        self._left_out = False

    @property
    def path(self) -> str:
        return self._path

    @property
    def full(self) -> bool:
        return self._left_out

    async def append(self, text: str) -> None:
        masked = ""
        if self._core.secrets.masker is not self._masker:
            # A value that has become known since: what was held back can't be the beginning of that.
            masked = self._masking.finish()
            self._masker = self._core.secrets.masker
            self._masking = self._masker.stream()
        await self._write(masked + self._masking.feed(text))

    async def finish(self) -> None:
        await self._write(self._masking.finish())
        if self._left_out:
            await self._core.workspace.append(self._path, _THE_END)

    async def _write(self, text: str) -> None:
        data = text.encode(errors="replace")
        # Nothing behind what was left out: what is here is the beginning, and the whole of that.
        room = 0 if self._left_out else max(min(self._limit - self._kept, SPOOL_LIMIT - self._core.spooled), 0)
        if len(data) > room:
            data = _beginning(data, room)
            self._left_out = True
        if data:
            self._kept += len(data)
            self._core.spooled += len(data)
            await self._core.workspace.append(self._path, data)


def _beginning(data: bytes, size: int) -> bytes:
    """Give so many bytes of UTF-8, or a few less, so that no character is cut in two."""
    while size > 0 and data[size] & 0xC0 == 0x80:
        size -= 1
    return data[:size]


async def spool_if_room(core: Core, name: str, data: bytes) -> str | None:
    """Keep an output and give its path; None where that can't be done: the answer must not be lost over it."""
    try:
        return await spool(core, name, data)
    except WorkspaceError as error:
        _log.warning("output not kept", name=name, error=str(error))
        return None


async def remove_spool(core: Core) -> None:
    """Remove what was kept."""
    try:
        await core.workspace.remove_private_folder(core.state.conversation_id)
    except WorkspaceError as error:
        _log.warning("outputs not removed", error=str(error))
