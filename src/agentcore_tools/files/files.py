"""The workspace's files, as the tools of one conversation read and change them."""

from __future__ import annotations

import difflib
import posixpath
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar, final

from agentcore._threads import Threads
from agentcore.assessment import SecurityRisk
from agentcore.display import DisplayBlock, code_span
from agentcore.errors import PathError, ToolError
from agentcore.tools import (
    Action,
    Aliases,
    Arguments,
    Executor,
    Ignored,
    Observation,
    Resource,
    Tool,
    ToolAnnotations,
    ToolContext,
    ToolSpec,
)
from agentcore.workspace import Workspace
from agentcore_tools._calls import IGNORED, heading, others, rename
from agentcore_tools.files.allowed_paths import AllowedPaths, PathGuard
from agentcore_tools.files.change import between, unified_diff
from agentcore_tools.files.masks import refuse_masks
from agentcore_tools.files.memory import LastSeen, Memory, memory_of
from agentcore_tools.files.text import Change, NotText, Text, encoded

_LARGEST: Final = 10 * 1024 * 1024
# From so many bytes on, reading and changing a text takes long enough to be done in a thread.
_MUCH: Final = 100_000
_EDITS: Final = Threads("edits", 4)
_LONGEST_NEWS: Final = 10_000

ActionT = TypeVar("ActionT", bound=Action)
ObservationT = TypeVar("ObservationT", bound=Observation)
ResultT = TypeVar("ResultT")


@final
class Files:
    """Reads and writes the files that one tool may use, for one call."""

    def __init__(self, memory: Memory, border: PathGuard, secret_names: Collection[str]) -> None:
        self.workspace = memory.workspace
        self.memory = memory
        self._border = border
        self._secret_names = secret_names

    async def to_read(self, path: str) -> str:
        """Return the absolute path of a file that may be read."""
        return await self._border.pass_(path, writing=False)

    async def to_write(self, path: str) -> str:
        """Return the absolute path of a file that may be written."""
        return await self._border.pass_(path, writing=True)

    def key(self, path: str) -> str:
        """Return the one name under which a file is remembered, whichever of its names this is."""
        return self._border.real(path)

    async def followed(self, paths: Iterable[str]) -> list[str]:
        """Return absolute paths with links followed."""
        return await self._border.followed(list(paths))

    async def read(self, path: str) -> bytes:
        """Return the content of a file."""
        try:
            return await self.workspace.read(path, max_bytes=_LARGEST)
        except PathError as error:
            if error.reason == "too_large":
                raise ToolError(
                    f"{path!r} has more than {_LARGEST:,} bytes, which is the most that is read at once. Look at a part of it with a "
                    "command (head, tail, sed), and change it with one."
                ) from error
            if error.reason != "missing":
                raise
            raise ToolError(await self.missing(path, str(error))) from error

    async def look(self, path: str) -> bytes:
        """Read a file for the model to see."""
        data = await self.read(path)
        self.memory.saw(self.key(path), data)
        return data

    async def to_change(self, path: str) -> bytes:
        """Read a file that is about to be changed.

        Raises:
            ToolError: there is none, or it is not as the model knows it; then the change must not be made.
            PathError: it can't be read, or is too large.
        """
        data = await self.read(path)
        if (seen := self.memory.changed_since(self.key(path), data)) is not None:
            raise ToolError(await self._news(path, seen, data))
        return data

    async def put(self, path: str, before: bytes | None, after: bytes) -> None:
        """Write a file, which can be undone."""
        await self.workspace.write(path, after)
        self.remember(path, before, after)

    def remember(self, path: str, before: bytes | None, after: bytes) -> None:
        """Remember a change that was made, so that it can be undone."""
        self.memory.history.add(self.key(path), before, after)
        self.memory.saw(self.key(path), after)

    def refuse_masks(self, new: str, old: str, path: str) -> None:
        """Refuse to write the masks of secrets that the conversation has."""
        refuse_masks(new, old, self._secret_names, path)

    def replaced(self, text: Text, changes: Sequence[Change], path: str) -> Text:
        """Make changes of a file's text, and refuse those that would write the masks of secrets."""
        for start, end, new in changes:
            self.refuse_masks(new, text.normal[start:end], path)
        return text.replaced(changes)

    async def create(self, path: str, content: str) -> str:
        """Write a new file, and return the diff that shows it."""
        self.refuse_masks(content, "", path)
        await self.put(path, None, encoded(content))
        change = Change(0, 0, Text(content).normal)
        return await worked(content, lambda: unified_diff("", [change], path, created=True))

    async def remove(self, path: str) -> None:
        """Remove a file."""
        result = await self.workspace.run(["rm", "-f", "--", path])
        if result.exit_code:
            raise ToolError(f"{path!r} can't be removed: {result.stderr.strip()}")
        self.memory.forget(self.key(path))

    async def _news(self, path: str, seen: LastSeen, data: bytes) -> str:
        message = f"{path!r} is not as you saw it last: a command or another program or person changed it. Nothing was written."
        then = seen.data
        diff = None if then is None else await worked(data, lambda: _diff(then, data, path))
        if diff is None or len(diff) > _LONGEST_NEWS:
            return f"{message} View it before you change it."
        self.memory.saw(self.key(path), data)
        return f"{message} This is what changed; now that you know, the next call goes through:\n{diff}"

    async def missing(self, path: str, error: str) -> str:
        """Return an answer for a file that is not there: where its link leads, or which files have similar names."""
        folder, name = posixpath.split(path)
        try:
            entries = await self.workspace.list(folder)
        except PathError:
            return f"{error} No such folder: {folder!r}."
        if any(entry.name == name for entry in entries):
            (real,) = await self.followed([path])
            return f"{path!r} is a link to {real!r}, which does not exist."
        found = difflib.get_close_matches(name, [entry.name for entry in entries[:10_000]], n=3)
        return f"{error} There is {', '.join(map(repr, found))} in that folder." if found else error


def decode_text(data: bytes, path: str) -> Text:
    """Make text of a file's bytes."""
    try:
        return Text.read(data)
    except NotText:
        raise ToolError(
            f"{path!r} is not text ({len(data)} bytes). Look at it with commands, such as `file`, `strings` or `xxd`."
        ) from None


async def worked(data: bytes | str, work: Callable[[], ResultT]) -> ResultT:
    """Do some work on data: at once where that is little, else in a thread."""
    return work() if len(data) < _MUCH and _is_utf8(data) else await _EDITS.run(work)


def _is_utf8(data: bytes | str) -> bool:
    if isinstance(data, bytes):
        try:
            data.decode()
        except UnicodeDecodeError:
            return False  # guessing the encoding loads a library, and takes a while
    return True


def _diff(old: bytes, new: bytes, path: str) -> str | None:
    try:
        before, after = Text.read(old).normal, Text.read(new).normal
    except NotText:
        return None
    return unified_diff(before, [between(before, after)], path)


def file_tool(
    execute: Callable[[Files, ActionT, ToolContext], Awaitable[ObservationT]],
    action: type[ActionT],
    *,
    name: str,
    title: str,
    description: str,
    extra_roots: Sequence[str],
    confine_to: Sequence[str] | None = None,
    read_only: bool = False,
    idempotent: bool = False,
    path: str = "path",
    heads: str = "path",
    aliases: Aliases = (),
    other_names: Mapping[str, str] | None = None,
    normalize: Callable[[Arguments], Arguments] | None = None,
    ignored: Ignored = IGNORED,
    resources: Callable[[ActionT, str], Sequence[Resource]] | None = None,
    risk: Callable[[ActionT], SecurityRisk] | None = None,
    display_call: Callable[[ActionT], Sequence[DisplayBlock]] | None = None,
    display_answer: Callable[[ActionT, ObservationT], Sequence[DisplayBlock]] | None = None,
) -> Tool[ActionT, ObservationT]:
    """Make a tool that works on the conversation's files. Of its arguments, `path` is the file, and `heads` is shown first."""
    only = None if confine_to is None else tuple(confine_to)
    allowed = AllowedPaths(extra_roots=tuple(extra_roots), confine_to=only)

    @asynccontextmanager
    async def opened(workspace: Workspace, conversation_id: str) -> AsyncGenerator[Executor[ActionT, ObservationT]]:
        memory, border = memory_of(workspace, conversation_id), PathGuard(workspace, conversation_id, allowed)

        async def execute_call(action: ActionT, ctx: ToolContext) -> ObservationT:
            return await execute(Files(memory, border, ctx.secrets.names), action, ctx)

        yield execute_call

    return Tool(
        name=name,
        description=description,
        action=action,
        open=opened,
        annotations=ToolAnnotations(
            title=title,
            read_only=read_only,
            destructive=not read_only,
            idempotent=read_only or idempotent,
            open_world=False,
        ),
        resources=resources
        or (lambda action, root: (Resource.file(getattr(action, path), "read" if read_only else "write", root=root),)),
        aliases=aliases,
        normalize=normalize or (lambda arguments: rename(arguments, other_names or {})),
        ignored=ignored,
        risk=risk,
        display_call=display_call or (lambda action: heading(code_span(getattr(action, heads)), others(action, heads))),
        display_answer=display_answer,
        spec=ToolSpec(name=name, params=allowed.params),
    )
