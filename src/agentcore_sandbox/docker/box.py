"""`DockerBox`: a container as a box.

Above: `BoxWorkspace`. Below: `Engine`. A container's root is read-only and its files are in volumes, so that a container which is gone is
made again from them. Names and labels are chosen before anything is made, so whatever is left behind is found again.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, final

import anyio
from anyio.abc import ByteStream
from anyio.to_thread import run_sync

from agentcore.logs import get_logger
from agentcore_sandbox.box import BoxSpec, Inside, LostReason, Progress, ReportProgress
from agentcore_sandbox.docker import labels as names
from agentcore_sandbox.docker.apart import finish, run_whole
from agentcore_sandbox.docker.config import find_loosened, make_inside
from agentcore_sandbox.docker.connect import connect
from agentcore_sandbox.docker.errors import EngineError, EngineUnreachable, NotThere, lost
from agentcore_sandbox.docker.facts import ImageFacts
from agentcore_sandbox.docker.images import find_image
from agentcore_sandbox.docker.make import Plan, make, remove, start
from agentcore_sandbox.docker.mounts import Placed, place
from agentcore_sandbox.docker.options import DockerOptions
from agentcore_sandbox.docker.reattach import Left, check_log, look_for

if TYPE_CHECKING:
    from agentcore_sandbox.docker.engine import Engine, OpenExec

_LOOK_SECONDS: Final = 5.0
_LEAVE_SECONDS: Final = 8.0
"""How long leaving a stream waits for the helper's end, which ends what it started within 5 s."""
_OOM_SECONDS: Final = 30.0
"""How long ago that may have been: a stream whose input waits is noticed to have ended by its silence only, after 15 s."""
_KILL_SECONDS: Final = 1.0
_KILLED: Final = 137
_ENDED: Final = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)

_logger = get_logger(__name__)


@final
class DockerBox:
    """A container that runs until it is stopped, or until nobody has been there for a while.

    Args:
        options: What it is made of.
        command: What starts a helper in it.
        labels: Who it belongs to: "owner" (by default this user), "conversation", "epoch".
        box: The id of one that was made before: it is used again.
    """

    def __init__(
        self,
        options: DockerOptions,
        *,
        command: Sequence[str],
        labels: Mapping[str, str] | None = None,
        box: str | None = None,
    ) -> None:
        self._options = options
        self._command = tuple(command)
        self._labels = {"owner": names.default_owner(), **(labels or {})}
        self._id = box
        self._digest: str | None = None
        self._trusted = True
        self._engine: Engine | None = None
        self._inside: Inside | None = None
        self._loosened: tuple[str, ...] = ()
        self._is_new = False
        self._opened: OpenExec | None = None
        self._is_stuck = False

    def __repr__(self) -> str:
        return f"DockerBox({self._options.image!r}, box={self._id!r})"

    def distrust(self, digest: str | None) -> None:
        """Take all of it for read from a log, which must not loosen anything; and the image for the one with this digest."""
        self._trusted = False
        self._digest = digest

    def label(self, labels: Mapping[str, str]) -> None:
        """Add labels to those of what is made from now on; those that there are stay."""
        self._labels = {**labels, **self._labels}

    @property
    def is_new(self) -> bool:
        """True if starting made it; False if it was there before."""
        return self._is_new

    @property
    def spec(self) -> BoxSpec:
        params = {**self._options.record(), "box": self._id, "digest": self._digest}
        return BoxSpec(kind="docker", params=params, loosened=self._loosened)

    @property
    def inside(self) -> Inside:
        assert self._inside is not None
        return self._inside

    async def find(self, labels: Mapping[str, str]) -> bool:
        engine = await self._connect()
        wanted = {**self._labels, **labels}
        rows = await engine.list_containers(
            [names.BOX, *(f"{names.PREFIX}{key}={value}" for key, value in wanted.items())]
        )
        boxes = [row for row in rows if names.is_box(row["Names"][0], row["Labels"])]
        if boxes:
            newest = max(boxes, key=lambda row: row["Created"])
            self._id = str(newest["Labels"][names.BOX])
        return bool(boxes)

    async def start(self, progress: ReportProgress) -> None:
        engine = await self._connect()
        try:
            await self._start(engine, progress)
        except BaseException:
            await finish(self._disconnect())  # noqa: ASYNC102 shielded there
            raise
        await progress(Progress(phase="ready"))

    async def _start(self, engine: Engine, progress: ReportProgress) -> None:
        options = self._options
        engine.facts.check_runtime(options.runtime)
        placed = await run_sync(place, options, engine.facts)
        left, note = await self._find_left(engine, placed)
        image = left.image if left is not None and left.image is not None else await self._find_image(engine, progress)
        await progress(Progress(phase="create"))
        if left is not None and left.kind == "container":
            await start(engine, self._name, options.image)
        else:
            await self._make(engine, placed, image, volumes_are_there=left is not None)
        self._inside = make_inside(options, image)
        self._digest = image.digest
        self._is_new = left is None
        self._loosened = (*find_loosened(options, engine.facts, placed), *note)

    async def _find_left(self, engine: Engine, placed: Placed) -> tuple[Left | None, tuple[str, ...]]:
        """Look for the box that is to be used again. Where it is gone and a new one loses no files, that is noted."""
        if self._id is None:
            if not self._trusted:
                check_log(self._options, None)
            return None, ()
        left = await look_for(engine, self._id, self._labels["owner"], self._options)
        if left is not None:
            return left, ()
        gone, self._id = self._name, None
        if placed.folder is None:
            raise lost(gone, "removed")
        if not self._trusted:
            check_log(self._options, gone)
        return None, (
            f"The box {gone} is gone; this is a new one over the same folder, and what was elsewhere in it is lost.",
        )

    async def _find_image(self, engine: Engine, progress: ReportProgress) -> ImageFacts:
        same = None if self._digest is None else await engine.find_image(self._digest)
        if same is not None:
            return same
        pull = self._options.pull if self._trusted else "never"
        return await find_image(engine, self._options.image, pull=pull, progress=progress)

    async def _make(self, engine: Engine, placed: Placed, image: ImageFacts, *, volumes_are_there: bool) -> None:
        options = self._options
        self._id = box = self._id or secrets.token_hex(8)
        labels = names.make_labels(
            box,
            self._labels,
            fingerprint=names.fingerprint_of(options.bounds()),
            seconds=None if options.keep else options.idle_seconds,
        )
        plan = Plan(name=self._name, options=options, placed=placed, image=image, labels=labels)

        async def undo() -> None:
            await self._remove(engine, plan.name, keep_volumes=volumes_are_there)
            self._id = box if volumes_are_there else None

        await run_whole(make(engine, plan, volumes_are_there=volumes_are_there), undo)

    async def stop(self) -> None:
        engine = self._engine
        if engine is not None:
            await finish(self._end(engine))

    async def _end(self, engine: Engine) -> None:
        try:
            if self._id is not None and self._options.keep:
                with suppress(EngineError):
                    await engine.stop_container(self._name)
            elif self._id is not None:
                await self._remove(engine, self._name)
                self._id = None
        finally:
            await self._disconnect()  # noqa: ASYNC102 in a task of its own

    async def _remove(self, engine: Engine, name: str, *, keep_volumes: bool = False) -> None:
        try:
            await remove(engine, name, keep_volumes=keep_volumes)
        except EngineError as error:
            # Its labels are there: `agentcore sandbox prune` finds it.
            _logger.warning("box_left_behind", box=name, error=str(error))

    @asynccontextmanager
    async def open_stream(self) -> AsyncGenerator[ByteStream]:
        engine = self._engine
        if engine is None or self._id is None:
            raise lost("that is closed", "removed")
        async with AsyncExitStack() as stack:
            try:
                if self._is_stuck:
                    await self._restart(engine)
                opened = await stack.enter_async_context(engine.open_exec(self._name, self._command))
            except EngineError as error:
                self._opened = None
                raise lost(self._name, await self.reason_lost()) from error
            self._opened = opened
            try:
                yield opened.stream
            finally:
                # The end of its input is the helper's order to end, with all that it started.
                with anyio.move_on_after(_LEAVE_SECONDS, shield=True) as leaving, suppress(*_ENDED):
                    await opened.stream.send_eof()
                    while True:
                        await opened.stream.receive()
                self._is_stuck = leaving.cancelled_caught

    async def _restart(self, engine: Engine) -> None:
        """End all that runs inside: the last helper was stopped, or could not run for what else does, and ended nothing."""
        if (await engine.inspect_container(self._name))["State"].get("Paused"):
            return  # by somebody, who will want to find it as it is
        await engine.stop_container(self._name)
        await engine.start_container(self._name)
        self._is_stuck = False

    async def reason_lost(self) -> LostReason:
        engine = self._engine
        if engine is None or self._id is None:
            return "removed"
        with anyio.move_on_after(_LOOK_SECONDS, shield=True):  # noqa: ASYNC912 a request waits
            try:
                return await self._find_reason(engine)
            except NotThere:
                return "removed"
            except EngineUnreachable:
                return "engine"
            except EngineError:
                return "unreachable"
        return "engine"

    async def _find_reason(self, engine: Engine) -> LostReason:
        if (reason := await self._container_lost(engine)) is not None:
            return reason
        if self._opened is None:
            return "unreachable"
        # The container lives: it is the helper that ended, and the engine knows that a moment after its stream did.
        code = None
        with anyio.move_on_after(_LOOK_SECONDS / 2):
            while (code := await self._opened.exit_code()) is None:  # noqa: ASYNC110 - it can only be asked
                await anyio.sleep(0.05)
        if code is None:
            return "unreachable"
        if code == _KILLED:
            if await self._had_oom(engine):
                return "oom"
            # Or the container is being killed, and the helper was the first to go.
            with anyio.move_on_after(_KILL_SECONDS):
                while (reason := await self._container_lost(engine)) is None:  # noqa: ASYNC110 - it can only be asked
                    await anyio.sleep(0.05)
        return reason or "exited"

    async def _container_lost(self, engine: Engine) -> LostReason | None:
        state = (await engine.inspect_container(self._name))["State"]
        if state.get("Status") in ("removing", "dead"):
            return "removed"
        if state.get("Paused"):
            return "unreachable"
        if state.get("Running"):
            return None
        is_oom = state.get("OOMKilled") or (state.get("ExitCode") == _KILLED and await self._had_oom(engine))
        return "oom" if is_oom else "exited"

    async def _had_oom(self, engine: Engine) -> bool:
        now = time.time()
        return await engine.had_oom(self._name, since=now - _OOM_SECONDS, until=now)

    def last_words(self) -> str:
        return "" if self._opened is None else self._opened.stream.last_words

    @property
    def _name(self) -> str:
        assert self._id is not None
        return names.name_of(self._id)

    async def _connect(self) -> Engine:
        if self._engine is None:
            self._engine = await connect()
        return self._engine

    async def _disconnect(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.aclose()
