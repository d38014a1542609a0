"""`Box`: what a place has to be so that `BoxWorkspace` can work in it.

Above: `BoxWorkspace`, which does everything over one byte stream to the helper inside. Below: a container, a bubblewrap namespace, a plain
process. A box starts, gives such a stream, and can say why it is gone; it knows nothing of files, processes or tools.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, Literal, Protocol

from anyio.abc import ByteStream
from pydantic import JsonValue

from agentcore._value import Value

LostReason = Literal["oom", "exited", "removed", "engine", "unreachable", "fenced"]
"""Why a box is gone or does not answer; see `WorkspaceLost.reason`."""

Phase = Literal["pull", "create", "ready"]
"""The stage of a box that starts."""

SILENCE_SECONDS: Final = 15.0
"""How long a stream may be silent before both of its ends take it for dead."""
PING_SECONDS: Final = 5.0


class Progress(Value):
    """How far a box that starts has come."""

    phase: Phase
    text: str = ""
    """For people: the layer that is pulled, say."""
    done: int | None = None
    """Bytes, where they are known."""
    total: int | None = None


ReportProgress = Callable[[Progress], Awaitable[None]]
"""Is awaited with each progress, in the task that starts the box."""


class BoxSpec(Value):
    """The record of a box, from which its workspace is made again; see `WorkspaceOpened`."""

    kind: str
    """The kind of workspace: "docker", "bubblewrap", or an entry point in the group "agentcore.workspaces"."""
    params: dict[str, JsonValue] = {}
    """The parameters of the factory, the box's id and what it was made of among them. Never a key or a secret."""
    loosened: tuple[str, ...] = ()
    """One sentence for each protection that it has less of than the default, and for each limit that cannot be kept here."""


class Inside(Value):
    """The facts that the helper in a box needs."""

    root: str
    """The project's folder, as an absolute path inside."""
    state: str
    """A folder for what tools keep aside, outside of the project, which only the box's user can open."""
    whole: bool = False
    """True if the process ids inside belong to this box alone: whatever runs there was started in it."""
    env: dict[str, str] = {}
    """The variables of each command."""
    views: str = ""
    """The image's label of views; see `agentcore_sandbox.views`."""


class Box(Protocol):
    """A place that is apart from this machine, more or less. Started, used and stopped by one owner."""

    @property
    def spec(self) -> BoxSpec:
        """The record; whole once the box has started."""
        ...

    @property
    def inside(self) -> Inside:
        """Known once the box has started."""
        ...

    async def start(self, progress: ReportProgress) -> None:
        """Make the box, or start the one that `find` found. What was made is gone again if this fails or is cancelled.

        Raises:
            WorkspaceError: It cannot be made; the message says what to change.
            WorkspaceLost: It was there before, and is not now.
        """
        ...

    async def stop(self) -> None:
        """Remove it, or stop it if it is kept. Bounded; stopping twice is fine."""
        ...

    async def find(self, labels: Mapping[str, str]) -> bool:
        """Look for a box with these labels; True if it is there, and `start` will use it."""
        ...

    def open_stream(self) -> AbstractAsyncContextManager[ByteStream]:
        """Start a helper and return the stream to it. Leaving the context ends the stream, and with it the helper.

        Raises:
            WorkspaceLost: The box is not there any more.
        """
        ...

    async def reason_lost(self) -> LostReason:
        """Return why the stream ended, as far as the box knows. Bounded; it raises nothing."""
        ...

    def last_words(self) -> str:
        """Return the end of what the helper wrote to its standard error, for messages: at most 2 KB."""
        ...
