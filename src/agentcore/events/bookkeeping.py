"""The events that a model is not shown: decisions, control, and what a call used."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from typing import Final, Literal

from pydantic import FiniteFloat, JsonValue

from agentcore._value import Verbatim
from agentcore.assessment import Assessment, SecurityRisk, Verdict
from agentcore.events.base import CommandedEvent, EventBase
from agentcore.usage import Usage

__all__ = [
    "DRAINED",
    "ActionApproved",
    "ActionAssessed",
    "ActionStarted",
    "AgentConfigured",
    "BookkeepingEvent",
    "Condensation",
    "CondensationReason",
    "CondensationRequest",
    "ConversationErrorEvent",
    "HeadMoved",
    "HookEvent",
    "InterruptEvent",
    "PauseEvent",
    "QuestionAnswered",
    "QuestionAsked",
    "QuestionOutcome",
    "RetryEvent",
    "UsageEvent",
    "WorkspaceOpened",
]


class AgentConfigured(CommandedEvent):
    """The agent that works from here on. Never holds a key."""

    kind: Literal["agent_configured"] = "agent_configured"
    agent: dict[str, JsonValue]
    missing: tuple[str, ...] = ()
    """The parts that could not be recorded; resuming without them needs the agent passed again."""


class WorkspaceOpened(EventBase):
    """The workspace that the conversation works in from here on. Never holds a key, nor the value of a variable."""

    kind: Literal["workspace_opened"] = "workspace_opened"
    workspace: Verbatim
    """The kind of workspace: "local", a name that a package declares, or "custom" where it could not be recorded."""
    spec: dict[str, JsonValue] = {}
    """The parameters that the workspace is made from again: of a local one, its absolute folder as `root`."""
    loosened: tuple[str, ...] = ()
    """One sentence for each protection that it has less of than is the default for its kind."""


class ActionAssessed(EventBase):
    """The checks agreed whether an action may start. `cause` is the action.

    There is none where no check had an opinion and the tool declares no risk: such an action may start.
    """

    kind: Literal["action_assessed"] = "action_assessed"
    verdict: Verdict
    """The strictest verdict of the parts: "deny" (answered in the same group), "ask" (waits for a person), "allow"."""
    risk: SecurityRisk | None = None
    """The highest risk of the parts, or None where that is unknown."""
    parts: tuple[Assessment, ...] = ()
    """The opinion of each check that had one, and of the tool."""
    arguments: dict[str, JsonValue] | None = None
    """The arguments to start with where a check changed them, or None."""
    typed_masks: tuple[Verbatim, ...] = ()
    """Masks that stood in these arguments as they are: they never become a value."""
    critical: Literal[True] = True
    """A version that does not know this event must not continue the log: it would start what waits or is denied."""


class ActionStarted(EventBase):
    """The tool is about to run: durable before it does. `cause` is the action."""

    kind: Literal["action_started"] = "action_started"


class ActionApproved(CommandedEvent):
    """Somebody said yes. `cause` is the action."""

    kind: Literal["action_approved"] = "action_approved"
    arguments: dict[str, JsonValue] | None = None
    """The arguments as that person changed them, or None where they were left as they are."""
    typed_masks: tuple[Verbatim, ...] = ()
    """Masks in these arguments that never become a value: the model had written them."""


class QuestionAsked(EventBase):
    """A question to a person. `cause` is the action that asks.

    The call of a tool that asks (`ask_user`) never starts: the answer is its observation. A live question is asked by a call
    that runs, and that waits for the answer. A call that has to be resumed has ended, and is started again once there is an
    answer.
    """

    kind: Literal["question_asked"] = "question_asked"
    text: str
    answer_schema: dict[str, JsonValue] | None = None
    """The JSON Schema of the answer; None where it is text."""
    options: tuple[str, ...] = ()
    """The answers to choose from; empty where there is no choice."""
    live: bool = False
    """True if a running call waits for the answer."""
    resumes: bool = False
    """True if the call had started, and is resumed with the answer or with the reason why there is none."""
    note: JsonValue = None
    """The tool's own record, to resume the call with. It is not meant for people."""
    typed_masks: tuple[Verbatim, ...] = ()
    """Masks that stood in the note as they are: they never become a value."""
    critical: Literal[True] = True
    """A version that does not know this event must not continue the log: it would answer the call that waits."""


QuestionOutcome = Literal["answered", "declined", "withdrawn"]


class QuestionAnswered(CommandedEvent):
    """The end of a question. `cause` is the action that asked.

    Where the call never started, its observation is in the same group.
    """

    kind: Literal["question_answered"] = "question_answered"
    question: Verbatim
    """The id of the `QuestionAsked`."""
    answer: JsonValue = None
    """The answer; None unless the outcome is "answered"."""
    outcome: QuestionOutcome
    """Withdrawn: the call that waited ended without an answer."""
    reason: str | None = None
    """The reason why it was declined, or withdrawn."""
    typed_masks: tuple[Verbatim, ...] = ()
    """Masks that a person wrote in the answer: they never become a value."""


class CondensationRequest(EventBase):
    """The history should be made shorter before the next step."""

    kind: Literal["condensation_request"] = "condensation_request"


CondensationReason = Literal["soft", "hard", "asked", "repair"]


class Condensation(EventBase):
    """From here on the model is not shown some events, or only that there was an answer; it reads a summary in place of the first.

    Tokens are estimates of the whole request. A later condensation forgets this one's summary by the id of this event.
    """

    kind: Literal["condensation"] = "condensation"
    forgotten: tuple[Verbatim, ...] = ()
    """Ids of events of the active branch that are not shown any more: whole replies, with their answers."""
    masked: tuple[Verbatim, ...] = ()
    """Ids of answers whose content is left out; that there was one is still shown."""
    summary: str | None = None
    """Shown in place of the first event that is forgotten."""
    fields: dict[str, JsonValue] = {}
    """The parts of the summary: what the log knows by itself, and what the model wrote."""
    reason: CondensationReason = "asked"
    """Why: the history was large ("soft"), too large ("hard"), somebody asked for it ("asked"), or the provider refused it ("repair")."""
    condenser: Verbatim | None = None
    """The condenser that made it."""
    tokens_before: int | None = None
    tokens_after: int | None = None
    critical: Literal[True] = True
    """A version that does not know this event must not continue the log: its model would be shown another history."""


DRAINED: Final = "drained"
"""By whom the work was paused or interrupted where its process ended in order: nobody asked for that, so it may go on."""


class PauseEvent(CommandedEvent):
    """Somebody asked the agent to stop at the end of its step."""

    kind: Literal["pause"] = "pause"


class InterruptEvent(CommandedEvent):
    """The turn was stopped where it was."""

    kind: Literal["interrupt"] = "interrupt"
    partial_text: str | None = None
    """The part of the reply that had come when it was stopped; the model does not see it again."""
    reason: str | None = None


class HeadMoved(CommandedEvent):
    """The conversation goes on from an earlier point: what came after it is off the active branch."""

    kind: Literal["head_moved"] = "head_moved"
    to: int
    """The seq of the last event of the branch; 0 is before the first one."""
    checkpoint: Verbatim | None = None
    """The id of the `WorkspaceCheckpointed` whose files are brought back before anything else starts; None leaves files as they are."""


class RetryEvent(EventBase):
    """A model call failed and is tried again."""

    kind: Literal["retry"] = "retry"
    attempt: int
    """The attempt that failed, from 1."""
    error: str
    delay: FiniteFloat
    """Seconds until the next attempt."""
    next_model: Verbatim | None = None
    """The model that is asked then, where it is another one."""


class ConversationErrorEvent(EventBase):
    """The run ended in an error: a limit, or a step that raised."""

    kind: Literal["conversation_error"] = "conversation_error"
    code: Verbatim
    """The limit's name ("steps", "cost", ...) or the exception's class name."""
    detail: str
    raised: bool = False
    """True if a step raised, and `run()` raised with it; a limit is a result."""


class HookEvent(EventBase):
    """A hook ran."""

    kind: Literal["hook"] = "hook"
    hook: str
    outcome: Verbatim
    output: str | None = None


class UsageEvent(EventBase):
    """One model call: what it read up to, and what it used."""

    kind: Literal["usage"] = "usage"
    reply_id: Verbatim | None = None
    """The reply, or None for a call that left nothing in the history (a side question)."""
    purpose: Verbatim = "step"
    """The purpose of the call: "step", "ask", ..."""
    model: Verbatim
    usage: Usage
    view_seq: int | None = None
    """The head that the request of a step saw: the request can be rebuilt from the log up to there."""
    stop_reason: str | None = None
    seconds: FiniteFloat | None = None


BookkeepingEvent = (
    AgentConfigured
    | WorkspaceOpened
    | ActionAssessed
    | ActionStarted
    | ActionApproved
    | QuestionAsked
    | QuestionAnswered
    | CondensationRequest
    | Condensation
    | PauseEvent
    | InterruptEvent
    | HeadMoved
    | RetryEvent
    | ConversationErrorEvent
    | HookEvent
    | UsageEvent
)
"""The events of this file. A new one is added here."""
