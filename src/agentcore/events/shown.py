"""The events that a model is shown, answers to actions apart."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from typing import Annotated, Literal

from pydantic import JsonValue

from agentcore._value import VERBATIM, Verbatim
from agentcore.display import DisplayBlock
from agentcore.events.base import CommandedEvent, EventBase, Source
from agentcore.messages import Block, Message, TextBlock, ToolSchema

__all__ = ["ActionEvent", "CondensationSummaryEvent", "ContentEvent", "MessageEvent", "SystemPromptEvent"]


class SystemPromptEvent(EventBase):
    """What the model is told before everything else, and the tools it may use, from here on."""

    kind: Annotated[Literal["system_prompt"], VERBATIM] = "system_prompt"
    prompt: str
    tools: tuple[ToolSchema, ...] = ()


class MessageEvent(CommandedEvent):
    """Somebody said something: a person, the agent (a reply without tool calls), or the environment (a nudge)."""

    kind: Annotated[Literal["message"], VERBATIM] = "message"
    message: Message
    reply_id: Verbatim | None = None
    """Of an agent's message: the model call it came from."""
    code: Verbatim | None = None
    """Of an environment's message: why it was sent, as in "empty_reply"."""

    @property
    def text(self) -> str:
        """The words of the message."""
        return self.message.text


class ActionEvent(EventBase):
    """The agent asks for a tool. Several actions of one reply share its `reply_id` and are answered in their order."""

    kind: Annotated[Literal["action"], VERBATIM] = "action"
    source: Annotated[Source, VERBATIM] = "agent"
    reply_id: Verbatim
    tool_name: str
    arguments: dict[str, JsonValue]
    """What the tool is called with; secrets stand here by name."""
    malformed: str | None = None
    """What the model sent, where it could not be read as arguments (`arguments` is empty then)."""
    call_id: Verbatim
    """The provider's id of the call. Some providers use one twice: key on `id`."""
    given_call_id: Verbatim | None = None
    """The provider's id, where an earlier call of the reply has it too or it is empty; `call_id` is then one of ours."""
    before: tuple[Block, ...] = ()
    """What the reply said before this call: words, thinking, reasoning items, in order."""
    after: tuple[Block, ...] = ()
    """What the reply said after its last call."""
    display: tuple[DisplayBlock, ...] = ()
    """How the tool shows the call to people; empty: by its name and arguments. The model never sees it."""

    @property
    def thought(self) -> str:
        """The words that the reply put before this call."""
        return "\n".join(block.text for block in self.before if isinstance(block, TextBlock))


class CondensationSummaryEvent(EventBase):
    """A summary that stands for a part of the history."""

    kind: Annotated[Literal["condensation_summary"], VERBATIM] = "condensation_summary"
    summary: str


ContentEvent = SystemPromptEvent | MessageEvent | ActionEvent | CondensationSummaryEvent
"""The events of this file. A new one is added here."""
