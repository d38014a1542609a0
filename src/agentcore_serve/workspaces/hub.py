"""`WorkspaceHub`: the workspaces of a server, open while somebody uses them.

Above: the routes beside it, and the hub of conversations. Below: workspaces, which know nothing of owners or ids. Each open one is
entered and left by a task of its own, and left when nobody has used it for a while.
"""

from __future__ import annotations

import math
import os
import secrets
import shutil
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple, Self, final

import anyio
from anyio.abc import TaskGroup

from agentcore._threads import Threads
from agentcore.errors import PathError, WorkspaceError, WorkspaceLost
from agentcore.logs import get_logger
from agentcore.workspace import LocalWorkspace, Workspace, fence_workspace, record_workspace, resolve_workspace
from agentcore_sandbox.views.program import ViewProgram
from agentcore_serve.auth.identity import Identity
from agentcore_serve.refused import Refused
from agentcore_serve.workspaces.boxes import Boxes
from agentcore_serve.workspaces.commands import CommandBook
from agentcore_serve.workspaces.records import WorkspaceRecord, WorkspaceRecords

IDLE_SECONDS: Final = 600.0
"""After how long without use a workspace is left."""
_LET_GO_SECONDS: Final = 1.0
_log: Final = get_logger(__name__)
_DISK: Final = Threads("serve_workspaces", 4)

WorkspaceMaker = Callable[[WorkspaceRecord, Path], Workspace]
"""Makes the workspace of a record; the path is its folder below the root, which exists."""


class WorkspaceLimits(NamedTuple):
    """Bounds of what is sent to workspaces and back."""

    file_bytes: int = 1 << 30
    """Of a file, and of all files of a folder together."""
    members: int = 100_000
    """Files, folders and links of a folder that is sent."""
    silence_seconds: float = 20.0
    """How long a process's client may be silent."""
    grace_seconds: float = 5.0
    """How long a command goes on whose client was cut off and may ask again."""


@final
class OpenWorkspace:
    """A workspace that is open or about to be, and how many use it."""

    def __init__(self, record: WorkspaceRecord) -> None:
        self.record = record
        self.workspace: Workspace
        self.tasks: TaskGroup
        """Runs what belongs to the workspace while it is open."""
        self.programs: dict[str, ViewProgram] = {}
        """The programs of its views that were looked at, by the view's name."""
        self.users = 0
        self.unused = anyio.Event()
        """Set while nobody uses it."""
        self.ready = anyio.Event()
        self.closed = anyio.Event()
        self.closing = False
        self.error: Exception | None = None
        self.use = anyio.CancelScope()


@final
class WorkspaceHub:
    """The workspaces of one server, inside `async with`.

    Args:
        root: The folder below which the folders of workspaces are.
        database: The path of `serve.sqlite`.
        temporary: A folder for what is on its way; what is in it is removed at the start.
        make: Makes a workspace for a folder; by default a `LocalWorkspace`.
        boxes: Makes a box for each workspace instead.
        shared_user: Allow several owners where commands run as the server's user, and so reach each other's files.
        limits: Bounds.
        idle_seconds: After how long without use a workspace is left.
    """

    def __init__(
        self,
        root: Path,
        *,
        database: Path,
        temporary: Path,
        make: WorkspaceMaker | None = None,
        boxes: Boxes | None = None,
        shared_user: bool = False,
        limits: WorkspaceLimits | None = None,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self.boot = secrets.token_hex(8)
        """This start of the server: another one knows nothing of the commands of this one."""
        self.limits = limits or WorkspaceLimits()
        self.temporary = temporary
        self._root = root
        self._table = WorkspaceRecords(database)
        self._make: WorkspaceMaker = make or _make_local
        self._boxes = boxes
        # Who shares a user with whom is known of this machine only.
        self._shared_user = shared_user or make is not None or boxes is not None
        self._idle = idle_seconds
        self._records: dict[str, WorkspaceRecord] = {}
        self._open: dict[str, OpenWorkspace] = {}
        self._changing = anyio.Lock()
        self._tasks: TaskGroup
        self.commands: CommandBook
        self.ending = anyio.Event()
        """Set when the server ends: whoever holds a connection for what runs here ends both."""

    async def __aenter__(self) -> Self:
        self._root = Path(await _DISK.run(_prepare, self._root, self.temporary))
        self._records = {record.id: record for record in await _DISK.run(self._table.load)}
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self.commands = CommandBook(self._tasks, self.limits.grace_seconds)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        # Each task leaves its workspace, which ends what runs there.
        self._tasks.cancel_scope.cancel("the server ends")
        await self._tasks.__aexit__(None, None, None)  # noqa: ASYNC102 cancelled above, and it has to be left

    def end_clients(self) -> None:
        """End the commands and processes of clients, and so their connections: a server may wait for those before it ends."""
        self.ending.set()
        self.commands.end()

    async def create(self, identity: Identity, *, folder: str | None = None, id: str | None = None) -> WorkspaceRecord:  # noqa: A002 - the name on the wire
        """Make a workspace, or return the one that the same owner has of this id or folder.

        Raises:
            Refused: The id or folder is another's (409), or two owners would share this machine's user (403).
            PathError: The folder is not below the root.
        """
        async with self._changing:
            if id is not None and (known := self._records.get(id)) is not None:
                if known.owner != identity.owner or (folder is not None and known.folder != folder):
                    raise Refused(409, "workspace_exists", "That id is taken. Leave it out to get a fresh one.")
                return known
            if not self._shared_user and any(each.owner != identity.owner for each in self._records.values()):
                raise Refused(
                    403,
                    "shared_user",
                    "Workspaces of another owner run as the same user of the server, so each could read the other's files. "
                    "Start the server with --shared-user if they may.",
                )
            if folder is not None:
                folder = await _DISK.run(_place, self._root, folder)
                for known in self._records.values():
                    if known.folder == folder and id is None:
                        if known.owner == identity.owner:
                            return known
                        raise Refused(409, "workspace_exists", "That folder belongs to another owner.")
            workspace_id = id or f"ws_{secrets.token_hex(10)}"
            record = WorkspaceRecord(
                workspace_id, identity.owner, folder or workspace_id, folder is None, None, datetime.now(UTC)
            )

            def make() -> None:
                _make_folder(self._root, record.folder)
                self._table.save(record)

            await _DISK.run(make)
            self._records[workspace_id] = record
            return record

    def list(self, identity: Identity) -> list[WorkspaceRecord]:
        """Return the workspaces of an owner, oldest first."""
        return [record for record in self._records.values() if record.owner == identity.owner]

    def find(self, identity: Identity, workspace_id: str) -> WorkspaceRecord:
        """Return a workspace's record.

        Raises:
            Refused: There is none, or it is another owner's (404).
        """
        record = self._records.get(workspace_id)
        if record is None or record.owner != identity.owner:
            raise Refused(404, "workspace_not_found", "There is no such workspace.")
        return record

    @asynccontextmanager
    async def use(self, identity: Identity, workspace_id: str) -> AsyncGenerator[OpenWorkspace]:
        """Hold a workspace open. Several may at once.

        Raises:
            Refused: There is none, or it is another owner's (404).
            WorkspaceError: It could not be opened.
        """
        opened = await self._hold(self.find(identity, workspace_id))
        try:
            await opened.ready.wait()
            if opened.error is not None:
                raise opened.error
            yield opened
        finally:
            opened.users -= 1
            if not opened.users:
                opened.unused.set()
                opened.use.deadline = anyio.current_time() + self._idle

    async def remove(self, identity: Identity, workspace_id: str) -> None:
        """Forget a workspace; a folder that was made for it alone goes too.

        Raises:
            Refused: There is none (404), or it is in use (409).
        """
        record = self.find(identity, workspace_id)
        if not await self._leave(workspace_id):
            raise Refused(409, "workspace_in_use", "That workspace is in use. End what runs there first.")
        async with self._changing:
            if self._records.pop(workspace_id, None) is not None:
                await self._remove_box(record)
                await _DISK.run(self._table.remove, workspace_id)
                if record.fresh:
                    await _DISK.run(shutil.rmtree, self._root / record.folder, True)

    async def discard(self, workspace_id: str) -> None:
        """Forget a workspace that was made for what failed then, with its folder. It stays if it is used, or if there is something in it."""
        record = self._records.get(workspace_id)
        if record is None or not record.fresh or not await self._leave(workspace_id):
            return
        async with self._changing:
            if workspace_id in self._open or self._records.get(workspace_id) is None:
                return
            try:
                await _DISK.run(os.rmdir, self._root / record.folder)
            except OSError:
                return
            del self._records[workspace_id]
            await self._remove_box(record)
            await _DISK.run(self._table.remove, workspace_id)

    async def drop_box(self, workspace_id: str) -> None:
        """Remove the box of a workspace that nobody uses. Its files stay, and it gets another one when it is opened again."""
        if self._boxes is None or workspace_id not in self._records or not await self._leave(workspace_id):
            return
        async with self._changing:
            record = self._records.get(workspace_id)
            if record is not None and workspace_id not in self._open:
                await self._remove_box(record)
                self._records[workspace_id] = record = record._replace(spec=None)
                await _DISK.run(self._table.save, record)

    async def _leave(self, workspace_id: str) -> bool:
        """Close a workspace that is open; False if somebody uses it."""
        opened = self._open.get(workspace_id)
        if opened is not None:
            # A request whose answer has just arrived may not have let go of it yet.
            with anyio.move_on_after(_LET_GO_SECONDS):
                await opened.unused.wait()
            if opened.users:
                return False
            opened.closing = True
            opened.use.cancel()
            await opened.closed.wait()
        return True

    async def _remove_box(self, record: WorkspaceRecord) -> None:
        try:
            if self._boxes is not None:
                await self._boxes.remove(record)
        except WorkspaceError as error:  # `agentcore sandbox prune --all` finds it
            _log.warning("box_left_behind", workspace=record.id, error=str(error))

    async def _hold(self, record: WorkspaceRecord) -> OpenWorkspace:
        while (opened := self._open.get(record.id)) is not None and (opened.closing or opened.use.cancel_called):
            await opened.closed.wait()
        if opened is None:
            if record.id not in self._records:
                raise Refused(404, "workspace_not_found", "There is no such workspace.")
            opened = self._open[record.id] = OpenWorkspace(record)
            self._tasks.start_soon(self._own, opened)
        if not opened.users:
            opened.unused = anyio.Event()
        opened.users += 1
        opened.use.deadline = math.inf
        return opened

    async def _own(self, opened: OpenWorkspace) -> None:
        record = opened.record
        try:
            async with AsyncExitStack() as stack:
                opened.workspace = await self._enter(stack, record)
                # What an earlier start of the server left there ends; conversations that come and go count for themselves.
                await fence_workspace(opened.workspace, time.time_ns() // 1_000_000, f"server {record.id}")
                if (spec := record_workspace(opened.workspace)) != record.spec:  # a new box, where the old one is gone
                    record = record._replace(spec=spec)
                    await _DISK.run(self._table.save, record)
                    opened.record = self._records[record.id] = record
                async with anyio.create_task_group() as opened.tasks:
                    opened.ready.set()
                    with opened.use:
                        await anyio.sleep_forever()
                    opened.closing = True
                    opened.tasks.cancel_scope.cancel("the workspace is left")
        except Exception as error:
            opened.error = error
        finally:
            opened.closing = True
            if not opened.ready.is_set() and opened.error is None:
                opened.error = WorkspaceError("The server ends.")
            if self._open.get(record.id) is opened:
                del self._open[record.id]
            opened.ready.set()
            opened.closed.set()

    async def _enter(self, stack: AsyncExitStack, record: WorkspaceRecord) -> Workspace:
        """Enter the workspace of a record: the same one again, where there is such a thing, or else a new one over its folder."""
        made = None
        if self._boxes is None and record.spec is not None and record.spec.kind not in ("local", "custom"):
            try:
                return await stack.enter_async_context(await _DISK.run(resolve_workspace, record.spec))
            except WorkspaceLost:
                raise
            except WorkspaceError:
                # A record alone makes nothing looser than the default, but what makes the workspaces of this server may.
                made = await self._make_in_place(record)
                if isinstance(made, LocalWorkspace):  # which is no sandbox
                    raise
        return await stack.enter_async_context(made or await self._make_in_place(record))

    async def _make_in_place(self, record: WorkspaceRecord) -> Workspace:
        # Links may have come since it was made.
        await _DISK.run(_place, self._root, record.folder)
        folder = self._root / record.folder
        return self._make(record, folder) if self._boxes is None else await self._boxes.make(record, folder)


def _make_local(record: WorkspaceRecord, folder: Path) -> Workspace:
    del record
    return LocalWorkspace(folder)


def _prepare(root: Path, temporary: Path) -> str:
    root.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        shutil.rmtree(temporary)
    temporary.mkdir(mode=0o700, parents=True)
    return os.path.realpath(root)


def _place(root: Path, folder: str) -> str:
    if folder == ".":
        return folder  # the root itself
    parts = PurePosixPath(folder).parts
    if not parts or folder.startswith("/") or ".." in parts or "\0" in folder:
        raise PathError(folder, "invalid", "The folder of a workspace is a path below the server's root, without '..'.")
    if root not in Path(os.path.realpath(root / folder)).parents:
        raise PathError(folder, "denied", "That folder leads out of the server's root.")
    return str(PurePosixPath(*parts))


def _make_folder(root: Path, folder: str) -> None:
    try:
        (root / folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkspaceError(f"The folder of the workspace could not be made: {error.strerror}.") from error
