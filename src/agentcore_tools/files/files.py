"""The workspace's files, as the tools of one conversation read and change them."""

from __future__ import annotations

import difflib
import posixpath
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypeVar, final

from agentcore._threads import Threads
from agentcore.errors import PathError, ToolError
from agentcore.workspace import Workspace
from agentcore_tools.files.allowed_paths import AllowedPaths, PathGuard
from agentcore_tools.files.change import between, unified_diff
from agentcore_tools.files.memory import Memory, Seen, memory_of
from agentcore_tools.files.text import NotText, Text

_LARGEST: Final = 10 * 1024 * 1024
# From so many bytes on, reading and changing a text takes long enough to be done in a thread.
_MUCH: Final = 100_000
_EDITS: Final = Threads("edits", 4)
_LONGEST_NEWS: Final = 10_000

ResultT = TypeVar("ResultT")


def open_files(workspace: Workspace, conversation_id: str, allowed: AllowedPaths) -> Files:
    """Return the files of a conversation for one of its tools. All open tools of the conversation share one memory."""
    return Files(memory_of(workspace, conversation_id), PathGuard(workspace, conversation_id, allowed))


@final
class Files:
    """Reads and writes the files that one tool may use."""

    def __init__(self, memory: Memory, border: PathGuard) -> None:
        self.workspace = memory.workspace
        self.memory = memory
        self._border = border

    async def to_read(self, path: str) -> str:
        """Return the absolute path of a file that may be read.

        Raises:
            ToolError: it may not be.
        """
        return await self._border.pass_(path, writing=False)

    async def to_write(self, path: str) -> str:
        """Return the absolute path of a file that may be written.

        Raises:
            ToolError: it may not be.
        """
        return await self._border.pass_(path, writing=True)

    async def followed(self, paths: Sequence[str]) -> list[str]:
        """Return absolute paths with links followed.

        Raises:
            ToolError: one leads nowhere.
        """
        return await self._border.followed(paths)

    async def read(self, path: str) -> bytes:
        """Return the content of a file.

        Raises:
            ToolError: there is none.
            PathError: it can't be read, or is too large.
        """
        try:
            return await self.workspace.read(path, max_bytes=_LARGEST)
        except PathError as error:
            if error.reason != "missing":
                raise
            raise ToolError(f"{error}{await self._like(path)}") from error

    async def look(self, path: str) -> bytes:
        """Read a file for the model to see.

        Raises:
            ToolError: there is none.
            PathError: it can't be read, or is too large.
        """
        data = await self.read(path)
        self.memory.saw(path, data)
        return data

    async def to_change(self, path: str) -> bytes:
        """Read a file that is about to be changed.

        Raises:
            ToolError: there is none, or it is not as the model knows it; then the change must not be made.
            PathError: it can't be read, or is too large.
        """
        data = await self.read(path)
        if (seen := self.memory.changed_since(path, data)) is not None:
            raise ToolError(await self._news(path, seen, data))
        return data

    async def put(self, path: str, before: bytes | None, after: bytes) -> None:
        """Write a file, which can be undone.

        Raises:
            PathError: it can't be written.
        """
        await self.workspace.write(path, after)
        self.memory.history.add(path, before, after)
        self.memory.saw(path, after)

    async def remove(self, path: str) -> None:
        """Remove a file.

        Raises:
            ToolError: it can't be.
        """
        result = await self.workspace.run(["rm", "-f", "--", path])
        if result.exit_code:
            raise ToolError(f"{path!r} can't be removed: {result.stderr.strip()}")
        self.memory.forget(path)

    async def _news(self, path: str, seen: Seen, data: bytes) -> str:
        message = f"{path!r} is not as you saw it last: a command or another program or person changed it. Nothing was written."
        then = seen.data
        diff = None if then is None else await worked(data, lambda: _diff(then, data, path))
        if diff is None or len(diff) > _LONGEST_NEWS:
            return f"{message} View it before you change it."
        self.memory.saw(path, data)
        return f"{message} This is what changed; now that you know, the next call goes through:\n{diff}"

    async def _like(self, path: str) -> str:
        """Return a sentence about files with similar names."""
        folder, name = posixpath.split(path)
        try:
            names = [entry.name for entry in await self.workspace.list(folder)]
        except PathError:
            return f" No such folder: {folder!r}."
        found = difflib.get_close_matches(name, names[:10_000], n=3)
        return f" There is {', '.join(map(repr, found))} in that folder." if found else ""


def text_of(data: bytes, path: str) -> Text:
    """Make text of a file's bytes.

    Raises:
        ToolError: they are none.
    """
    try:
        return Text.read(data)
    except NotText:
        raise ToolError(
            f"{path!r} is not text ({len(data)} bytes). Look at it with commands, such as `file`, `strings` or `xxd`."
        ) from None


async def worked(data: bytes | str, work: Callable[[], ResultT]) -> ResultT:
    """Do some work on data: at once where that is little, else in a thread."""
    return work() if len(data) < _MUCH else await _EDITS.run(work)


def _diff(old: bytes, new: bytes, path: str) -> str | None:
    try:
        before, after = Text.read(old).normal, Text.read(new).normal
    except NotText:
        return None
    return unified_diff(before, [between(before, after)], path)


ExecutorT = TypeVar("ExecutorT")


def opening(
    executor: Callable[[Files], ExecutorT], allowed: AllowedPaths
) -> Callable[[Workspace, str], AbstractAsyncContextManager[ExecutorT]]:
    """Return the `open` of a tool: it makes an executor with the conversation's files."""

    @asynccontextmanager
    async def opened(workspace: Workspace, conversation_id: str) -> AsyncGenerator[ExecutorT]:
        yield executor(open_files(workspace, conversation_id, allowed))

    return opened
