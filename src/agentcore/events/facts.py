"""The facts of a conversation that are not messages: each is one `ConversationStateUpdateEvent`."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from enum import StrEnum
from typing import Annotated, Literal, cast

from pydantic import Field, JsonValue, field_validator

from agentcore._value import VERBATIM, Recorded, Verbatim
from agentcore.events.base import CommandedEvent
from agentcore.usage import Limits

__all__ = [
    "CheckpointTimes",
    "CheckpointsSet",
    "ContextNotice",
    "ConversationStateUpdateEvent",
    "ConversationStatus",
    "Fact",
    "Forked",
    "LimitsSet",
    "PolicySet",
    "RunJoined",
    "SecretsRegistered",
    "StatusChanged",
    "TagsSet",
    "TitleSet",
    "ToolsetNotice",
    "UnknownFact",
]


class ConversationStatus(StrEnum):
    """The status of a conversation."""

    IDLE = "idle"
    RUNNING = "running"
    PAUSED = "paused"
    WAITING_FOR_CONFIRMATION = "waiting_for_confirmation"
    FINISHED = "finished"
    STUCK = "stuck"
    ERROR = "error"


class StatusChanged(Recorded):
    """The conversation's status is another one from here on."""

    fact: Literal["status"] = "status"
    status: ConversationStatus
    code: Verbatim | None = None
    """Why, for programs: "recovered", "closed", "repeated_action", ..."""
    detail: str | None = None
    """Why, for people."""


class TitleSet(Recorded):
    """The conversation has a (new) title."""

    fact: Literal["title"] = "title"
    title: str


class TagsSet(Recorded):
    """The conversation has these tags, and no others."""

    fact: Literal["tags"] = "tags"
    tags: dict[str, str]


class LimitsSet(Recorded):
    """These limits hold from here on."""

    fact: Literal["limits"] = "limits"
    limits: Limits


class PolicySet(Recorded):
    """These checks hold from here on: a policy, or checks of the program's own."""

    fact: Literal["policy"] = "policy"
    policy: Annotated[dict[str, JsonValue], VERBATIM]
    """The policy's name and parameters; "custom" where it is the program's own."""


CheckpointTimes = Literal["asked", "settled"]


class CheckpointsSet(Recorded):
    """The files of the workspace are saved at these times from here on."""

    fact: Literal["checkpoints"] = "checkpoints"
    when: CheckpointTimes
    """When somebody asks, or also at the start of a turn and whenever all calls of a reply are answered."""


class SecretsRegistered(Recorded):
    """Secrets of these names can be used, and are masked, from here on. Their values are nowhere in the log."""

    fact: Literal["secrets"] = "secrets"
    names: tuple[Verbatim, ...]


class Forked(Recorded):
    """This log began as a copy of a branch of another one."""

    fact: Literal["forked"] = "forked"
    conversation_id: Verbatim
    at: int
    """The seq, in the other log, of the last event that was copied."""


class RunJoined(Recorded):
    """Somebody else waits for the run as well."""

    fact: Literal["run_joined"] = "run_joined"
    run: int
    """The seq at which the run began."""


class ToolsetNotice(Recorded):
    """Something about a toolset that people should know: it did not open, it ended, one of its tools is left out."""

    fact: Literal["toolset"] = "toolset"
    name: str
    """The toolset's name."""
    code: Verbatim
    """The kind of notice, for programs: "missing", "closed", "tool_left_out", "tools_unreadable", or "message" (from the toolset itself)."""
    detail: str
    """The same, for people."""


class ContextNotice(Recorded):
    """Something about the context that people should know: a source, a skill or a file was left out, a condenser failed."""

    fact: Literal["context"] = "context"
    name: str
    """The source, the condenser, or "checkpoints"."""
    code: Verbatim
    """The kind of notice, for programs: "left_out", "source_failed", "condenser_failed" or "checkpoint_failed"."""
    detail: str
    """The same, for people."""


class UnknownFact(Recorded):
    """A fact that only a newer version knows: kept as it is."""

    fact: Verbatim

    @field_validator("fact")
    @classmethod
    def _not_a_known_fact(cls, value: str) -> str:
        if value in _KNOWN_FACTS:
            # Without this, a damaged fact of a known name would pass for an unknown one.
            raise ValueError(f"a fact {value!r} with wrong fields")
        return value


KnownFact = (
    StatusChanged
    | TitleSet
    | TagsSet
    | LimitsSet
    | PolicySet
    | SecretsRegistered
    | CheckpointsSet
    | Forked
    | RunJoined
    | ToolsetNotice
    | ContextNotice
)

_CLASSES: tuple[type[Recorded], ...] = KnownFact.__args__
_KNOWN_FACTS = frozenset(cast("str", cls.model_fields["fact"].default) for cls in _CLASSES)

Fact = Annotated[
    Annotated[KnownFact, Field(discriminator="fact")] | UnknownFact,
    Field(union_mode="left_to_right"),
]


class ConversationStateUpdateEvent(CommandedEvent):
    """One fact of the conversation changed."""

    kind: Literal["conversation_state_update"] = "conversation_state_update"
    update: Fact
