"""The bodies of requests and responses below `/api/v1`, apart from commands, which are their own (see `routes`).

Above: the server, whose OpenAPI document is made of these classes, and the client. A request with an unknown field is
refused; in a response the client passes over what a newer server adds. Secrets and keys are `Hidden`: no repr, dump or
error shows them, and only `encode_body` writes them.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, Self, TypeVar, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    SecretStr,
    SerializationInfo,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from agentcore._value import Value, Verbatim
from agentcore.events import CheckpointTimes, ConversationStatus
from agentcore.usage import Limits, Usage
from agentcore.wire.frames import EventFrame

Scope = Literal["read", "run", "approve", "workspace", "agents", "admin"]
"""The rights of a key: watch; converse; decide about actions; use files and processes; bring agents; manage keys."""

_REVEAL: Final = object()


def _dump_hidden(value: SecretStr, info: SerializationInfo) -> str:
    return value.get_secret_value() if info.context is _REVEAL else str(value)


Hidden = Annotated[
    SecretStr,
    PlainSerializer(_dump_hidden, return_type=str),
    # pydantic's own schema says that no answer has one, which that of a new key has.
    WithJsonSchema({"type": "string", "format": "password"}, mode="serialization"),
]
"""A secret or a key."""


class RequestBody(Value):
    """The base of what a client sends. What does not fit is refused without repeating it."""

    model_config = ConfigDict(hide_input_in_errors=True)

    @model_validator(mode="after")
    def _refuse_extra(self) -> Self:
        return refuse_extra(self)


class ResponseBody(Value):
    """The base of what a server answers."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


ModelT = TypeVar("ModelT", bound=BaseModel)


def refuse(loc: str | tuple[str | int, ...], message: str) -> ValidationError:
    """Return the error that says what is wrong with a part of a request, and repeats nothing of it."""
    place = (loc,) if isinstance(loc, str) else loc
    words = PydanticCustomError("refused", "{words}", {"words": message})
    return ValidationError.from_exception_data(
        "request", [InitErrorDetails(type=words, loc=place, input=None)], hide_input=True
    )


def refuse_extra(model: ModelT) -> ModelT:
    """Return a request as it is, unless a value in it has an unknown field.

    A value that is recorded as well (limits, a message) keeps such fields when a log is read. In a request one is a mistake: a
    limit that is written wrong would hold nobody.

    Raises:
        PydanticCustomError: There is one.
    """
    if name := _find_extra(model):
        raise PydanticCustomError("extra_forbidden", "There is no field {name}.", {"name": repr(name[:100])})
    return model


def _find_extra(value: Any) -> str | None:
    match value:
        case BaseModel():
            return next(iter(value.model_extra or ()), None) or _find_extra(
                [getattr(value, name) for name in value.model_fields_set if name in type(value).model_fields]
            )
        case list() | tuple():
            found = map(_find_extra, cast("list[Any]", value))
            return next((name for name in found if name), None)
        case _:
            return None


def encode_body(body: RequestBody | ResponseBody) -> bytes:
    """Return a body as JSON, with its secrets: for the connection, and nothing else."""
    return body.model_dump_json(context=_REVEAL).encode()


class ClientAgent(RequestBody):
    """An agent that a client brings. Its key is the client's own: the server's are never used for it."""

    record: dict[str, JsonValue] = Field(repr=False)
    """As `record_agent` makes it."""
    model_key: Hidden | None = None


class ClientTool(RequestBody):
    """A tool that runs in the client."""

    name: Verbatim
    description: str
    parameters: dict[str, JsonValue]
    """A JSON Schema of type "object"."""
    annotations: dict[str, JsonValue] = {}
    """Its hints of what it does: `title`, `read_only`, `destructive`, `idempotent`, `open_world`."""
    resources: tuple[dict[str, JsonValue], ...] | None = None
    """The arguments that each call of it uses, as `path` and `mode`; None is the whole workspace."""


class WorkspaceSpecification(RequestBody):
    """A workspace to open."""

    folder: str | None = None
    """Below the server's root; "." is the root itself, None a fresh folder."""


class ConversationSpec(RequestBody):
    """A conversation to create, or to open as it was recorded."""

    agent: str | ClientAgent | None = None
    """The name of a profile, or an agent of the client's; None is the recorded agent, or the server's default profile."""
    workspace: str | WorkspaceSpecification | None = None
    """The id of an open workspace, or one to open; None is where it worked, or the server's default."""
    limits: Limits | None = None
    policy: dict[str, JsonValue] | None = None
    """The record of a policy: which actions wait."""
    secrets: dict[str, Hidden] = {}
    title: str | None = None
    tags: dict[str, str] = {}
    tools: tuple[ClientTool, ...] = ()
    """The tools that run in the client."""
    client_secrets: tuple[Verbatim, ...] = ()
    """The names of secrets whose values the client is asked for when they are needed."""
    confirm: bool = False
    """True if a callback of the client decides about actions that wait."""
    on_question: bool = False
    """True if a callback of the client answers questions."""
    attended: bool = False
    """True if somebody answers the live questions of calls."""
    checkpoints: CheckpointTimes | None = None
    """When the files of the workspace are saved; None is as recorded, or when somebody asks."""


class ConversationPatch(RequestBody):
    """Changes of a conversation; a field that is not there is left as it is."""

    title: str | None = None
    tags: dict[str, str] | None = None
    limits: Limits | None = None
    policy: dict[str, JsonValue] | None = None


class ConversationInfo(ResponseBody):
    """A conversation in short."""

    id: str
    status: ConversationStatus
    status_code: str | None = None
    status_detail: str | None = None
    title: str | None = None
    tags: dict[str, str] = {}
    owner: str | None = None
    agent: str | None = None
    """The profile, where it is one's."""
    model: str | None = None
    workspace: str | None = None
    """The id of its workspace, while that is open."""
    birth: str | None = None
    """The id of the log's first event."""
    head: int = 0
    created: datetime | None = None
    modified: datetime | None = None
    cost: Decimal | None = None
    """US dollars; None where the price of a call is unknown."""
    pending: int = 0
    """How many actions wait for a person."""
    questions: int = 0
    last_words: str | None = None
    """The beginning of the agent's last words."""
    holder: str | None = None
    """Another process that writes the log: it can be watched here, and not changed."""
    problem: str | None = None
    """The reason why the log cannot be read or continued."""


class ConversationPage(ResponseBody):
    """Some conversations, the newest first."""

    items: tuple[ConversationInfo, ...]
    next: str | None = None
    """Pass it as `cursor` for the next page; None on the last one."""


class EventPage(ResponseBody):
    """Some events of a log, in order."""

    items: tuple[EventFrame, ...]
    birth: str | None
    head: int
    next: int | None = None
    """Pass it as `after` (or as `before`, when reading backwards) for the next page; None on the last one."""


class UsageInfo(ResponseBody):
    """The usage of a conversation."""

    total: Usage
    cost: Decimal | None
    """US dollars; None where the price of a call is unknown."""
    run: Usage
    """Of the newest run."""
    by_model: dict[str, Usage]
    limits: Limits


class SideAnswer(ResponseBody):
    """The answer to a side question."""

    text: str
    seq: int
    """The newest event by then: the usage of the question is among those up to it."""


class ForkInfo(ResponseBody):
    """The log that a fork made."""

    conversation: str


class CheckpointInfo(ResponseBody):
    """The outcome of a checkpoint: the seq of its event."""

    seq: int


class CondenseInfo(ResponseBody):
    """The outcome of a condense: the seq of the cut; None where it would free too little."""

    seq: int | None


class AgentInfo(ResponseBody):
    """An agent that the server has: a profile."""

    name: str
    description: str = ""
    model: str | None = None
    tools: tuple[str, ...] = ()
    default: bool = False


class ServedModel(ResponseBody):
    """A model that a profile of the server uses."""

    name: str
    provider: str | None = None
    context_window: int | None = None
    priced: bool = False
    """True if its calls have a price, so that a limit of cost can be kept."""


class ToolInfo(ResponseBody):
    """A tool that a profile of the server has."""

    name: str
    description: str = ""
    parameters: dict[str, JsonValue] = {}


class KeyRequest(RequestBody):
    """A key to add."""

    owner: Annotated[str, Field(min_length=1, max_length=128)]
    scopes: tuple[Scope, ...]
    note: Annotated[str, Field(max_length=200)] = ""
    expires: datetime | None = None


class KeyInfo(ResponseBody):
    """A key, without its secret."""

    id: str
    owner: str
    scopes: tuple[Scope, ...]
    note: str = ""
    created: datetime
    expires: datetime | None = None
    last_used: datetime | None = None
    revoked: bool = False


class NewKey(KeyInfo):
    """A key that was made just now. It is shown this once."""

    key: Hidden


class Ticket(ResponseBody):
    """A one-use right to open a WebSocket, for clients that cannot send headers."""

    ticket: Hidden
    expires_in: float
    """Seconds."""


class Version(ResponseBody):
    """The server."""

    version: str
    """Of agentcore."""
    api: Literal["v1"] = "v1"
    tools: tuple[str, ...] = ()
    """The names of the tool factories that an agent of a client's may use; other tools run in the client."""
    modules: tuple[str, ...] = ()
    """The modules whose functions with `@tool` it may use."""
