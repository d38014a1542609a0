"""Commands and jobs as requests: one table, which the server's routes and the remote link both read.

Above: the server, which makes a command of a request (`command_of`), and the link, which makes a request of a command
(`request_for`). A body holds the command's fields. Who gives it is the key's owner and never in the body; values of secrets
and a model's key travel in the body too, beside the fields (`beside_of`), and are in no command.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import math
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast
from urllib.parse import quote

from pydantic import Field, JsonValue
from pydantic_core import PydanticCustomError, from_json

from agentcore import commands
from agentcore._value import DEEPEST, Verbatim, is_too_deep
from agentcore.commands import Command, Job
from agentcore.errors import NothingPending
from agentcore.ids import check_conversation_id
from agentcore.messages import Message, TextBlock
from agentcore.record import ConversationState
from agentcore.wire.requests import Hidden, RequestBody, Scope, refuse, refuse_extra

API: Final = "/api/v1"
CONVERSATIONS: Final = f"{API}/conversations"

_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class CommandRoute(NamedTuple):
    """Where a command or a job is sent."""

    value: type[Any]
    method: str
    path: str
    """Below `/api/v1/conversations/{id}`; what is in braces is a field."""
    scope: Scope

    @property
    def kind(self) -> str:
        """The kind of the command or job."""
        return cast("str", self.value.model_fields["kind"].default)

    @property
    def in_path(self) -> tuple[str, ...]:
        """The fields that are in the path."""
        return tuple(re.findall(r"\{(\w+)\}", self.path))


COMMAND_ROUTES: Final[Mapping[str, CommandRoute]] = {
    route.kind: route
    for route in (
        CommandRoute(commands.Send, "POST", "/messages", "run"),
        CommandRoute(commands.Run, "POST", "/run", "run"),
        CommandRoute(commands.Pause, "POST", "/pause", "run"),
        CommandRoute(commands.Interrupt, "POST", "/interrupt", "run"),
        CommandRoute(commands.Leave, "POST", "/leave", "run"),
        CommandRoute(commands.Approve, "POST", "/approve", "approve"),
        CommandRoute(commands.Reject, "POST", "/reject", "approve"),
        CommandRoute(commands.Answer, "POST", "/questions/{question}", "approve"),
        CommandRoute(commands.Decline, "POST", "/questions/{question}/decline", "approve"),
        CommandRoute(commands.Rewind, "POST", "/rewind", "run"),
        CommandRoute(commands.SetAgent, "PUT", "/agent", "run"),
        CommandRoute(commands.SetLimits, "PUT", "/limits", "run"),
        # It decides what waits for an approval.
        CommandRoute(commands.SetPolicy, "PUT", "/policy", "approve"),
        CommandRoute(commands.SetTitle, "PUT", "/title", "run"),
        CommandRoute(commands.SetTags, "PUT", "/tags", "run"),
        CommandRoute(commands.AddSecrets, "POST", "/secrets", "run"),
        CommandRoute(commands.Ask, "POST", "/ask", "run"),
        CommandRoute(commands.Fork, "POST", "/fork", "run"),
        CommandRoute(commands.Condense, "POST", "/condense", "run"),
        CommandRoute(commands.Checkpoint, "POST", "/checkpoint", "run"),
        CommandRoute(commands.Delete, "DELETE", "", "run"),
    )
}
"""By kind."""

ACTION_PATHS: Final[Mapping[str, str]] = {
    "approve": "/actions/{action}/approve",
    "reject": "/actions/{action}/reject",
}
"""The same with one id: `command_of` takes `action` from the path, and the body names no ids."""


class Beside(RequestBody):
    """The parts of a body that are in no command."""

    secrets: dict[Verbatim, Hidden] = {}
    """Of `add_secrets`: values by name. A name without one is a secret that the client is asked for."""
    model_key: Hidden | None = None
    """Of `set_agent`: the key for the model of a client's own agent."""
    profile: str | None = Field(default=None, min_length=1, max_length=128)
    """Of `set_agent`: an agent of the server's, in place of a record."""


_BESIDE: Final[Mapping[str, tuple[str, ...]]] = {"add_secrets": ("secrets",), "set_agent": ("model_key", "profile")}


class CommandCall(NamedTuple):
    """A command as a request."""

    method: str
    path: str
    """Below `/api/v1/conversations/{id}`, quoted."""
    body: dict[str, JsonValue]

    def __repr__(self) -> str:
        return f"CommandCall({self.method} {self.path})"  # the body may hold secrets


def request_for(command: Command | Job, beside: Beside | None = None) -> CommandCall:
    """Return the request that carries a command or a job, and what travels beside it."""
    route = COMMAND_ROUTES[command.kind]
    fields: dict[str, JsonValue] = command.model_dump(mode="json", exclude={"kind", "by"})
    in_path = {name: quote(str(fields.pop(name)), safe="") for name in route.in_path}
    if isinstance(command, commands.AddSecrets) and beside is not None:
        fields["secrets"] = {name: value.get_secret_value() for name, value in beside.secrets.items()}
    elif isinstance(command, commands.SetAgent) and beside is not None:
        if beside.model_key is not None:
            fields["model_key"] = beside.model_key.get_secret_value()
        if beside.profile is not None:
            fields["profile"] = beside.profile
    return CommandCall(route.method, route.path.format(**in_path), fields)


def command_of(
    kind: str,
    params: Mapping[str, str],
    body: JsonValue,
    by: str | None,
    *,
    state: ConversationState | None = None,
) -> Command | Job:
    """Return the command or job of a request.

    Args:
        kind: Its kind: a key of `COMMAND_ROUTES`.
        params: The parts of the path, as the table names them; others are passed over.
        body: The fields. `text` may stand for `message`; `id` may be left out; an interrupt without `run` is about the
            newest one, and an approval or rejection without `ids` about all that wait: for these two, pass the state.
        by: The key's owner.
        state: The conversation's state.

    Raises:
        ValueError: Something in it is unknown, missing, of the wrong type, or no JSON that can be recorded.
        NothingPending: It names no ids, and nothing waits.
    """
    route = COMMAND_ROUTES[kind]
    fields = _fields_of(body)
    for name in ("by", "kind"):
        if name in fields:
            raise refuse(name, "It is not the body's to say.")
    for name in (*route.in_path, *(("ids",) if "action" in params else ())):
        if name in fields:
            raise refuse(name, "It is in the path.")
    fields |= {name: params[name] for name in route.in_path}
    if "id" in fields and not (isinstance(fields["id"], str) and _ID.fullmatch(fields["id"])):
        raise refuse("id", "An id has 1 to 128 letters, digits, '.', '_', ':' or '-'.")
    _complete(kind, fields, params, state)
    if "by" in route.value.model_fields:
        fields["by"] = by
    command = cast("Command | Job", route.value.model_validate(fields))
    try:
        refuse_extra(command)
    except PydanticCustomError as error:
        raise refuse((), error.message()) from None
    _check(command)
    return command


def beside_of(kind: str, body: JsonValue) -> Beside:
    """Return what travels beside a command of this kind; of most it is empty.

    Raises:
        ValueError: It is of the wrong type.
    """
    fields = _fields_of(body)
    return Beside.model_validate({name: fields[name] for name in _BESIDE.get(kind, ()) if name in fields})


def read_json(data: bytes | str) -> JsonValue:
    """Read a body. No data is None.

    Raises:
        ValueError: It is not JSON in UTF-8, is nested too deeply, or holds what cannot be recorded. The message repeats nothing of it.
    """
    if not data.strip():
        return None
    try:
        value: JsonValue = from_json(data, allow_inf_nan=False)
    except ValueError:
        raise refuse((), "The body is not JSON in UTF-8, or is nested too deeply.") from None
    check_json(value)
    return value


def check_json(value: JsonValue) -> None:
    """Refuse JSON that cannot be recorded as it is.

    Raises:
        ValueError: It is nested too deeply, or holds NaN, an infinity, or half of a surrogate pair.
    """
    if is_too_deep(value):
        raise refuse((), f"It is nested too deeply: {DEEPEST} levels are the most.")
    rest: list[Any] = [value]
    while rest:
        each = rest.pop()
        if isinstance(each, dict):
            rest += [*cast("dict[str, Any]", each).keys(), *cast("dict[str, Any]", each).values()]
        elif isinstance(each, list):
            rest += cast("list[Any]", each)
        elif isinstance(each, float) and not math.isfinite(each):
            raise refuse((), "It holds NaN or an infinity, which JSON does not have.")
        elif isinstance(each, str) and not each.isascii() and not _is_unicode(each):
            raise refuse((), "It holds half of a surrogate pair, which is not text.")


def _fields_of(body: JsonValue) -> dict[str, JsonValue]:
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise refuse((), "The body has to be a JSON object.")
    check_json(body)
    return dict(body)


def _complete(
    kind: str, fields: dict[str, JsonValue], params: Mapping[str, str], state: ConversationState | None
) -> None:
    """Fill in what a body may leave out, and take out what is in no command."""
    if kind in ("send", "run") and "text" in fields:
        if fields.get("message") is not None:
            raise refuse("text", "Send a text or a message, not both.")
        text = fields.pop("text")
        if not isinstance(text, str):
            raise refuse("text", "Input should be a valid string")
        fields["message"] = Message.user(text).model_dump(mode="json")
    elif kind in ("approve", "reject"):
        if "action" in params:
            fields["ids"] = [params["action"]]
        elif fields.get("ids") is None and state is not None:
            fields["ids"], fields["all_that_wait"] = list(_waiting(kind, state)), True
    elif kind == "interrupt" and "run" not in fields and state is not None:
        fields["run"] = state.run.seq
    elif kind == "add_secrets":
        valued = beside_of(kind, fields).secrets
        fields.pop("secrets", None)
        names = fields.get("names", [])
        if isinstance(names, list):
            fields["names"] = [*names, *(name for name in valued if name not in names)]
    elif kind == "set_agent":
        profile = beside_of(kind, fields).profile
        for name in _BESIDE[kind]:
            fields.pop(name, None)
        if profile is not None:
            if "agent" in fields:
                raise refuse("profile", "Send a profile or an agent, not both.")
            fields["agent"] = {}


def _waiting(kind: str, state: ConversationState) -> list[str]:
    """Return the ids of all that wait: a question is answered and never approved."""
    ids = [event.id for event in state.pending if kind == "reject" or state.open_actions[event.id].question is None]
    if not ids:
        raise NothingPending([], ())
    return ids


def _check(command: Command | Job) -> None:
    message = command.message if isinstance(command, commands.Send | commands.Run) else None
    if message is not None:
        if message.role != "user":
            raise refuse(("message", "role"), "Only a user's messages can be sent.")
        if all(isinstance(block, TextBlock) and not block.text.strip() for block in message.content):
            raise refuse("message", "The message is empty.")
    if isinstance(command, commands.Fork):
        try:
            check_conversation_id(command.conversation)
        except ValueError:
            raise refuse("conversation", "It can't be the id of a conversation.") from None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
