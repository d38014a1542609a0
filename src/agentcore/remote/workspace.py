"""`RemoteWorkspace`: a folder on a server as a workspace.

Above: tools, which see a `Workspace`. Below: `ServerClient`, and the routes below `/api/v1/workspaces` of `agentcore_serve`.
"""

from __future__ import annotations

import os
import posixpath
import secrets
import stat as modes
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib import import_module
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, final
from urllib.parse import quote

import anyio
from anyio.abc import ByteStream, TaskGroup
from anyio.to_thread import run_sync
from pydantic import JsonValue, SecretStr

from agentcore._arguments import FLAG, SECONDS, TEXT, checked, instance_of, optional
from agentcore.errors import AgentcoreError, ConnectionLost, PathError, ServerError, WorkspaceError, WorkspaceNotOpen
from agentcore.remote.address import find_key, parse_address
from agentcore.remote.bodies import base64_of, query_of, read_answer
from agentcore.remote.process import RemoteProcess
from agentcore.remote.transfer import pack, save_pieces, send_pieces, stat_file, temporary_folder, unpack
from agentcore.remote.tunnel import open_tunnel
from agentcore.wire.workspaces import CommandAnswer, Diff, Folder, OpenProcess, ViewInfo, WorkspaceInfo
from agentcore.workspace.capture import run_to_end
from agentcore.workspace.files import FILES, copy
from agentcore.workspace.ports import Exposed, expose
from agentcore.workspace.protocol import MAX_OUTPUT, MAX_READ, Command
from agentcore.workspace.values import CommandResult, Entry, GitChange, WorkspaceSpec

if TYPE_CHECKING:
    from agentcore.conversation.link import Link
    from agentcore.conversation.setup import Setup
    from agentcore.remote.client import ServerClient

_WAIT_SECONDS: Final = 20
"""How long one request waits for a command; then the next one asks again."""
_OPEN_SECONDS: Final = 15.0
"""How long opening tries a server that can't be reached: a wrong address should not take five minutes to say so."""
_LONG_SECONDS: Final = 600.0
_CANCEL_SECONDS: Final = 7.0
# Of input and of a command together; the server's limit of a JSON body is 2 MB.
_MAX_POSTED: Final = 1_000_000
_PIECE: Final = 1 << 18
_BYTES: Final = {"Content-Type": "application/octet-stream"}
_TAR: Final = {"Content-Type": "application/x-tar"}


_KEY: Final = instance_of(str, SecretStr, description="text or a SecretStr")


@final
class RemoteWorkspace:
    """A folder on a server that runs `agentcore serve`. Files and commands are there.

    A connection that is cut is made again, for `reconnect_seconds`; requests that may not arrive twice carry an id by which the server
    knows them, so nothing runs twice. A command goes on for 5 s without its client and then ends; a process ends with its connection.

    Cancelling a call ends what it started within 7 seconds, in general within 0.5. If the server cannot be reached just then, it ends what
    belongs to the connection by itself: commands 5 s after it noticed, processes 20 s after the last word.

    Args:
        url: Where the server is, as in "https://agents.example.org".
        api_key: The key; by default `AGENTCORE_SERVER_KEY` of the environment. It is in no record, repr or error.
        path: The folder, below the server's root; it is made if need be. By default a fresh one.
        id: A workspace that is there already, in place of a path.
        agent: The server's agent that conversations here have, by its name, where the program passes none.
        reconnect_seconds: How long to try again before a call raises `ConnectionLost`.
        insecure: Allow http:// to another machine than this one, where anybody on the way can read the key.

    Raises:
        ValueError: The url is not one of a server or unprotected, or both a path and an id were passed.
        TypeError: An argument is not what it has to be.
    """

    @checked(
        url=TEXT,
        api_key=optional(_KEY),
        path=optional(TEXT),
        id=optional(TEXT),
        agent=optional(TEXT),
        reconnect_seconds=SECONDS,
        insecure=FLAG,
    )
    def __init__(
        self,
        url: str,
        *,
        api_key: str | SecretStr | None = None,
        path: str | None = None,
        id: str | None = None,  # noqa: A002 - the name everybody expects
        agent: str | None = None,
        reconnect_seconds: float = 300,
        insecure: bool = False,
    ) -> None:
        if path is not None and id is not None:
            raise ValueError("Pass path (a folder) or id (a workspace that is there already), not both.")
        self._url = parse_address(url, insecure=insecure)
        self._key = find_key(api_key)
        self._made_client: ServerClient | None = None
        self._insecure = insecure
        self._agent = agent
        self._reconnect = reconnect_seconds
        self._path = path
        self._id = id
        # So that asking twice for a fresh folder, after a cut, makes one.
        self._fresh_id = f"ws_{secrets.token_hex(10)}"
        self._root: str | None = None
        self._open = False
        self._tasks: TaskGroup | None = None

    def __repr__(self) -> str:
        place = f", id={self._id!r}" if self._id else f", path={self._path!r}" if self._path else ""
        return f"RemoteWorkspace({self._url!r}{place})"

    @property
    def id(self) -> str | None:
        """The server's id of it; None until it was entered, unless it was passed."""
        return self._id

    @property
    def root(self) -> str:
        """The absolute path of the folder on the server. Known from when the workspace is first entered."""
        if self._root is None:
            raise WorkspaceNotOpen(repr(self))
        return self._root

    @property
    def is_open(self) -> bool:
        return self._open

    def record(self) -> WorkspaceSpec:
        """Return the url and the id; never the key."""
        params: dict[str, JsonValue] = {"url": self._url, "id": self._id}
        if self._insecure:
            params["insecure"] = True
        return WorkspaceSpec(kind="remote", params=params)

    async def _make_client(self) -> ServerClient:
        made = self._made_client
        if made is None:
            # It imports httpx, which takes a while.
            client = await run_sync(import_module, "agentcore.remote.client")
            made = self._made_client = client.ServerClient(
                self._url, api_key=self._key, reconnect_seconds=self._reconnect, insecure=self._insecure
            )
        return made

    @property
    def _client(self) -> ServerClient:
        if self._made_client is None:
            raise WorkspaceNotOpen(repr(self))
        return self._made_client

    @asynccontextmanager
    async def open_link(self, setup: Setup) -> AsyncGenerator[Link]:
        """Open a conversation on the server: `Conversation(agent, workspace=RemoteWorkspace(...))` does this.

        Raises:
            ConversationError: A part of what it is opened with cannot be used with a server.
            AgentcoreError: What the server refuses, with the error of its kind.
        """
        opening = await run_sync(import_module, "agentcore.remote.opening")  # all of a conversation
        async with AsyncExitStack() as stack:
            if not self._open:
                if setup.id is not None and self._id is None and self._path is None:
                    async with await self._make_client() as client:
                        self._id = await opening.find_workspace(client, setup.id)
                await stack.enter_async_context(self)
            yield await stack.enter_async_context(
                opening.open_remote(self._client, self, self._id, setup, profile=self._agent)
            )

    async def __aenter__(self) -> Self:
        if self._open:
            raise WorkspaceError(f"{self!r} is entered already. Enter it once, and hand it on.")
        self._open = True
        try:
            client = await self._make_client()
        except BaseException:
            self._open = False
            raise
        try:
            await client.__aenter__()
            info = await self._find()
        except BaseException:
            self._open = False
            await client.__aexit__()  # noqa: ASYNC102 shielded and bounded there
            raise
        self._id, self._root = info.id, info.root
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        return self

    async def _find(self) -> WorkspaceInfo:
        seconds = min(_OPEN_SECONDS, self._reconnect)
        if self._id is not None:
            where = f"workspaces/{quote(self._id, safe='')}"
            answer = await self._client.request("GET", where, reconnect_seconds=seconds)
        else:
            wanted = {"id": self._fresh_id} if self._path is None else {"folder": self._path}
            answer = await self._client.request("POST", "workspaces", json=wanted, reconnect_seconds=seconds)
        return read_answer(WorkspaceInfo, answer.content)

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open = False
        tasks, self._tasks = self._tasks, None
        try:
            if tasks is not None:
                # Each holds a socket, whose end is the end of the process on the server.
                tasks.cancel_scope.cancel("the workspace is left")
                await tasks.__aexit__(None, None, None)  # noqa: ASYNC102 cancelled above, and it has to be left
        finally:
            await self._client.__aexit__()  # noqa: ASYNC102 shielded and bounded there

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
        self._check_open()
        if max_output < 0:
            raise ValueError(f"max_output is a number of bytes, not {max_output}.")
        size = len(stdin or b"") + (len(command) if isinstance(command, str) else sum(map(len, command)))
        if size > _MAX_POSTED:
            # What does not fit into a request goes in pieces.
            async with self.open_process(command, cwd=cwd, env=env) as process:
                return await run_to_end(process, stdin=stdin, max_output=max_output)
        return await self._post_command(
            {
                "command": command if isinstance(command, str) else list(command),
                "cwd": cwd,
                "env": dict(env or {}),
                "stdin": base64_of(stdin),
                "max_output": max_output,
                "wait": _WAIT_SECONDS,
            }
        )

    async def _post_command(self, body: dict[str, JsonValue]) -> CommandResult:
        command_id = secrets.token_hex(16)
        done = False
        try:
            while True:
                answer = await self._request_once("POST", "commands", json={**body, "id": command_id})
                result = read_answer(CommandAnswer, answer).result
                if result is not None:
                    done = True
                    return result
        except Exception:
            done = True
            raise
        finally:
            if not done:
                await self._end_command(command_id)  # noqa: ASYNC102 shielded and bounded there

    async def _end_command(self, command_id: str) -> None:
        # Cancelled: the caller may rely on it that nothing is left, so this waits until the server says so.
        with anyio.move_on_after(_CANCEL_SECONDS, shield=True):  # noqa: ASYNC912 a request waits
            try:
                await self._request("DELETE", f"commands/{command_id}", reconnect_seconds=_CANCEL_SECONDS)
            except AgentcoreError:
                return  # it ends with the connection

    @asynccontextmanager
    async def open_process(
        self,
        command: Command,
        *,
        pty: bool = False,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        size: tuple[int, int] = (80, 24),
    ) -> AsyncGenerator[RemoteProcess]:
        self._check_open()
        opening = OpenProcess(
            command=command if isinstance(command, str) else tuple(command),
            pty=pty,
            cwd=cwd,
            env=dict(env or {}),
            size=size,
        )
        path = self._at("processes")
        process = RemoteProcess(opening, lambda: self._client.stream_socket(path), self._url)
        assert self._tasks is not None
        self._tasks.start_soon(process.hold)
        try:
            await process.started()
            yield process
        finally:
            await process.aclose()

    async def read(self, path: str, *, max_bytes: int = MAX_READ) -> bytes:
        return await self._request("GET", "files", {"path": self._resolve(path), "max_bytes": max_bytes})

    async def write(self, path: str, data: bytes | str) -> None:
        content = data.encode() if isinstance(data, str) else bytes(data)
        await self._request("PUT", "files", {"path": self._resolve(path)}, content=content, headers=_BYTES)

    async def append(self, path: str, data: bytes | str) -> None:
        content = data.encode() if isinstance(data, str) else bytes(data)
        where = {"path": self._resolve(path), "id": secrets.token_hex(16)}
        await self._request_once("POST", "files/append", where, content=content, headers=_BYTES)

    async def list(self, path: str = ".") -> tuple[Entry, ...]:
        return read_answer(tuple[Entry, ...], await self._request("GET", "list", {"path": self._resolve(path)}))

    async def stat(self, path: str) -> Entry | None:
        answer = await self._request("GET", "stat", {"path": self._resolve(path)})
        return None if answer == b"null" else read_answer(Entry, answer)

    async def upload(self, local: str | PathLike[str], remote: str) -> None:
        source, target = await FILES.run(os.path.abspath, os.fspath(local)), self._resolve(remote)
        mode = (await FILES.run(stat_file, source)).st_mode
        if modes.S_ISDIR(mode):
            await self._upload_folder(source, target)
            return
        where = {"path": target, "mode": f"{mode & 0o777:03o}"}
        await self._request("PUT", "files", where, content=lambda: send_pieces(source), headers=_BYTES)

    async def _upload_folder(self, source: str, target: str) -> None:
        async with temporary_folder() as folder:
            archive = str(folder / "archive")
            await FILES.run(pack, source, archive)
            await self._request("PUT", "folders", {"path": target}, content=lambda: send_pieces(archive), headers=_TAR)

    async def download(self, remote: str, local: str | PathLike[str]) -> None:
        source, target = self._resolve(remote), os.fspath(local)
        async with temporary_folder() as folder:
            content = folder / "content"
            try:
                mode = await self._save("files", source, content)
                await FILES.run(content.chmod, mode)
                await copy(str(content), target, through_links=False)
            except PathError as error:
                if error.reason != "is_a_folder" or error.path != source:
                    raise
                await self._save("folders", source, content)
                unpacked = str(folder / "unpacked")
                await FILES.run(unpack, str(content), unpacked)
                await copy(unpacked, target, through_links=False)

    async def _save(self, route: str, path: str, target: Path) -> int:
        """Save what the server sends, and return the mode that it has there."""
        where = query_of({"path": path})
        async with self._client.stream("GET", f"{self._at(route)}?{where}", whole=False) as response:
            await save_pieces(response.aiter_raw(_PIECE), target)
            return int(response.headers.get("agentcore-mode", "666"), 8)

    async def git_changes(self) -> tuple[GitChange, ...]:
        return read_answer(tuple[GitChange, ...], await self._request("GET", "changes"))

    async def git_diff(self, path: str | None = None) -> str:
        where = {} if path is None else {"path": self._resolve(path)}
        return read_answer(Diff, await self._request("GET", "diff", where)).diff

    async def private_folder(self, name: str) -> str:
        return read_answer(Folder, await self._request("PUT", "private", {"name": name})).path

    async def remove_private_folder(self, name: str) -> None:
        await self._request("DELETE", "private", {"name": name})

    async def expose(self, port: int) -> Exposed:
        """Publish a port inside of the server's box on a free port of 127.0.0.1 here, until it is closed or the workspace is left.

        Every user of this machine can reach it there. A program that listens inside later is reached as well. Each connection goes through
        the server, with this workspace's key.

        Raises:
            ValueError: It is not a port.
            WorkspaceError: There is no port to listen on.
            MissingExtra: The extra "remote" is not installed.
        """
        self._check_open()
        assert self._tasks is not None
        self._client.check_sockets()

        def connect(inside: int) -> AbstractAsyncContextManager[ByteStream]:
            return open_tunnel(lambda: self._client.stream_socket(self._at(f"tunnels/{inside}")))

        return await expose(self._tasks, connect, port)

    async def views(self) -> dict[str, str]:
        """Return addresses for a person's browser, by name: the desktop, editor or terminal of the box's image, for one.

        Each is good for one use within 60 seconds, and opens the view in that browser. They are addresses of the server. Call it again for new ones.

        Raises:
            ServerError: The workspace is not in a box, or the server has no host for views.
        """
        found = read_answer(tuple[ViewInfo, ...], await self._request("GET", "views"))
        return {view.name: view.url for view in found}

    async def _request(
        self,
        method: str,
        route: str,
        params: Mapping[str, str | int] | None = None,
        *,
        json: Any = None,
        content: Any = None,
        headers: Mapping[str, str] | None = None,
        reconnect_seconds: float | None = None,
    ) -> bytes:
        where = f"?{query_of(params)}" if params else ""
        answer = await self._client.request(
            method,
            f"{self._at(route)}{where}",
            json=json,
            content=content,
            headers=headers,
            reconnect_seconds=reconnect_seconds,
            read_seconds=_LONG_SECONDS if route != "commands" else None,
        )
        return answer.content

    async def _request_once(self, method: str, route: str, *args: Any, **kwargs: Any) -> bytes:
        try:
            return await self._request(method, route, *args, **kwargs)
        except ServerError as error:
            if error.code != "command_lost":
                raise
            raise ConnectionLost(self._url, f"{error} That was in {self!r}.") from error

    def _check_open(self) -> None:
        if not self._open:
            raise WorkspaceNotOpen(repr(self))

    def _resolve(self, path: str) -> str:
        self._check_open()
        return self.resolve(path)

    def _at(self, route: str) -> str:
        self._check_open()
        assert self._id is not None
        return f"workspaces/{quote(self._id, safe='')}/{route}"
