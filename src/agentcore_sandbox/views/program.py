"""`ViewProgram`: the program inside that serves a view. It is started when somebody first looks, as the user of the box.

Above: the server of views. Below: the workspace's processes and tunnels.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import Final, Protocol, final, runtime_checkable

import anyio
from anyio.abc import ByteStream, TaskGroup, TaskStatus

from agentcore._groups import leaf_exceptions
from agentcore.errors import WorkspaceError, WorkspaceLost
from agentcore.logs import get_logger
from agentcore.workspace.protocol import Process
from agentcore.workspace.tunnel import LOST
from agentcore_sandbox.views.view import WebView

START_SECONDS: Final = 60.0
"""How long a program may take until it listens."""
_LOOK_SECONDS: Final = 0.1
_LAST_WORDS_SECONDS: Final = 1.0
_KEPT_WORDS: Final = 500

_log = get_logger(__name__)


class Place(Protocol):
    """A workspace with ports."""

    def open_process(self, command: Sequence[str], /) -> AbstractAsyncContextManager[Process]:
        """Start a command inside; leaving the context ends it."""
        ...

    def connect(self, port: int, /) -> AbstractAsyncContextManager[ByteStream]:
        """Connect to a port inside."""
        ...


@runtime_checkable
class HasViews(Place, Protocol):
    """A workspace whose image may offer views."""

    def image_views(self) -> Mapping[str, WebView]:
        """Return the views that the image names in its label.

        Raises:
            WorkspaceError: The label is not one of views.
        """
        ...


@final
class ViewProgram:
    """The program of one view, which runs at most once.

    Args:
        tasks: Where it runs.
        place: The workspace.
        name: The name of the view.
        view: The view.
    """

    def __init__(self, tasks: TaskGroup, place: Place, name: str, view: WebView) -> None:
        self._tasks = tasks
        self._place = place
        self._name = name
        self._view = view
        self._starting = anyio.Lock()
        self._runs = False
        self._words = b""

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[ByteStream]:
        """Connect to it. It is started if it does not run, and waited for until it listens.

        Raises:
            WorkspaceError: It ends at once, does not listen, or the box is lost.
        """
        async with AsyncExitStack() as stack:
            if self._view.command:
                yield await self._connect(stack)
            else:
                yield await stack.enter_async_context(self._place.connect(self._view.port))

    async def _connect(self, stack: AsyncExitStack) -> ByteStream:
        async with self._starting:
            if not self._runs:
                await self._tasks.start(self._run)
        with anyio.move_on_after(START_SECONDS):
            while True:
                try:
                    return await stack.enter_async_context(self._place.connect(self._view.port))
                except WorkspaceLost:
                    raise
                except LOST as error:
                    if not self._runs:
                        raise WorkspaceError(
                            f"The view {self._name!r} could not be started: {self._shown()}"
                        ) from error
                await anyio.sleep(_LOOK_SECONDS)
        raise WorkspaceError(
            f"The view {self._name!r} does not listen on port {self._view.port} after {START_SECONDS:.0f} s: {self._shown()}"
        )

    async def _run(self, *, task_status: TaskStatus[None]) -> None:
        self._words = b""
        try:
            async with self._place.open_process(list(self._view.command)) as process:
                self._runs = True
                task_status.started()
                await self._keep_words(process)
        except Exception as error:
            if not all(isinstance(leaf, LOST) for leaf in leaf_exceptions(error)):
                raise
            if not self._runs:
                raise WorkspaceError(
                    f"The view {self._name!r} could not be started: {leaf_exceptions(error)[0]}"
                ) from error
            # The next look starts it again, or says what became of the box.
            _log.info("view_lost", view=self._name, error=str(leaf_exceptions(error)[0]))
        finally:
            self._runs = False

    async def _keep_words(self, process: Process) -> None:
        """Keep the end of what the program writes, until it has ended."""

        async def keep(receive: Callable[[], Awaitable[bytes]]) -> None:
            with suppress(anyio.EndOfStream):
                while True:
                    self._words = (self._words + await receive())[-_KEPT_WORDS:]

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep, process.receive)
            tasks.start_soon(keep, process.receive_stderr)
            code = await process.wait()
            _log.info("view_ended", view=self._name, code=code)
            # What it has left behind may hold its output open.
            tasks.cancel_scope.deadline = anyio.current_time() + _LAST_WORDS_SECONDS

    def _shown(self) -> str:
        return self._words.decode(errors="replace").strip() or "it wrote nothing."
