"""`BubblewrapBox`: namespaces of this machine as a box, made by bubblewrap for any user.

Above: `BubblewrapWorkspace`. Below: `RunningBox`. The helper is the first program inside, so a box lives as long as its helper: when that
ends, all that runs in it has ended, and the next stream is to a new one over the same folders. It ends with this program, too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, final

import anyio
from anyio.abc import ByteStream
from pydantic import JsonValue

from agentcore._threads import Threads
from agentcore.errors import WorkspaceError, WorkspaceLost
from agentcore.workspace.local import make_private_folder
from agentcore_sandbox.box import BoxSpec, Inside, LostReason, Progress, ReportProgress
from agentcore_sandbox.bubblewrap.folders import find_read_only, find_root
from agentcore_sandbox.bubblewrap.layout import HOME, USER, Layout, find_python
from agentcore_sandbox.bubblewrap.limits import ControlGroup, Limits, can_limit_processes_alone, find_hierarchies
from agentcore_sandbox.bubblewrap.refusals import explain_failure, missing_bwrap, no_filter, too_old
from agentcore_sandbox.bubblewrap.running import RunningBox
from agentcore_sandbox.bubblewrap.seccomp import ARCHITECTURES, build_filter
from agentcore_sandbox.network.policy import NetworkPolicy, loosenings

_OLDEST: Final = (0, 8)
_START_SECONDS: Final = 20.0
_END_SECONDS: Final = 2.0
"""How long the helper has to end what it started; then it is ended with it."""
_KILL_SECONDS: Final = 2.0
# Not the threads of files, which a slow disk may hold.
_THREADS: Final = Threads("bubblewrap", 8)


class BubblewrapOptions(NamedTuple):
    """A box, as it was asked for."""

    path: str
    network: NetworkPolicy = "none"
    env: Mapping[str, str] = {}
    read_only: Sequence[str] = ()
    tmp_bytes: int = 1 << 30
    limits: Limits = Limits(2 << 30, 512)


class _Prepared(NamedTuple):
    bwrap: str
    layout: Layout
    group: ControlGroup
    filter: bytes
    loosened: tuple[str, ...]


@final
class BubblewrapBox:
    """Meets `Box`."""

    def __init__(self, options: BubblewrapOptions, params: Mapping[str, JsonValue], command: Sequence[str]) -> None:
        """Take what was asked for.

        Args:
            options: The box.
            params: The parameters for the record, without the folder.
            command: The program to run inside, which is the helper's.
        """
        self._options = options
        self._params = dict(params)
        self._command = list(command)
        self._prepared: _Prepared | None = None
        self._running: list[RunningBox] = []
        # The one that `start` made, until the first stream to it is opened.
        self._first: tuple[RunningBox, ByteStream] | None = None
        self._kills = 0
        self._latest: RunningBox | None = None

    @property
    def spec(self) -> BoxSpec:
        prepared = self._prepared
        if prepared is None:
            return BoxSpec(kind="bubblewrap", params={"path": self._options.path, **self._params})
        params = {"path": prepared.layout.root, **self._params}
        return BoxSpec(kind="bubblewrap", params=params, loosened=prepared.loosened)

    @property
    def inside(self) -> Inside:
        layout = self._ready().layout
        variables = {"PATH": layout.search_path, "HOME": HOME, "USER": USER, "LANG": "C.UTF-8", **self._options.env}
        return Inside(root=layout.root, state=layout.state, whole=True, env=variables)

    async def start(self, progress: ReportProgress) -> None:
        await progress(Progress(phase="create"))
        try:
            self._prepared = await _THREADS.run(self._prepare)
            self._first = await self._launch()
            await progress(Progress(phase="ready"))
        except BaseException:
            await self.stop()  # noqa: ASYNC102 shielded and bounded there
            raise

    async def stop(self) -> None:
        first, self._first = self._first, None
        for running in self._running:
            running.kill()
        with anyio.CancelScope(shield=True):  # noqa: ASYNC912 each of them is bounded
            if first is not None:
                await anyio.aclose_forcefully(first[1])
            for running in list(self._running):
                await self._end(running)
            prepared, self._prepared = self._prepared, None
            if prepared is not None:
                await _THREADS.run(prepared.group.remove)

    async def find(self, labels: Mapping[str, str]) -> bool:  # noqa: ARG002 a box ends with the program that made it
        return False

    @asynccontextmanager
    async def open_stream(self) -> AsyncGenerator[ByteStream]:
        if self._prepared is None:
            raise WorkspaceLost("The bubblewrap box was not started, or was stopped.", reason="removed")
        first, self._first = self._first, None
        running, stream = first or await self._launch()
        try:
            yield stream
        finally:
            try:
                with anyio.CancelScope(shield=True):
                    await anyio.aclose_forcefully(stream)
                    await self._end(running, patience=_END_SECONDS)
            finally:
                running.kill()

    async def reason_lost(self) -> LostReason:
        if self._prepared is None:
            return "removed"
        return "oom" if await self.had_oom() else "exited"

    async def had_oom(self) -> bool:
        """Return True if something inside was ended for want of memory since this was asked last. Never so without a control group."""
        prepared = self._prepared
        if prepared is None:
            return False
        before = self._kills
        self._kills = kills = await _THREADS.run(prepared.group.oom_kills)
        return kills > before

    def last_words(self) -> str:
        return self._latest.last_words() if self._latest is not None else ""

    def _ready(self) -> _Prepared:
        if self._prepared is None:
            raise WorkspaceError("The bubblewrap box was not started.")
        return self._prepared

    def _prepare(self) -> _Prepared:
        """Look at all that a box needs, and make its control groups. Blocks."""
        options = self._options
        root = find_root(options.path)
        machine = os.uname()
        if sys.platform != "linux" or machine.machine not in ARCHITECTURES:
            raise no_filter(machine.sysname, machine.machine)
        bwrap = _find_bwrap()
        read_only = tuple(find_read_only(path) for path in options.read_only)
        state = make_private_folder(root, "bubblewrap")
        layout = Layout(
            root=root,
            state=os.path.realpath(state),
            read_only=read_only,
            tmp_bytes=options.tmp_bytes,
            shares_network=options.network == "full",
            python=find_python(),
        )
        group = ControlGroup(options.limits, find_hierarchies())
        group.make()
        try:
            loosened = tuple(_loosened(options, read_only, group))
        except BaseException:
            group.remove()
            raise
        return _Prepared(bwrap, layout, group, build_filter(ARCHITECTURES[machine.machine]), loosened)

    async def _launch(self) -> tuple[RunningBox, ByteStream]:
        prepared = self._ready()
        script = f'{self._options.limits.shell_line(prepared.group.limited)}echo box is ready; exec "$@"'
        command = ["/bin/sh", "-c", script, "sh", *self._command]
        running = RunningBox(prepared.bwrap, prepared.layout, prepared.group.folders, command, prepared.filter)
        self._running.append(running)
        self._latest = running
        try:
            self._kills = await _THREADS.run(prepared.group.oom_kills)
            await _THREADS.run(running.start)
            with anyio.fail_after(_START_SECONDS):
                return running, await running.open_stream()
        except (OSError, TimeoutError, anyio.EndOfStream, anyio.BrokenResourceError) as error:
            await self._end(running)
            raise await _THREADS.run(explain_failure, running.last_words(), error) from error
        except BaseException:
            # Its stream is closed, so it ends by itself as soon as it is there.
            await self._end(running, patience=_END_SECONDS)  # noqa: ASYNC102 shielded and bounded there
            raise

    async def _end(self, running: RunningBox, *, patience: float = 0) -> None:
        """Wait until it is gone, and end it if that takes longer than so many seconds. Bounded."""
        with anyio.CancelScope(shield=True):
            async with running.ending:
                if running in self._running:
                    with anyio.move_on_after(patience):
                        await running.wait_gone()
                    running.kill()
                    with anyio.move_on_after(_KILL_SECONDS):
                        await running.wait_gone()
                    await _THREADS.run(running.kill_left_behind)
                    await _THREADS.run(running.close)
                    self._running.remove(running)


def _find_bwrap() -> str:
    found = shutil.which("bwrap")
    if found is None:
        raise missing_bwrap()
    try:
        printed = subprocess.run(
            [found, "--version"], capture_output=True, text=True, check=True, timeout=10, env={}
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise WorkspaceError(f"{found} does not run: {error}") from error
    version = tuple(int(part) for part in re.findall(r"\d+", printed)[:2])
    if version < _OLDEST:
        raise too_old(printed.strip())
    return os.path.realpath(found)


def _loosened(options: BubblewrapOptions, read_only: Sequence[str], group: ControlGroup) -> list[str]:
    found = list(loosenings(options.network))
    if options.network == "full":
        found.append("It reaches what listens on this machine, too: also on sockets that have no file.")
    found += [f"It can read {path}." for path in read_only]
    if "memory" not in group.limited:
        found.append("The memory is limited for each process, not for all together: no control group can be made here.")
    if "pids" not in group.limited and not can_limit_processes_alone():
        found.append("The number of processes is not limited: no control group can be made here.")
    if options.limits.cpus is not None and "cpu" not in group.limited:
        raise WorkspaceError("cpus= cannot be kept here, as no control group can be made. Leave it out.")
    return found
