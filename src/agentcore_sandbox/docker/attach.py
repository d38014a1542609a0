"""`AttachedBox`: a container that runs already and is another program's, as a box for looking into it.

Above: `agentcore sandbox views`. Below: `Engine`. It has a helper of its own, beside that of the program that works there; leaving it ends that
helper and what it started, and nothing else.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, final

import anyio
from anyio.abc import ByteStream

from agentcore_sandbox.bootstrap import BOOT_COMMAND
from agentcore_sandbox.box import BoxSpec, Inside, LostReason, Progress, ReportProgress
from agentcore_sandbox.docker import labels as names
from agentcore_sandbox.docker.apart import finish
from agentcore_sandbox.docker.config import make_inside_running
from agentcore_sandbox.docker.connect import connect
from agentcore_sandbox.docker.errors import EngineError, NotThere, lost
from agentcore_sandbox.docker.facts import read_image_facts
from agentcore_sandbox.docker.resources import find_running

if TYPE_CHECKING:
    from agentcore_sandbox.docker.engine import Engine, OpenExec

_LEAVE_SECONDS: Final = 8.0
_ENDED: Final = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


@final
class AttachedBox:
    """A box that runs.

    Args:
        box: Its id.
    """

    def __init__(self, box: str) -> None:
        self._id = box
        self._engine: Engine | None = None
        self._inside: Inside | None = None
        self._opened: OpenExec | None = None

    def __repr__(self) -> str:
        return f"AttachedBox({self._id!r})"

    @property
    def spec(self) -> BoxSpec:
        return BoxSpec(kind="attached", params={"box": self._id})

    @property
    def inside(self) -> Inside:
        assert self._inside is not None
        return self._inside

    async def find(self, labels: Mapping[str, str]) -> bool:  # noqa: ARG002 - the protocol's
        """Return False: it is named by its id."""
        return False

    async def start(self, progress: ReportProgress) -> None:
        engine = await connect()
        try:
            found = await find_running(engine, self._id)
            image = read_image_facts({"Id": found["Image"], "Config": found["Config"]})
        except BaseException:
            await finish(engine.aclose())  # noqa: ASYNC102 shielded there
            raise
        self._inside = make_inside_running(image)
        self._engine = engine
        await progress(Progress(phase="ready"))

    async def stop(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            await finish(engine.aclose())

    @asynccontextmanager
    async def open_stream(self) -> AsyncGenerator[ByteStream]:
        if self._engine is None:
            raise lost(self._id, "removed")
        async with AsyncExitStack() as stack:
            try:
                name = names.name_of(self._id)
                opened = await stack.enter_async_context(self._engine.open_exec(name, BOOT_COMMAND))
            except EngineError as error:
                raise lost(self._id, await self.reason_lost()) from error
            self._opened = opened
            try:
                yield opened.stream
            finally:
                with anyio.move_on_after(_LEAVE_SECONDS, shield=True), suppress(*_ENDED):
                    await opened.stream.send_eof()
                    while True:
                        await opened.stream.receive()

    async def reason_lost(self) -> LostReason:
        engine = self._engine
        if engine is None:
            return "removed"
        try:
            found = await engine.inspect_container(names.name_of(self._id))
        except NotThere:
            return "removed"
        except EngineError:
            return "engine"
        return "unreachable" if found["State"].get("Running") else "exited"

    def last_words(self) -> str:
        return "" if self._opened is None else self._opened.stream.last_words
