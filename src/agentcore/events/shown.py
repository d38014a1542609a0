"""The events that a model is shown: messages, calls of tools, and the answers to them.

Every action that started or was decided on gets exactly one answer. The outcomes: completed (`ObservationEvent`), rejected
(`UserRejectObservation`), and failed, interrupted, not run and unknown (`AgentErrorEvent`). `cause` is the action's event id.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from typing import Literal

from pydantic import JsonValue

from agentcore._value import Recorded, Verbatim
from agentcore.display import DisplayBlock
from agentcore.events.base import CommandedEvent, EventBase, Source
from agentcore.messages import Block, Message, StoredResultBlock, TextBlock, ToolSchema

__all__ = [
    "ActionEvent",
    "AgentErrorEvent",
    "AnswerEvent",
    "CondensationSummaryEvent",
    "ContentEvent",
    "ContextAdded",
    "ErrorOutcome",
    "MessageEvent",
    "ObservationEvent",
    "SystemPromptEvent",
    "UserRejectObservation",
    "WrittenCall",
]


class SystemPromptEvent(EventBase):
    """The system prompt and the tools that the model may use, from here on."""

    kind: Literal["system_prompt"] = "system_prompt"
    prompt: str
    tools: tuple[ToolSchema, ...] = ()
    parts: dict[str, Verbatim] = {}
    """The parts of context in the prompt (project files, memory ...) by name, with the digest of each."""
    base: Verbatim | None = None
    """The digest of the prompt without these parts; None where the agent has no context."""


class ContextAdded(EventBase):
    """A part of context that is shown from here on: a project file, a skill, the date. `cause` is what it is shown for."""

    kind: Literal["context_added"] = "context_added"
    name: Verbatim
    """Its name, as in "file:src/AGENTS.md" or "skill:deploy"."""
    text: str
    digest: Verbatim
    """Of the text, so that the same one is not shown twice."""
    critical: Literal[True] = True
    """A version that does not know this event must not continue the log: its model would be shown another history."""


class MessageEvent(CommandedEvent):
    """Somebody said something: a person, the agent (a reply without tool calls), or the environment (a nudge)."""

    kind: Literal["message"] = "message"
    message: Message
    reply_id: Verbatim | None = None
    """Of an agent's message: the model call it came from."""
    code: Verbatim | None = None
    """Of an environment's message: why it was sent, as in "empty_reply"."""
    prefix: str | None = None
    """Of a user's message: what the agent has the model read before it."""
    suffix: str | None = None
    """Of a user's message: what the agent has the model read behind it."""

    @property
    def text(self) -> str:
        """The words of the message."""
        return self.message.text


class WrittenCall(Recorded):
    """A call as the model wrote it, where it was read as another one. The model is shown its own words again."""

    name: str | None = None
    """The name that it called; None where that is the tool's."""
    arguments: dict[str, JsonValue] | None = None
    """The arguments before any of them was renamed, converted or dropped; None where none was. Secrets stand here by name."""


class ActionEvent(EventBase):
    """The agent asks for a tool. Several actions of one reply share its `reply_id` and are answered in their order."""

    kind: Literal["action"] = "action"
    source: Source = "agent"
    reply_id: Verbatim
    tool_name: str
    arguments: dict[str, JsonValue]
    """The arguments of the call; secrets stand here by name."""
    typed_masks: tuple[Verbatim, ...] = ()
    """Masks, as in "<secret:NAME>", that the model itself wrote in the arguments: they never become a value."""
    malformed: str | None = None
    """The text of the arguments, where it could not be read (`arguments` is empty then)."""
    written: WrittenCall | None = None
    """The call as the model wrote it, where its name or arguments were repaired."""
    ignored: tuple[str, ...] = ()
    """The names of arguments that were dropped, because they change nothing (`Tool.ignored`)."""
    tool_digest: Verbatim | None = None
    """The digest of the tool's schema when the call was made, of a deferred tool: the prompt does not have it. Else None."""
    call_id: Verbatim
    """The provider's id of the call. Some providers use one twice: key on `id`."""
    given_call_id: Verbatim | None = None
    """The provider's id, where an earlier call of the reply has it too or it is empty; `call_id` is then one of ours."""
    before: tuple[Block, ...] = ()
    """The blocks of the reply before this call: words, thinking, reasoning items, in order."""
    after: tuple[Block, ...] = ()
    """The blocks of the reply after its last call."""
    display: tuple[DisplayBlock, ...] = ()
    """How the tool shows the call to people; empty: by its name and arguments. The model never sees it."""

    @property
    def thought(self) -> str:
        """The words that the reply put before this call."""
        return "\n".join(block.text for block in self.before if isinstance(block, TextBlock))


class CondensationSummaryEvent(EventBase):
    """A summary that stands for a part of the history."""

    kind: Literal["condensation_summary"] = "condensation_summary"
    summary: str


ContentEvent = SystemPromptEvent | ContextAdded | MessageEvent | ActionEvent | CondensationSummaryEvent


ErrorOutcome = Literal["failed", "interrupted", "not_run", "unknown"]


class ObservationEvent(EventBase):
    """The tool did what was asked; this is what came of it."""

    kind: Literal["observation"] = "observation"
    tool_name: str
    call_id: Verbatim
    content: tuple[StoredResultBlock, ...]
    """The content that the model is shown."""
    data: dict[str, JsonValue] = {}
    """The observation's fields, for programs: an exit code, a diff, a path."""
    is_error: bool = False
    """The tool worked, and what it found is an error (a command that exited with 1, say)."""
    finished: bool = False
    """The run ends with this answer: the tool is the one that finishes."""
    display: tuple[DisplayBlock, ...] = ()
    """How the tool shows the answer to people; empty: by the words of `content`. The model never sees it."""

    @property
    def text(self) -> str:
        """The words of the answer."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextBlock))


class UserRejectObservation(CommandedEvent):
    """A person said no, or left the question of the call unanswered. Where a check did, the answer is an `AgentErrorEvent`
    with the code "denied".
    """

    kind: Literal["user_reject"] = "user_reject"
    tool_name: str
    call_id: Verbatim
    reason: str
    question: Verbatim | None = None
    """The id of the question that was not answered; None where a call was not allowed."""


class AgentErrorEvent(EventBase):
    """The action came to nothing, or it is unknown to what.

    Outcomes: "failed" (unknown tool, bad arguments, the tool raised), "interrupted" (stopped before its end),
    "not_run" (never started), "unknown" (it had started when the process died, and may have happened).
    """

    kind: Literal["agent_error"] = "agent_error"
    tool_name: str
    call_id: Verbatim
    error: str
    outcome: ErrorOutcome = "failed"
    code: Verbatim | None = None
    """The kind of error, for programs: "unknown_tool", "bad_arguments", "denied" (by a check), or the exception's class name."""


AnswerEvent = ObservationEvent | UserRejectObservation | AgentErrorEvent
