"""`BoxWorkspace`: a workspace in a box, whichever it is, over one stream to a helper in it.

Above: tools, which see a `Workspace`; the ports and the proxy, which see `Tunnels`. Below: a `Box`, which `BoxKeeper` starts and stops, and
the channels of `HelperConnection`.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from hashlib import sha256
from os import PathLike
from types import TracebackType
from typing import Any, Final, Self

import anyio
from anyio.abc import ByteStream, TaskGroup

from agentcore.errors import PathError, WorkspaceError, WorkspaceLost, WorkspaceNotOpen
from agentcore.logs import get_logger
from agentcore.workspace.capture import run_to_end
from agentcore.workspace.git import git_changes, git_diff
from agentcore.workspace.ports import Exposed, expose
from agentcore.workspace.protocol import MAX_OUTPUT, MAX_READ, Command
from agentcore.workspace.values import CommandResult, Entry, GitChange, WorkspaceSpec
from agentcore_sandbox.answers import MAX_LISTING, read_entries, read_entry
from agentcore_sandbox.box import Box, Progress, ReportProgress
from agentcore_sandbox.channel import CANCEL_SECONDS, Channel
from agentcore_sandbox.connection import HelperConnection
from agentcore_sandbox.frames import absolute_path_in
from agentcore_sandbox.keeper import BoxKeeper
from agentcore_sandbox.network.policy import Allow, NetworkPolicy
from agentcore_sandbox.network.proxy import Proxy
from agentcore_sandbox.networking import BoxProxy, MakeProxy, RefusalNotes
from agentcore_sandbox.process import BoxProcess
from agentcore_sandbox.transfer import receive_tree, send_tree
from agentcore_sandbox.tunnels import Listener, TunnelHandler, TunnelStream
from agentcore_sandbox.views.server import Views
from agentcore_sandbox.views.view import WebView, check_views, parse_views

_log: Final = get_logger(__name__)

# Of the box's own control group, as it is seen inside: of version 2, and of version 1.
_MEMORY_EVENTS: Final = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
_OOM_KILLS: Final = re.compile(rb"^oom_kill (\d+)$", re.MULTILINE)
_LOOK_SECONDS: Final = 5.0
OUT_OF_MEMORY: Final = "The memory of the box was used up. Use less at once; only who made the box can give it more."
"""The sentence about a command that was killed for that."""
# As many as the helper knows.
_MAX_OWNERS: Final = 1000
_LINGER_SECONDS: Final = 5.0
"""How long a connection that was served waits for the other end to take what was sent."""


class BoxWorkspace:
    """A workspace in a box. Files and commands are there, and nothing of them is here.

    If the helper dies, calls under way raise `WorkspaceLost` and the next call starts another one; if the box is gone, each call says
    so. Cancelling a call ends what it started within 7 seconds, in general within 0.3; if the helper can't be reached just then, it ends
    everything by itself, 15 s after the last word.

    Args:
        box: The box. The workspace is its only owner: it starts it when it is entered, and stops it when it is left.
        on_progress: Is awaited with each `Progress` while the box starts.
        network: The hosts that commands reach. The box itself has no network unless this is "full"; allowed hosts are reached through a
            proxy outside.
        make_proxy: Makes that proxy: for tests, whose hosts are on this machine.
    """

    def __init__(
        self,
        box: Box,
        *,
        network: NetworkPolicy = "none",
        on_progress: ReportProgress | None = None,
        make_proxy: MakeProxy = Proxy,
    ) -> None:
        self._box = box
        self._proxy = proxy = BoxProxy(network, make_proxy) if isinstance(network, Allow) else None
        self._on_progress = on_progress
        self._root: str | None = None
        self._oom_kills = 0
        # By owner, the latest last.
        self._epochs: dict[str, int] = {}
        self._open = False
        self._keeper: BoxKeeper | None = None
        self._tasks: TaskGroup | None = None
        self._listeners: list[Listener] = []
        if proxy is not None:
            self._listeners.append(Listener(proxy.port, proxy.handle, on_port=partial(setattr, proxy, "port")))
        self._views: Views | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._box!r})"

    @property
    def root(self) -> str:
        """The absolute path of the project's folder, inside. Known from when the workspace is first entered."""
        if self._root is None:
            raise WorkspaceNotOpen(repr(self))
        return self._root

    @property
    def is_open(self) -> bool:
        return self._open

    def record(self) -> WorkspaceSpec:
        """Return what the workspace can be made from again: the kind of box, and its parameters."""
        spec = self._box.spec
        return WorkspaceSpec(kind=spec.kind, params=dict(spec.params), loosened=spec.loosened)

    async def __aenter__(self) -> Self:
        if self._open:
            raise WorkspaceError(f"{self!r} is entered already. Enter it once, and hand it on.")
        self._open = True
        self._keeper = BoxKeeper(self._box, repr(self), self._report, self._greet, self._on_connected)
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        try:
            self._tasks.start_soon(self._keeper.live)
            await self._keeper.connect()
        except BaseException:
            await self._leave()  # noqa: ASYNC102 bounded there, and it has to be left
            raise
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._leave()  # noqa: ASYNC102 bounded there, and it has to be left

    async def _leave(self) -> None:
        self._open = False
        self._views = None
        keeper, tasks = self._keeper, self._tasks
        assert keeper is not None
        assert tasks is not None
        keeper.leave()
        # The handlers of tunnels; the keeper is shielded, and bounded by itself.
        tasks.cancel_scope.cancel("the workspace is left")
        await tasks.__aexit__(None, None, None)

    async def _report(self, progress: Progress) -> None:
        if self._on_progress is not None:
            await self._on_progress(progress)

    def _greet(self) -> dict[str, Any]:
        inside = self._box.inside
        return {
            "epochs": self._epochs,
            "box": f"{self._box.spec.kind}-{sha256(os.fsencode(f'{inside.root}:{inside.state}')).hexdigest()[:16]}",
            "root": inside.root,
            "state": inside.state,
            "whole": inside.whole,
            "env": inside.env,
        }

    async def _on_connected(self, connection: HelperConnection) -> None:
        if self._root is None:
            assert connection.hello is not None
            self._root = connection.hello.root
        for listener in self._listeners:
            try:
                await self._listen_again(connection, listener)
            except WorkspaceLost:
                raise
            except WorkspaceError as error:  # everything else works without it
                _log.warning("not_listening", workspace=repr(self), port=listener.port, error=str(error))

    async def _listen_again(self, connection: HelperConnection, listener: Listener) -> None:
        try:
            await self._start_listening(connection, listener)
        except WorkspaceLost:
            raise
        except WorkspaceError:
            if listener.on_port is None:
                raise
            listener.port = 0  # a command has taken it, and any other will do
            await self._start_listening(connection, listener)
        if listener.on_port is not None:
            listener.on_port(listener.port)

    async def fence(self, epoch: int, owner: str) -> None:
        """Take the box over: end what earlier openings of the conversation started in it, and keep them out.

        What this opening of the box runs is spared, and so are boxes over the same folder that other conversations have open.

        Args:
            epoch: The number of this opening; the log counts them.
            owner: The id of the conversation.

        Raises:
            WorkspaceLost: The box belongs to a later opening of the conversation ("fenced"), or it is gone.
        """
        before = self._epochs.get(owner)
        # From now on, so that a helper that is started for this knows it: it may be all that the box is open for.
        self._epochs.pop(owner, None)
        self._epochs = {**dict(list(self._epochs.items())[1 - _MAX_OWNERS :]), owner: epoch}
        try:
            async with self._ask("fence", epoch=epoch, owner=owner) as channel:
                await channel.result()
        except BaseException:
            if before is None:
                self._epochs.pop(owner, None)
            else:
                self._epochs[owner] = before
            raise

    async def explain_kill(self) -> str | None:
        """Return a sentence where the box's memory was used up since the last call; None where it cannot be read inside."""
        with anyio.move_on_after(_LOOK_SECONDS), suppress(WorkspaceError):  # noqa: ASYNC912 reading a file waits
            for path in _MEMORY_EVENTS:
                with suppress(PathError):
                    kills = _OOM_KILLS.search(await self.read(path))
                    if kills is not None and int(kills[1]) > self._oom_kills:
                        self._oom_kills = int(kills[1])
                        return OUT_OF_MEMORY
        return None

    def resolve(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self.root, path))

    async def run(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        max_output: int = MAX_OUTPUT,
    ) -> CommandResult:
        async with self.open_process(command, cwd=cwd, env=env) as process:
            return await run_to_end(process, stdin=stdin, max_output=max_output)

    @asynccontextmanager
    async def open_process(
        self,
        command: Command,
        *,
        pty: bool = False,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        size: tuple[int, int] = (80, 24),
    ) -> AsyncGenerator[BoxProcess]:
        asked: dict[str, Any] = {"line": command} if isinstance(command, str) else {"argv": list(command)}
        variables, notes = dict(env or {}), None
        if self._proxy is not None and self._open:
            # Which port it is, is known when the helper has started.
            await self._connect()
            variables = self._proxy.environment(self._box.inside.env) | variables
            notes = RefusalNotes(self._proxy.refusals)
        asked |= {"cwd": self._at(cwd or "."), "env": variables, "pty": pty, "size": list(size)}
        async with self._ask("process", **asked) as channel:
            pid = await channel.started("pid")
            yield BoxProcess(channel, pid, has_terminal=pty, notes=notes)

    async def read(self, path: str, *, max_bytes: int = MAX_READ) -> bytes:
        if max_bytes < 0:
            raise ValueError(f"max_bytes is a number of bytes, not {max_bytes}.")
        async with self._ask("read", path=self._at(path), max_bytes=max_bytes, changes=False) as channel:
            return await channel.collect(max_bytes)

    async def write(self, path: str, data: bytes | str) -> None:
        await self._store(data, path=self._at(path), append=False)

    async def append(self, path: str, data: bytes | str) -> None:
        # As on this machine, what was begun is done, so that a caller who is cancelled knows what is there. A helper that is gone ends it.
        with anyio.CancelScope(shield=True):
            await self._store(data, path=self._at(path), append=True)

    async def _store(self, data: bytes | str, **arguments: Any) -> None:
        content = data.encode() if isinstance(data, str) else bytes(data)
        async with self._ask("write", mode=None, **arguments) as channel:
            await channel.send_all(content)
            await channel.result()

    async def list(self, path: str = ".") -> tuple[Entry, ...]:
        async with self._ask("list", path=self._at(path), changes=False) as channel:
            return await channel.checked_in_thread(read_entries, await channel.collect(MAX_LISTING))

    async def stat(self, path: str) -> Entry | None:
        async with self._ask("stat", path=self._at(path), changes=False) as channel:
            return channel.checked(read_entry, await channel.result())

    async def upload(self, local: str | PathLike[str], remote: str) -> None:
        target = self._at(remote)
        async with self._ask("put_tree", path=target) as channel:
            await send_tree(channel, local)

    async def download(self, remote: str, local: str | PathLike[str]) -> None:
        source = self._at(remote)
        async with self._ask("get_tree", path=source, changes=False) as channel:
            await receive_tree(channel, local)

    async def git_changes(self) -> tuple[GitChange, ...]:
        return await git_changes(self)

    async def git_diff(self, path: str | None = None) -> str:
        return await git_diff(self, None if path is None else self._at(path))

    async def private_folder(self, name: str) -> str:
        async with self._ask("private", name=name) as channel:
            return channel.checked(lambda values: absolute_path_in(values, "path"), await channel.result())

    async def remove_private_folder(self, name: str) -> None:
        async with self._ask("unprivate", name=name) as channel:
            await channel.result()

    @asynccontextmanager
    async def connect(self, port: int) -> AsyncGenerator[ByteStream]:
        """Connect to a port on 127.0.0.1 inside; leaving ends the connection.

        Raises:
            WorkspaceError: Nothing listens there.
        """
        async with self._ask("connect", port=port) as channel:
            await channel.started()
            yield TunnelStream(channel)
            if channel.has_sent_all:
                await channel.finish_sending(_LINGER_SECONDS)

    async def expose(self, port: int) -> Exposed:
        """Publish a port inside on a free port of 127.0.0.1 here, until it is closed or the workspace is left.

        Every user of this machine can reach it there. A program that listens inside later is reached as well.

        Raises:
            ValueError: It is not a port.
            WorkspaceError: There is no port to listen on.
        """
        if not self._open or self._tasks is None:
            raise WorkspaceNotOpen(repr(self))
        return await expose(self._tasks, self.connect, port)

    async def views(self, offered: Mapping[str, WebView] | None = None) -> dict[str, str]:
        """Return addresses for a person's browser, by name: the image's desktop, editor or terminal, for one.

        Each is good for one use within 60 seconds, and opens the view in that browser until the workspace is left. What serves the view is
        started when it is first looked at. Call it again for new addresses.

        Args:
            offered: Views besides those that the image names in its label.

        Raises:
            WorkspaceError: The image's label is not one of views, or there is no port to listen on.
            ValueError: A name is not the name of a view.
        """
        offers = {**self.image_views(), **(offered or {})}
        check_views(offered or {})
        assert self._tasks is not None
        if self._views is None:
            self._views = Views(self._tasks, self)
        return await self._views.open(offers)

    def image_views(self) -> Mapping[str, WebView]:
        """Return the views that the image names in its label, by name.

        Raises:
            WorkspaceError: The label is not one of views.
        """
        if not self._open:
            raise WorkspaceNotOpen(repr(self))
        return parse_views(self._box.inside.views)

    @asynccontextmanager
    async def listen(self, port: int, handler: TunnelHandler) -> AsyncGenerator[int]:
        """Listen on a port of 127.0.0.1 inside (0: any), until the context is left, and return which it is.

        It is listened on again when a new helper is started. Each connection has a task of its own, in which `handler` serves it.

        Raises:
            WorkspaceError: The port is taken.
        """
        listener = Listener(port, handler)
        connection = await self._connect()
        try:
            await self._start_listening(connection, listener)
            self._listeners.append(listener)
            yield listener.port
        finally:
            if listener in self._listeners:
                self._listeners.remove(listener)
            if listener.channel is not None:
                await listener.channel.aclose()

    async def _start_listening(self, connection: HelperConnection, listener: Listener) -> None:
        channel = listener.channel = connection.open("listen", port=listener.port)
        channel.accept = lambda accepted: self._accept(accepted, listener.handler)
        # The same one again with the next helper.
        listener.port = await channel.started("port")

    def _accept(self, channel: Channel, handler: TunnelHandler) -> None:
        assert self._tasks is not None
        self._tasks.start_soon(self._serve, channel, handler)

    async def _serve(self, channel: Channel, handler: TunnelHandler) -> None:
        try:
            await handler(TunnelStream(channel))
            # As any connection that is closed: what was sent arrives.
            await channel.finish_sending(_LINGER_SECONDS)
        except Exception as error:  # one connection that fails ends by itself
            _log.warning("tunnel_failed", workspace=repr(self), error=repr(error))
        finally:
            channel.close()

    @asynccontextmanager
    async def _ask(self, op: str, *, changes: bool = True, **arguments: Any) -> AsyncGenerator[Channel]:
        """Have the helper do something; it ends when this is left, and with `changes` leaving waits for that."""
        connection = await self._connect()
        channel = connection.open(op, **arguments)
        try:
            yield channel
        finally:
            channel.close()
            if changes:
                await channel.aclose(CANCEL_SECONDS)  # noqa: ASYNC102 shielded and bounded there

    async def _connect(self) -> HelperConnection:
        if not self._open or self._keeper is None:
            raise WorkspaceNotOpen(repr(self))
        return await self._keeper.connect()

    def _at(self, path: str) -> str:
        if not self._open:
            raise WorkspaceNotOpen(repr(self))
        return self.resolve(path)
