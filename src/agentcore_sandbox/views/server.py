"""`Views`: the views of a workspace that were asked for, each behind a small HTTP server on this machine.

Above: `BoxWorkspace.views`. Each listens at an address of its own below 127.0.0.0/8, where the system has such, so that a browser takes
each for another site and sends the cookie of one to no other port.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from typing import Final, final

import anyio
from anyio.abc import ByteStream, SocketStream, TaskGroup
from anyio.streams.buffered import BufferedByteReceiveStream

from agentcore._groups import leaf_exceptions
from agentcore.errors import WorkspaceError
from agentcore.logs import get_logger
from agentcore.workspace.ports import Exposed, listen_here
from agentcore.workspace.tunnel import LOST
from agentcore_sandbox.network.http_head import HEAD_END, MAX_HEAD, BadMessage
from agentcore_sandbox.views.exchange import pass_request, send_text, send_to_first_page
from agentcore_sandbox.views.gate import (
    GateRefusal,
    PageRequest,
    parse_page_request,
    refuse_host,
    refuse_stranger,
    refuse_ticket_use,
)
from agentcore_sandbox.views.program import Place, ViewProgram
from agentcore_sandbox.views.tickets import TICKET_SECONDS, Tickets
from agentcore_sandbox.views.view import WebView

_ANEW: Final = "Ask for a new one: workspace.views() returns it."
_HEAD_SECONDS: Final = 30.0
_ENDED: Final = (anyio.EndOfStream, anyio.IncompleteRead, *LOST)

_log = get_logger(__name__)


@final
class Views:
    """The views of a workspace, while it is open.

    Args:
        tasks: Leaving it closes them.
        place: The workspace.
        now: The clock of their tickets, in seconds.
    """

    def __init__(self, tasks: TaskGroup, place: Place, *, now: Callable[[], float] = time.monotonic) -> None:
        self._tasks = tasks
        self._place = place
        self._now = now
        self._opened: dict[str, _OpenedView] = {}
        self._opening = anyio.Lock()

    async def open(self, views: Mapping[str, WebView]) -> dict[str, str]:
        """Return an address for each view, by name; see `BoxWorkspace.views`.

        Raises:
            WorkspaceError: There is no port to listen on.
        """
        async with self._opening:
            for name, view in views.items():
                known = self._opened.get(name)
                if known is not None and known.view != view:
                    await known.aclose()
                    del self._opened[name]
                if name not in self._opened:
                    opened = _OpenedView(view, ViewProgram(self._tasks, self._place, name, view), Tickets(self._now))
                    await opened.listen(self._tasks)
                    self._opened[name] = opened
        return {name: self._opened[name].address() for name in views}


@final
class _OpenedView:
    """A view that listens."""

    def __init__(self, view: WebView, program: ViewProgram, tickets: Tickets) -> None:
        self.view = view
        self._program = program
        self._tickets = tickets
        self._cookie = f"agentcore-view-{secrets.token_hex(8)}"
        self._exposed: Exposed | None = None

    async def listen(self, tasks: TaskGroup) -> None:
        own = ".".join(["127", *(str(1 + secrets.randbelow(254)) for _ in range(3))])
        try:
            self._exposed = await listen_here(tasks, self._handle, own)
        except WorkspaceError:  # macOS has 127.0.0.1 alone
            self._exposed = await listen_here(tasks, self._handle)

    @property
    def _authority(self) -> str:
        assert self._exposed is not None
        return self._exposed.url.removeprefix("http://")

    def address(self) -> str:
        """Return an address with a new ticket."""
        return f"http://{self._authority}/{self._tickets.issue()}/"

    async def aclose(self) -> None:
        """Stop to listen, and end its connections."""
        assert self._exposed is not None
        await self._exposed.aclose()

    async def _handle(self, stream: SocketStream) -> None:
        try:
            await self._serve(stream)
        except Exception as error:  # one connection that fails ends by itself
            is_known = all(isinstance(leaf, (BadMessage, *_ENDED)) for leaf in leaf_exceptions(error))
            (_log.debug if is_known else _log.warning)("view_connection_failed", error=repr(error))

    async def _serve(self, stream: ByteStream) -> None:
        reader = BufferedByteReceiveStream(stream)
        try:
            with anyio.fail_after(_HEAD_SECONDS):
                request = parse_page_request(await reader.receive_until(HEAD_END, MAX_HEAD))
        except TimeoutError:
            return
        except anyio.DelimiterNotFound:
            await send_text(stream, 431, "The request's headers are too long.")
            return
        except BadMessage as error:
            await send_text(stream, 400, str(error))
            return
        if (refusal := refuse_host(request, self._authority.encode())) is None:
            if request.ticket is not None:
                refusal = await self._open_session(stream, request, request.ticket)
            elif not self._has_session(request):
                refusal = GateRefusal(403, f"Nobody has opened this view here. {_ANEW}")
            else:
                refusal = refuse_stranger(request, f"http://{self._authority}".encode())
                if refusal is None:
                    await self._pass_on(stream, reader, request)
        if refusal is not None:
            await send_text(stream, refusal.status, refusal.text)

    def _has_session(self, request: PageRequest) -> bool:
        return self._tickets.has_session(request.cookie(self._cookie))

    async def _open_session(self, stream: ByteStream, request: PageRequest, ticket: str) -> GateRefusal | None:
        if (refusal := refuse_ticket_use(request)) is not None:
            return refusal
        session = self._tickets.exchange(ticket)
        if session is not None:
            cookie = f"{self._cookie}={session}; HttpOnly; SameSite=Strict; Path=/"
            await send_to_first_page(stream, self.view.first_page(), cookie)
        elif self._has_session(request):  # the same address again, in the same browser
            await send_to_first_page(stream, self.view.first_page(), None)
        else:
            return GateRefusal(403, f"This address was used already, or is older than {TICKET_SECONDS:.0f} s. {_ANEW}")
        return None

    async def _pass_on(self, stream: ByteStream, reader: BufferedByteReceiveStream, request: PageRequest) -> None:
        client = _Browser(stream)
        try:
            async with self._program.connect() as inside:
                await pass_request(client, reader, request, inside, port=self.view.port, authority=self._authority)
        except Exception as error:
            leaves = leaf_exceptions(error)
            if client.is_answered or not all(isinstance(leaf, (BadMessage, *_ENDED)) for leaf in leaves):
                raise
            await send_text(stream, 502, str(leaves[0]) or "The view does not answer.")


@final
class _Browser(ByteStream):
    """A browser's connection, which knows whether an answer has begun."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self.is_answered = False

    async def receive(self, max_bytes: int = 65536) -> bytes:
        return await self._stream.receive(max_bytes)

    async def send(self, item: bytes) -> None:
        self.is_answered = True
        await self._stream.send(item)

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()
