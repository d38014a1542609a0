"""Asks: tools that run in a client of the server, and secrets whose values a client knows.

Above: the WebSocket, which sends the frames of the client that it belongs to, and the route that takes the answers. Below: the
conversation, for which this is a tool or the source of a secret like any other. Approvals and questions are not asked so:
a client sees in the state that they wait (`agentcore_serve.decisions`).

An ask is handed to one client. Once that has it, the work may have been done, so that after a cut it goes to the same
client again and to no other one, unless it changes nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, final

import anyio
from pydantic import JsonValue

from agentcore.errors import SecretError, ToolError
from agentcore.ids import new_id
from agentcore.messages import ResultBlock, ToolSchema
from agentcore.tools import Arguments, Observation, RawTool, Resource, ToolAnnotations, ToolContext, raw_tool
from agentcore.wire import AskFrame, AskResult, SecretAnswer, ToolAnswer, ToolFailed, ToolProgress, Withdraw

CLIENT_SECONDS: Final = 60.0
"""How long an ask waits for a client that could answer it."""
_AWAY: Final = 16
"""How many clients that are away are remembered, so that they learn on their return what is void."""


class ClientGone(ToolError):
    """No client was there that a call could be handed to: it was not begun."""


class ClientLost(ToolError):
    """The client that had a call did not come back."""

    outcome_unknown = True


class ClientObservation(Observation):
    """The observation of a tool that ran in a client."""

    content: tuple[ResultBlock, ...]
    data: dict[str, JsonValue]
    error: bool

    @property
    def is_error(self) -> bool:
        return self.error

    def to_content(self) -> Sequence[str | ResultBlock]:
        return self.content

    def to_data(self) -> dict[str, JsonValue]:
        return self.data


@final
class _Ask:
    """A frame that waits for its answer."""

    def __init__(self, frame: AskFrame, *, repeatable: bool) -> None:
        self.frame = frame
        self.repeatable = repeatable
        """True if any client may do it once more."""
        self.client: _Client | None = None
        """The client that it is handed to."""
        self.taken = False
        """True once a connection has it: the client may have begun."""
        self.result: ToolAnswer | ToolFailed | SecretAnswer | None = None
        self.progress: list[str] = []
        self.news = anyio.Event()

    def take_progress(self) -> str:
        text, self.progress = "".join(self.progress), []
        return text + (self.result.progress if isinstance(self.result, ToolAnswer | ToolFailed) else "")

    def notify(self) -> None:
        self.news.set()
        self.news = anyio.Event()


@final
class _Client:
    """A client by its id, here or away."""

    def __init__(self, id: str) -> None:  # noqa: A002 it is one
        self.id = id
        self.connection: ClientConnection | None = None
        self.withdrawn: list[str] = []
        """The ids of asks that it had taken and that are void, while it is away."""


@final
class ClientConnection:
    """The frames for one connection of a client. Made by `ClientAsks.attach`."""

    def __init__(self, asks: ClientAsks, client: _Client) -> None:
        self._asks = asks
        self._client = client
        self._frames: list[AskFrame | Withdraw] = []
        self.news = anyio.Event()
        """Set when there are frames to take, or when it is closed. It is another one after each `take`."""
        self.closed = False
        """True once it was closed, or the client has another connection."""

    def take(self) -> list[AskFrame | Withdraw]:
        """Return the frames to send now. From here on the client may have begun what they ask."""
        frames, self._frames = self._frames, []
        if not self.closed:
            self.news = anyio.Event()
        for frame in frames:
            if isinstance(frame, AskFrame):
                self._asks.mark_taken(frame.id)
        return frames

    def push(self, frame: AskFrame | Withdraw) -> None:
        """Add a frame."""
        self._frames.append(frame)
        self.news.set()

    def drop(self, ask_id: str) -> bool:
        """Remove an ask that was not taken yet; return whether it was there."""
        kept = [frame for frame in self._frames if frame.id != ask_id]
        found = len(kept) < len(self._frames)
        self._frames = kept
        return found

    def close(self) -> None:
        """End it: the connection is gone. What was not taken goes to another client."""
        if not self.closed:
            self._asks.detach(self)

    def end(self) -> None:
        """Take no more frames, and wake whoever waits for some."""
        self.closed = True
        self._frames.clear()
        self.news.set()

    @property
    def client(self) -> _Client:
        """The client that it belongs to."""
        return self._client


@final
class ClientAsks:
    """The asks of one conversation, and the clients that are there for them."""

    def __init__(
        self, *, seconds: float = CLIENT_SECONDS, sleep: Callable[[float], Awaitable[object]] = anyio.sleep
    ) -> None:
        """Take how long an ask waits for a client, and what waits."""
        self._seconds = seconds
        self._sleep = sleep
        self._clients: dict[str, _Client] = {}
        self._open: dict[str, _Ask] = {}
        self._changed = anyio.Event()

    @property
    def has_client(self) -> bool:
        """True if a client is connected."""
        return any(client.connection is not None for client in self._clients.values())

    def attach(self, client_id: str) -> ClientConnection:
        """Connect a client. One that comes back is asked again what it has not answered; its connection before is ended."""
        client = self._clients.pop(client_id, None) or _Client(client_id)
        self._clients[client_id] = client  # the newest last
        if client.connection is not None:
            client.connection.end()
        connection = client.connection = ClientConnection(self, client)
        for ask_id in client.withdrawn:
            connection.push(Withdraw(id=ask_id))
        client.withdrawn.clear()
        for ask in self._open.values():
            if ask.client is client:
                connection.push(ask.frame)
        self._hand_out()
        return connection

    def detach(self, connection: ClientConnection) -> None:
        """Forget a connection; `ClientConnection.close` does this."""
        connection.end()
        client = connection.client
        if client.connection is connection:
            client.connection = None
        away = [each for each in self._clients.values() if each.connection is None]
        owing = {ask.client for ask in self._open.values() if ask.taken}
        for forgotten in [each for each in away if each not in owing][:-_AWAY]:
            del self._clients[forgotten.id]
        self._hand_out()

    def answer(self, ask_id: str, result: AskResult) -> bool:
        """Take an answer; False where nobody waits for it any more, as when it comes twice.

        Raises:
            ValueError: It is not one to what was asked.
        """
        ask = self._open.get(ask_id)
        if ask is None or ask.result is not None:
            return False
        if isinstance(result, ToolProgress):
            ask.progress.append(result.text)
        elif isinstance(result, SecretAnswer if ask.frame.kind == "tool" else ToolAnswer):
            raise ValueError(f"The ask {ask_id!r} is for a {ask.frame.kind}, and that is not one.")  # noqa: TRY004 it is about a value
        else:
            ask.result = result
        ask.notify()
        return True

    def tool_for(
        self,
        schema: ToolSchema,
        *,
        resources: Sequence[Resource] | None = None,
        annotations: ToolAnnotations | None = None,
    ) -> RawTool:
        """Return the tool that runs in the client.

        Args:
            schema: As the client's own tool has it.
            resources: What every call of it uses; None is the whole workspace.
            annotations: What it says of itself. Where it is read-only, another client may do a call again.
        """
        hints = annotations or ToolAnnotations()

        async def execute(arguments: Arguments, ctx: ToolContext) -> ClientObservation:
            # The action's id is the same when the call is made again after a restart, and so is the ask's.
            frame = AskFrame(
                id=f"ask_{ctx.action_id}", kind="tool", name=schema.name, action_id=ctx.action_id, arguments=arguments
            )
            result = await self._ask(_Ask(frame, repeatable=hints.read_only), ctx.progress)
            assert not isinstance(result, SecretAnswer)
            for name in result.secrets:
                with suppress(SecretError):  # the client has masked its answer; what the model says next has not been
                    await ctx.secrets.get(name)
            if isinstance(result, ToolFailed):
                raise type(result.code, (ToolError,), {})(result.error)
            return ClientObservation(content=result.content, data=result.data, error=result.is_error)

        return raw_tool(
            schema.name, schema.description, schema.parameters, execute, annotations=hints, resources=resources
        )

    def secret(self, name: str) -> Callable[[], Awaitable[str]]:
        """Return the source of a secret whose value a client knows."""

        async def read() -> str:
            result = await self._ask(_Ask(AskFrame(id=new_id("ask"), kind="secret", name=name), repeatable=True))
            if isinstance(result, SecretAnswer):
                return result.value.get_secret_value()
            raise SecretError(
                result.error if isinstance(result, ToolFailed) else f"Secret {name!r} was answered wrongly."
            )

        return read

    async def gone(self) -> None:
        """Return once no client has been connected for as long as an ask waits for one."""
        await self._missing(lambda: self.has_client)

    def mark_taken(self, ask_id: str) -> None:
        """Note that a connection has sent an ask."""
        if ask_id in self._open:
            self._open[ask_id].taken = True

    async def _ask(
        self, ask: _Ask, progress: Callable[[str], Awaitable[None]] | None = None
    ) -> ToolAnswer | ToolFailed | SecretAnswer:
        """Ask a client, and wait for the answer.

        Raises:
            ClientGone: There was no client.
            ClientLost: The client that has it did not come back.
        """
        self._open[ask.frame.id] = ask
        self._hand_out()
        try:
            async with anyio.create_task_group() as tasks:

                async def give_up() -> None:
                    await self._missing(lambda: ask.client is not None and ask.client.connection is not None)
                    tasks.cancel_scope.cancel()

                tasks.start_soon(give_up)
                await _answered(ask, progress)
                tasks.cancel_scope.cancel()
        finally:
            del self._open[ask.frame.id]
            self._withdraw(ask)
        if ask.result is not None:
            return ask.result
        seconds = f"{self._seconds:g} s"
        if ask.taken and not ask.repeatable:
            raise ClientLost(
                f"The program that runs {ask.frame.name!r} has been gone for {seconds}, and it had begun: it may have happened, "
                "wholly, in part, or not at all. Look before you do it again."
            )
        raise ClientGone(
            f"The program that runs {ask.frame.name!r} has not been connected for {seconds}. Nothing was done. Go on without "
            "it, or try again later."
            if ask.frame.kind == "tool"
            else f"The program that knows secret {ask.frame.name!r} has not been connected for {seconds}."
        )

    async def _missing(self, is_there: Callable[[], bool]) -> None:
        """Return once a client has not been there for as long as is waited for one."""
        while True:
            while is_there():
                await self._changed.wait()
            late = False
            async with anyio.create_task_group() as tasks:

                async def watch() -> None:
                    while not is_there():
                        await self._changed.wait()
                    tasks.cancel_scope.cancel()

                tasks.start_soon(watch)
                await self._sleep(self._seconds)
                late = True
                tasks.cancel_scope.cancel()
            if late:
                return

    def _hand_out(self) -> None:
        """Hand each ask that has no client to the one that connected last, and tell all who wait for one."""
        here = [client for client in self._clients.values() if client.connection is not None]
        for ask in self._open.values():
            away = ask.client is None or ask.client.connection is None
            if away and here and (not ask.taken or ask.repeatable):
                if ask.client is not None and ask.taken:
                    ask.client.withdrawn.append(ask.frame.id)
                ask.client, ask.taken = here[-1], False
                assert ask.client.connection is not None
                ask.client.connection.push(ask.frame)
        self._changed.set()
        self._changed = anyio.Event()

    def _withdraw(self, ask: _Ask) -> None:
        """Notify the client that an ask is void: that it was answered, or that nobody waits for it."""
        client = ask.client
        if client is None:
            return
        if client.connection is None:
            if ask.taken:
                client.withdrawn.append(ask.frame.id)
        elif not client.connection.drop(ask.frame.id) or ask.taken:
            client.connection.push(Withdraw(id=ask.frame.id))


async def _answered(ask: _Ask, progress: Callable[[str], Awaitable[None]] | None) -> None:
    """Wait for the answer of an ask, and show the progress of what it does."""
    while ask.result is None:
        if not ask.progress:
            await ask.news.wait()
        text = ask.take_progress()
        if progress is not None and text:
            await progress(text)
