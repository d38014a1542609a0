"""`PlainBox`: the helper as a plain process of this machine. It confines nothing: for tests, and to measure what a box costs.

Above: `BoxWorkspace`. Below: processes of this machine, as `LocalWorkspace` starts them, so that nothing of it is left however it ends.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from os import PathLike
from typing import Final, final

import anyio
from anyio.abc import ByteStream

from agentcore.workspace.files import FILES
from agentcore.workspace.launch import STARTS, LaunchSpec
from agentcore.workspace.local import make_private_folder
from agentcore.workspace.process import LocalProcess, open_local_process
from agentcore.workspace.process_table import MARKS
from agentcore.workspace.reaper import REAPER
from agentcore_sandbox.bootstrap import BOOT_COMMAND
from agentcore_sandbox.box import BoxSpec, Inside, LostReason, Progress, ReportProgress

_END_SECONDS: Final = 7.0
"""How long a helper may take to end what it started, and itself."""
_KEPT_WORDS: Final = 2048
_GONE_SECONDS: Final = 1.0


@final
class PlainBox:
    """A folder of this machine, with a helper that runs as this user.

    Args:
        path: The folder.
        env: The variables of commands.
        state: The folder for what tools keep aside; by default one of this user's, below the folder for temporary files.
        command: How to start a helper.
        views: The label of views that an image would have.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        env: Mapping[str, str] | None = None,
        state: str | PathLike[str] | None = None,
        command: Sequence[str] = BOOT_COMMAND,
        views: str = "",
    ) -> None:
        self._path: str = os.fspath(path)
        self._env = dict(env or {})
        self._state = None if state is None else os.fspath(state)
        self._command = tuple(command)
        self._views = views
        self._process: LocalProcess | None = None
        self._words = b""

    def __repr__(self) -> str:
        return f"PlainBox({self._path!r})"

    @property
    def spec(self) -> BoxSpec:
        return BoxSpec(kind="plain", params={"path": self._path}, loosened=("Nothing is confined: it is for tests.",))

    @property
    def inside(self) -> Inside:
        assert self._state is not None
        return Inside(root=self._path, state=self._state, env=self._env, views=self._views)

    async def start(self, progress: ReportProgress) -> None:
        self._path = await FILES.run(os.path.abspath, self._path)
        if self._state is None:
            self._state = await FILES.run(make_private_folder, self._path, "box")
        await STARTS.run(REAPER.hold, self)
        await progress(Progress(phase="ready"))

    async def stop(self) -> None:
        await STARTS.run(REAPER.release, self)

    async def find(self, labels: Mapping[str, str]) -> bool:  # noqa: ARG002 - the protocol's
        """Return False: a plain box is nothing that could be found."""
        return False

    @asynccontextmanager
    async def open_stream(self) -> AsyncGenerator[ByteStream]:
        mark = os.urandom(8).hex()
        variables = {"PATH": os.environ.get("PATH", os.defpath), MARKS: f"{REAPER.mark}:{mark}"}
        self._words = b""
        async with open_local_process(LaunchSpec(self._command, "/", variables, mark, terminal=None)) as process:
            self._process = process
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._keep_words, process)
                try:
                    yield ProcessStream(process)
                finally:
                    # The end of its input is the end of it; what it leaves is ended by the process's own context.
                    with anyio.move_on_after(_END_SECONDS, shield=True):
                        await process.send_eof()
                        await process.wait()
                    tasks.cancel_scope.cancel()

    async def reason_lost(self) -> LostReason:
        with anyio.move_on_after(_GONE_SECONDS):  # noqa: ASYNC912 nothing waits where nothing was started
            if self._process is not None:
                await self._process.wait()
            return "exited"
        return "unreachable"

    def last_words(self) -> str:
        return self._words.decode(errors="replace")

    async def _keep_words(self, process: LocalProcess) -> None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                self._words = (self._words + await process.receive_stderr())[-_KEPT_WORDS:]


@final
class ProcessStream(ByteStream):
    """The pipes of a process as one stream."""

    def __init__(self, process: LocalProcess) -> None:
        self._process = process

    async def receive(self, max_bytes: int = 65536) -> bytes:
        return await self._process.receive(max_bytes)

    async def send(self, item: bytes) -> None:
        await self._process.send(item)

    async def send_eof(self) -> None:
        await self._process.send_eof()

    async def aclose(self) -> None:
        await self._process.send_eof()
