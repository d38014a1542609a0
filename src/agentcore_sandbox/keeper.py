"""`BoxKeeper`: the life of a box in one task: started, its streams opened one after the other as they are wanted, stopped.

Above: `BoxWorkspace`, whose task group runs it. Below: a `Box` and `HelperConnection`. It is a task of its own because asyncio's own
cancellation, which goes through every shield, then reaches those who wait for a box, and never the making or the removal of one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, final

import anyio
from anyio.abc import ByteStream

from agentcore._groups import leaf_exceptions
from agentcore.errors import WorkspaceError, WorkspaceLost, WorkspaceNotOpen
from agentcore.logs import get_logger
from agentcore_sandbox.box import Box, LostReason, ReportProgress
from agentcore_sandbox.connection import HelperConnection, StreamEnd

_log: Final = get_logger(__name__)

_REASON_SECONDS: Final = 10.0
_LEAVE_SECONDS: Final = 15.0
"""How long the helper may take to end what it started, and itself; it takes 5 s at most by its own rules."""
_STOP_SECONDS: Final = 60.0
"""How long a box may take to stop; an engine on a loaded machine takes some seconds."""

_SENTENCES: Final[dict[LostReason, str]] = {
    "oom": "The box ran out of memory. Allow it more, or run less at once.",
    "exited": "The helper in the box has ended, and with it all that ran there. The next call starts another one.",
    "removed": "The box was removed. Open the workspace again to make a new one.",
    "engine": "What runs the box does not answer. Start it again (for Docker: `systemctl start docker`), then open the workspace again.",
    "unreachable": "The box does not answer. The next call tries again.",
    "fenced": "A later opening of the conversation has taken the box over. Close this one.",
}


@final
class BoxKeeper:
    """Starts a box, opens streams to it, and stops it.

    Args:
        box: The box; this is its only owner.
        name: The workspace, for messages.
        progress: Is awaited while the box starts.
        greet: Returns the first words to a helper.
        on_connected: Is awaited with each new connection before anybody else uses it.
    """

    def __init__(
        self,
        box: Box,
        name: str,
        progress: ReportProgress,
        greet: Callable[[], dict[str, Any]],
        on_connected: Callable[[HelperConnection], Awaitable[None]],
    ) -> None:
        self._box = box
        self._name = name
        self._progress = progress
        self._greet = greet
        self._on_connected = on_connected
        # The one whose stream is open, and the same once it may be used.
        self._connection: HelperConnection | None = None
        self._ready: HelperConnection | None = None
        self._opening: _Opening | None = None
        self._wanted = anyio.Event()
        self._leaving = False
        self._failure: Exception | None = None
        # Whoever is cancelled needs the helper to end what they started; so it ends when the workspace is left, and no sooner.
        self._scope = anyio.CancelScope(shield=True)

    async def live(self) -> None:
        """Start the box, open a stream whenever one is wanted, and stop it in the end. It raises nothing."""
        has_started = False
        try:
            with self._scope:
                await self._box.start(self._progress)
                has_started = True
                await self._open_streams()
        except Exception as error:
            self._failure = _unwrap(error)
        finally:
            self._failure = self._failure or WorkspaceNotOpen(self._name)
            if self._opening is not None:
                self._opening.fail(self._failure)
            if has_started:
                await self._stop()  # noqa: ASYNC102 shielded and bounded there

    async def connect(self) -> HelperConnection:
        """Return the connection to the helper; open one if there is none, once for all who ask.

        Raises:
            WorkspaceLost: The box is gone.
            WorkspaceError: No helper could be started in it.
        """
        if self._ready is not None and self._ready.is_alive:
            return self._ready
        if self._failure is not None:
            raise self._failure
        if self._opening is None:
            self._opening = _Opening()
            self._wanted.set()
        return await self._opening.wait()

    def leave(self) -> None:
        """End the stream, and with it the helper, and stop the box. `live` returns when that is done, within a bound."""
        self._leaving = True
        self._wanted.set()
        if self._connection is None:
            self._scope.cancel()  # it starts
        else:
            self._connection.leave()
            self._scope.deadline = anyio.current_time() + _LEAVE_SECONDS

    async def _stop(self) -> None:
        with anyio.move_on_after(_STOP_SECONDS, shield=True) as stopping:  # noqa: ASYNC912 a box takes its time
            try:
                await self._box.stop()
            except Exception as error:  # who leaves has what they came for; `prune` finds what is left
                _log.warning("box_not_stopped", workspace=self._name, error=str(error))
        if stopping.cancelled_caught:
            _log.warning("box_not_stopped", workspace=self._name, error=f"not within {_STOP_SECONDS:g} s")

    async def _open_streams(self) -> None:
        while not self._leaving:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            opening = self._opening
            if opening is None or self._leaving:
                continue
            try:
                async with self._box.open_stream() as stream:
                    await self._use(stream, opening)
            except Exception as error:
                self._fail(opening, _unwrap(error))
            finally:
                self._connection = self._ready = None

    async def _use(self, stream: ByteStream, opening: _Opening) -> None:
        connection = self._connection = HelperConnection(stream, self._greet())
        error: Exception = WorkspaceNotOpen(self._name)
        try:
            async with anyio.create_task_group() as tasks:

                def on_ready() -> None:
                    tasks.start_soon(self._prepare, connection, opening)

                end = await connection.run(on_ready)
                error = await self._explain(end)
                tasks.cancel_scope.cancel()
        finally:
            connection.fail(error)
            self._fail(opening, error)

    async def _prepare(self, connection: HelperConnection, opening: _Opening) -> None:
        try:
            await self._on_connected(connection)
        except Exception as error:
            self._fail(opening, error)
            connection.leave()
            return
        self._ready = connection
        if self._opening is opening:
            self._opening = None
        opening.succeed(connection)

    def _fail(self, opening: _Opening, error: Exception) -> None:
        # What was asked for later waits for the next stream.
        if self._opening is opening:
            self._opening = None
        opening.fail(error)

    async def _explain(self, end: StreamEnd) -> Exception:
        """Return the error for those who used a stream, or waited for it."""
        words = self._box.last_words().strip()
        detail = f" It wrote: {words}" if words else ""
        match end.kind:
            case "left":
                return WorkspaceNotOpen(self._name)
            case "no_python":
                return WorkspaceError(
                    f"{self._name} has no Python, which the helper in it needs: version 3.7 or later, as `python3` or `python`. Add "
                    "it to the image (in a Dockerfile for Debian: RUN apt-get update && apt-get install -y python3)."
                )
            case "no_helper":
                return WorkspaceError(f"No helper could be started in {self._name}: {end.text!r}.{detail}")
            case "refused" if end.reason == "fenced":
                return WorkspaceLost(f"{self._name} is lost: {_SENTENCES['fenced']}", reason="fenced")
            case "refused":
                return WorkspaceError(f"The helper in {self._name} refused to start: {end.text}")
            case "breach":
                text = f"{end.text}. No helper does that, so it was ended. "
                return WorkspaceLost(f"{self._name} is lost: {text}{_SENTENCES['exited']}", reason="exited")
            case "silent" | "ended":
                reason: LostReason = "unreachable"
                with anyio.move_on_after(_REASON_SECONDS):
                    reason = await self._box.reason_lost()
                text = f"{end.text}. " if end.text else ""
                return WorkspaceLost(f"{self._name} is lost: {text}{_SENTENCES[reason]}{detail}", reason=reason)


def _unwrap(error: Exception) -> Exception:
    leaf = leaf_exceptions(error)[0]
    return leaf if isinstance(leaf, Exception) else error


@final
class _Opening:
    """A stream that somebody waits for."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self._connection: HelperConnection | None = None
        self._error: Exception | None = None

    def succeed(self, connection: HelperConnection) -> None:
        self._connection = connection
        self._event.set()

    def fail(self, error: Exception) -> None:
        if not self._event.is_set():
            self._error = error
            self._event.set()

    async def wait(self) -> HelperConnection:
        await self._event.wait()
        if self._connection is None:
            assert self._error is not None
            raise self._error
        return self._connection
