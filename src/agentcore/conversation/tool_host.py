"""The host of a running call: what it may ask of its conversation, and its full outputs in the workspace."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import final

from anyio.lowlevel import checkpoint
from anyio.to_thread import run_sync
from pydantic import JsonValue, ValidationError

from agentcore.context import ShownParts
from agentcore.conversation.answering import CallbackFailed, ask_live
from agentcore.conversation.ask import ask_aside
from agentcore.conversation.core import Core
from agentcore.conversation.deltas import StreamDelta
from agentcore.errors import WorkspaceError
from agentcore.events import ActionEvent, MessageEvent
from agentcore.llm import model_features
from agentcore.logs import get_logger
from agentcore.messages import Message
from agentcore.record import ConversationState
from agentcore.tools import Medium, Question, ToolContext

_log = get_logger(__name__)

SPOOL_LIMIT = 256 * 1024 * 1024
"""Bytes that one conversation may keep, while it is open."""


_THE_END = b"\n[The output went on after this, but no more of it was kept.]\n"


async def spool(core: Core, name: str, data: bytes) -> str:
    """Keep an output, masked, and return its path.

    Raises:
        WorkspaceError: It can't be written, or the conversation has kept as much as it may.
    """
    if core.spooled + len(data) > SPOOL_LIMIT:
        raise WorkspaceError(
            f"{name!r} was not kept: outputs of this conversation take {core.spooled:,} bytes already, "
            f"and {SPOOL_LIMIT:,} is the most."
        )
    core.spooled += len(data)
    folder = await core.workspace.private_folder(core.state.conversation_id)
    path = f"{folder}/{name}"
    await core.workspace.write(path, core.secrets.masker.mask_bytes(data))
    return path


async def open_spool(core: Core, name: str, limit: int) -> GrowingSpool:
    """Begin an output that comes piece by piece.

    Raises:
        WorkspaceError: It can't be written, or the conversation has kept as much as it may.
    """
    # An empty one, since there may be one of that name from before a crash.
    return GrowingSpool(core, await spool(core, name, b""), limit)


@final
class GrowingSpool:
    """An output that is kept while it comes: masked, up to a bound. See `agentcore.tools.Spool`."""

    def __init__(self, core: Core, path: str, limit: int) -> None:
        self._core = core
        self._path = path
        self._limit = limit
        self._masking = core.secrets.stream()
        self._kept = 0
        self._left_out = False

    @property
    def path(self) -> str:
        return self._path

    @property
    def full(self) -> bool:
        return self._left_out

    async def append(self, text: str) -> None:
        await self._write(self._masking.feed(text))

    async def finish(self) -> None:
        await self._write(self._masking.finish())
        if self._left_out:
            await self._core.workspace.append(self._path, _THE_END)

    async def _write(self, text: str) -> None:
        data = text.encode(errors="replace")
        # Nothing behind what was left out: what is here is the beginning, and the whole of that.
        room = 0 if self._left_out else max(min(self._limit - self._kept, SPOOL_LIMIT - self._core.spooled), 0)
        if len(data) > room:
            data = _beginning(data, room)
            self._left_out = True
        if data:
            self._kept += len(data)
            self._core.spooled += len(data)
            await self._core.workspace.append(self._path, data)


def _beginning(data: bytes, size: int) -> bytes:
    """Return at most `size` bytes of UTF-8, without cutting a character in two."""
    while size > 0 and data[size] & 0xC0 == 0x80:
        size -= 1
    return data[:size]


async def spool_if_room(core: Core, name: str, data: bytes) -> str | None:
    """Keep an output and return its path; None where that can't be done: the answer must not be lost over it."""
    try:
        return await spool(core, name, data)
    except WorkspaceError as error:
        _log.warning("output not kept", name=name, error=str(error))
        return None


async def remove_spool(core: Core) -> None:
    """Remove what was kept."""
    try:
        await core.workspace.remove_private_folder(core.state.conversation_id)
    except WorkspaceError as error:
        _log.warning("outputs not removed", error=str(error))


class CallHost:
    """The host of one running call: answers what its tool asks of the conversation."""

    def __init__(self, core: Core, event: ActionEvent) -> None:
        self._core = core
        self._event = event
        self._turn = core.turn
        self._masking = core.secrets.stream()
        self._offset = 0
        self.failure: Exception | None = None
        """The exception of the program's callback, where that was to answer a question of the call."""

    async def progress(self, action_id: str, text: str) -> None:
        """Show people what the tool is doing; nothing is kept."""
        assert action_id == self._event.id
        self._core.home.check_loop()
        self._show(self._masking.feed(text))
        await checkpoint()

    def finish(self) -> None:
        """Show what masking still held back, and wait for no answer any more: the call has ended."""
        self._show(self._masking.finish())
        self._core.live_questions.withdraw(self._event.id)

    def _show(self, shown: str) -> None:
        if shown:
            self._core.deltas.publish(
                StreamDelta(
                    type="progress",
                    action_id=self._event.id,
                    tool_name=self._event.tool_name,
                    offset=self._offset,
                    text=shown,
                )
            )
            self._offset += len(shown)

    async def send(self, text: str) -> None:
        """Add a message that the model reads at its next step."""
        await self._core.journal.write(MessageEvent(source="environment", message=Message.user(text), code="tool"))

    async def interrupt(self) -> None:
        """Stop the turn of the call; one that ended is not mistaken for the turn that works now."""
        self._core.home.check_loop()
        if self._turn is not None:
            self._turn.interrupt(f"the tool {self._event.tool_name!r} asked for it")
        await checkpoint()

    async def ask(self, question: str) -> str:
        """Ask the model a side question."""
        return await ask_aside(self._core, question)

    async def question(self, text: str, schema: Mapping[str, JsonValue] | None, options: Sequence[str]) -> JsonValue:
        """Ask a person and wait for the answer."""
        make = partial(
            Question, text=text, answer_schema=None if schema is None else dict(schema), options=tuple(options)
        )
        # In a thread: what checks a schema is imported first.
        try:
            question = make() if schema is None else await run_sync(make)
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            where = "".join(f"`{name}`: " for name in problem["loc"][:1])
            raise ValueError(f"{where}{problem['msg'].removesuffix('.')}.") from None
        try:
            return await ask_live(self._core, self._turn, question.asked(self._event.id, live=True))
        except CallbackFailed as failed:
            self.failure = failed.error
            raise failed.error from None

    async def spool(self, name: str, data: bytes) -> str:
        """Keep a whole output in the workspace's private folder and return its path."""
        return await spool(self._core, name, data)

    async def open_spool(self, name: str, limit: int) -> GrowingSpool:
        """Begin a file there that grows while an output comes."""
        return await open_spool(self._core, name, limit)

    async def model_accepts(self, medium: Medium) -> bool | None:
        """Return whether the agent's model can look at it, as far as that is known."""
        features = await model_features(self._core.agent.llm)
        return features and (features.vision if medium == "image" else features.pdf)

    def last_data(self, tool_name: str) -> Mapping[str, JsonValue] | None:
        """Return the data of a tool's newest observation, even if the model is no longer shown it."""
        return self._core.state.last_data(tool_name)

    @property
    def state(self) -> ConversationState:
        """The conversation's state, which its log's owner alone changes."""
        return self._core.state

    def shown_parts(self) -> Collection[str]:
        """Return the names of the parts of context that the model is shown now."""
        return frozenset(ShownParts().update(self._core.state))


def make_context(core: Core, event: ActionEvent, host: CallHost) -> ToolContext:
    """Make what an executor is handed."""
    return ToolContext(
        workspace=core.workspace,
        secrets=core.secrets,
        conversation_id=core.state.conversation_id,
        action_id=event.id,
        call_id=event.call_id,
        tool_name=event.tool_name,
        host=host,
        deps=core.deps,
        resumed=event.tool_name in core.ran_before,
    )
