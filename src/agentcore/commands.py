"""Commands: what a program asks of a conversation, as values.

Above: the conversation, whose recorder decides what each comes to, on the very state that it appends to; a remote client,
which sends the values as they are. Below: messages and limits. A command holds nothing live: an agent, a policy object, a
context travel beside it, by its id.

Two kinds of commands. A decided one (`Send` to `AddSecrets`) is whole once it is handed over, whatever becomes of its caller. A
signal (`Interrupt`, `Leave`) takes effect before it is recorded. What a command writes carries its id and who gave it, so
that the same id again gets the same receipt and writes nothing. A job (`Ask` to `Delete`) is work beside the turns.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from typing import Literal

from pydantic import Field, JsonValue

from agentcore._value import Value, Verbatim
from agentcore.ids import new_conversation_id, new_id
from agentcore.messages import Message
from agentcore.usage import Limits


def _command_id() -> str:
    return new_id("cmd")


class CommandBase(Value):
    """The fields of every command."""

    id: Verbatim = Field(default_factory=_command_id)
    """Unique; a retry of a command has the id of the first try."""
    by: str | None = None
    """Who gives it, where that is known."""


class Send(CommandBase):
    """Record a message."""

    kind: Literal["send"] = "send"
    message: Message


class Run(CommandBase):
    """Work until the conversation settles; where it works already, join that run."""

    kind: Literal["run"] = "run"
    message: Message | None = None
    """Recorded first, in the same group."""
    attended: bool = False
    """True if a callback of the program is asked about actions that wait while the run goes on."""
    answers: bool = False
    """True if a callback of the program answers questions while the run goes on."""


class Pause(CommandBase):
    """Stop at the end of the step."""

    kind: Literal["pause"] = "pause"


class Approve(CommandBase):
    """Let actions that wait run."""

    kind: Literal["approve"] = "approve"
    ids: tuple[Verbatim, ...]
    """Ids of action events."""
    all_that_wait: bool = False
    """True if the ids are all that waited when it was given: one that was decided meanwhile is then skipped."""
    arguments: dict[str, JsonValue] | None = None
    """The arguments to run the one action with instead."""


class Reject(CommandBase):
    """Answer actions that wait with a no."""

    kind: Literal["reject"] = "reject"
    ids: tuple[Verbatim, ...]
    all_that_wait: bool = False
    reason: str


class Answer(CommandBase):
    """Answer a question that waits."""

    kind: Literal["answer"] = "answer"
    question: Verbatim
    """The id of the question, or of the action that asks it."""
    value: JsonValue


class Decline(CommandBase):
    """Leave a question unanswered for good: what asked it goes on without."""

    kind: Literal["decline"] = "decline"
    question: Verbatim
    reason: str


class Rewind(CommandBase):
    """Move the head to an earlier point, or to one on another branch."""

    kind: Literal["rewind"] = "rewind"
    to: int
    """The seq of a settled point."""
    files: bool = False
    """True to bring back the files of the workspace too, from the last checkpoint at or before that point."""


class SetLimits(CommandBase):
    """Hold the conversation to these limits."""

    kind: Literal["set_limits"] = "set_limits"
    limits: Limits


class SetPolicy(CommandBase):
    """Let this policy decide which actions wait."""

    kind: Literal["set_policy"] = "set_policy"
    policy: dict[str, JsonValue]
    """As it is recorded; the policy itself travels beside."""


class SetAgent(CommandBase):
    """Let this agent work, from the next step on."""

    kind: Literal["set_agent"] = "set_agent"
    agent: dict[str, JsonValue]
    """As it is recorded; the agent itself travels beside."""
    missing: tuple[str, ...] = ()
    """The parts that could not be recorded."""


class SetTitle(CommandBase):
    """Set the title of the conversation."""

    kind: Literal["set_title"] = "set_title"
    title: str


class SetTags(CommandBase):
    """Set the tags of the conversation: these, and no others."""

    kind: Literal["set_tags"] = "set_tags"
    tags: dict[str, str]


class AddSecrets(CommandBase):
    """Register secrets by these names; the values travel beside."""

    kind: Literal["add_secrets"] = "add_secrets"
    names: tuple[Verbatim, ...]


class Interrupt(CommandBase):
    """Stop the run where it is. For a run that is over it does nothing."""

    kind: Literal["interrupt"] = "interrupt"
    run: int
    """The seq at which the run began that is meant."""
    reason: str | None = None


class Leave(CommandBase):
    """Wait no longer for a run; the last one that leaves interrupts it."""

    kind: Literal["leave"] = "leave"
    waiter: Verbatim
    """The id of the `Run` that waits."""


Command = (
    Send
    | Run
    | Pause
    | Approve
    | Reject
    | Answer
    | Decline
    | Rewind
    | SetLimits
    | SetPolicy
    | SetAgent
    | SetTitle
    | SetTags
    | AddSecrets
    | Interrupt
    | Leave
)
"""Any command, signals included."""


def _job_id() -> str:
    return new_id("job")


class JobBase(Value):
    """The fields of every job."""

    id: Verbatim = Field(default_factory=_job_id)
    """Unique; a retry of a job has the id of the first try, and joins it."""


class Ask(JobBase):
    """Ask the agent's model a side question, which leaves no trace in the history."""

    kind: Literal["ask"] = "ask"
    question: str


class Fork(JobBase):
    """Copy a branch into a log of its own."""

    kind: Literal["fork"] = "fork"
    at: int | None = None
    """The seq of a settled point; None is the head."""
    conversation: Verbatim = Field(default_factory=new_conversation_id)
    """The id of the new log."""


class Condense(JobBase):
    """Shorten the history that the model is shown."""

    kind: Literal["condense"] = "condense"


class Checkpoint(JobBase):
    """Save the files of the workspace."""

    kind: Literal["checkpoint"] = "checkpoint"


class Delete(JobBase):
    """Delete the conversation and its log."""

    kind: Literal["delete"] = "delete"


Job = Ask | Fork | Condense | Checkpoint | Delete
"""Any job."""


class Receipt(Value):
    """The outcome of a command. Durable when it is returned; the work that it began goes on."""

    seq: int
    """The seq of the first event that it wrote; the head, where it wrote none."""
    run: int = 0
    """The seq at which the run began that it belongs to; 0 before the first one."""
    actions: tuple[Verbatim, ...] = ()
    """The ids of the actions that it decided on."""
