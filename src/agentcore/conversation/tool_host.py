"""What a running call may ask of its conversation."""

from __future__ import annotations

from collections.abc import Mapping

from anyio.lowlevel import checkpoint
from pydantic import JsonValue

from agentcore.conversation.ask import ask_aside
from agentcore.conversation.core import Core
from agentcore.conversation.deltas import StreamDelta
from agentcore.conversation.spool import GrowingSpool, open_spool, spool
from agentcore.events import ActionEvent, MessageEvent, ObservationEvent
from agentcore.llm import model_features
from agentcore.messages import Message
from agentcore.tools import Medium, ToolContext

__all__ = ["CallHost", "make_context"]


class CallHost:
    """What a running call may ask of its conversation."""

    def __init__(self, core: Core, event: ActionEvent) -> None:
        self._core = core
        self._event = event
        self._turn = core.turn
        self._masking = core.secrets.masker.stream()
        self._offset = 0

    async def progress(self, action_id: str, text: str) -> None:
        """Show people what the tool is doing; nothing is kept."""
        assert action_id == self._event.id
        self._core.home.refuse_elsewhere()
        self._show(self._masking.feed(text))
        await checkpoint()

    def finish(self) -> None:
        """Show what masking still held back."""
        self._show(self._masking.finish())

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
        self._core.home.refuse_elsewhere()
        if self._turn is not None:
            self._turn.interrupt(f"the tool {self._event.tool_name!r} asked for it")
        await checkpoint()

    async def ask(self, question: str) -> str:
        """Ask the model a side question."""
        return await ask_aside(self._core, question)

    async def spool(self, name: str, data: bytes) -> str:
        """Keep a whole output in the workspace's private folder and give its path."""
        return await spool(self._core, name, data)

    async def open_spool(self, name: str, limit: int) -> GrowingSpool:
        """Begin a file there that grows while an output comes."""
        return await open_spool(self._core, name, limit)

    async def model_accepts(self, medium: Medium) -> bool | None:
        """Say whether the agent's model can look at it, as far as that is known."""
        features = await model_features(self._core.agent.llm)
        return features and (features.vision if medium == "image" else features.pdf)

    def last_data(self, tool_name: str) -> Mapping[str, JsonValue] | None:
        """Give what the newest observation of a tool recorded, whether the model is still shown it or not."""
        for event in reversed(self._core.state.shown):
            if isinstance(event, ObservationEvent) and event.tool_name == tool_name:
                return event.data
        return None


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
        resumed=event.tool_name in core.ran_before,
    )
