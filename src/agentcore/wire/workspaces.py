"""Workspaces on the wire: the bodies of requests, and the messages of a process's WebSocket.

Above: `agentcore_serve.workspaces` and `agentcore.remote`. Below: the values of workspaces, which travel as they are.

The socket of a process: the client opens with `OpenProcess`; `Opened` answers, or `NotOpened`, which is the last message. Bytes to
the server are standard input, one piece at a time: the next follows its `Taken`. Bytes from the server begin with the
number of their stream (1 or 2), and no more of a stream is under way than was allowed (`WINDOW`, and then `Credit`), so neither side
keeps more than that for a reader that is slow. The client says something every `PING_SECONDS`; after `SILENCE_SECONDS`
without a word, or when the socket closes, the process is ended with all that it started.

The socket of a tunnel to a port inside: bytes are those of the connection, and `TUNNEL_END` is the end of what its sender has to say. Both
say `TUNNEL_PING` every `PING_SECONDS`, whatever the other does: a program inside that reads nothing for a while stops all that comes behind.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from datetime import datetime
from functools import cache
from typing import Annotated, Final, Literal

from pydantic import Base64Bytes, ConfigDict, Field, TypeAdapter

from agentcore._value import Value
from agentcore.wire.problems import Problem
from agentcore.wire.requests import ResponseBody
from agentcore.workspace.protocol import MAX_OUTPUT
from agentcore.workspace.values import CommandResult

WINDOW: Final = 256 * 1024
"""How many bytes of a process's stream may be under way."""
PIECE: Final = 64 * 1024
"""The most bytes of a message with output, and with input."""
TUNNEL_END: Final = "end"
TUNNEL_PING: Final = "ping"
PING_SECONDS: Final = 5.0
SILENCE_SECONDS: Final = 20.0

_ID: Final = Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")
_Bytes = Annotated[int, Field(ge=0, le=64 * 1024 * 1024)]
_Size = Annotated[int, Field(ge=1, le=10_000)]


class _Request(Value):
    model_config = ConfigDict(extra="forbid")


class CreateWorkspace(_Request):
    """The body of a request for a workspace."""

    id: Annotated[str, _ID] | None = None
    """The same id twice is the same workspace; a fresh one by default."""
    folder: Annotated[str, Field(max_length=1000)] | None = None
    """Below the server's root, made if need be; a fresh one by default."""


class WorkspaceInfo(ResponseBody):
    """A workspace of a server."""

    id: str
    folder: str
    """Below the server's root."""
    root: str
    """The absolute path, as commands in it see it."""
    created: datetime


class RunCommand(_Request):
    """The body of a request for a command."""

    command: str | tuple[str, ...] = Field(repr=False)
    id: Annotated[str, _ID] | None = None
    """The same id twice is the same command: it runs once, and both get the answer."""
    cwd: str | None = None
    env: dict[str, str] = Field(default={}, repr=False)
    stdin: Base64Bytes | None = Field(default=None, repr=False)
    max_output: _Bytes = MAX_OUTPUT
    wait: Annotated[float, Field(ge=0, le=30)] | None = None
    """Answer after so many seconds even if it still runs; ask again with the same id within 5 s, or it is ended."""


class CommandAnswer(ResponseBody):
    """How a command stands."""

    result: CommandResult | None = None
    """None while it runs."""


class Diff(ResponseBody):
    """Changes as a unified diff."""

    diff: str


class Folder(ResponseBody):
    """A private folder."""

    path: str


class ViewInfo(ResponseBody):
    """A view of a workspace, for a person's browser."""

    name: str
    title: str
    url: str
    """An address that opens the view in one browser, once, within a minute."""


class _Message(Value):
    model_config = ConfigDict(extra="ignore")


class OpenProcess(_Message):
    """The first message of the client."""

    type: Literal["open"] = "open"
    command: str | tuple[str, ...] = Field(repr=False)
    pty: bool = False
    cwd: str | None = None
    env: dict[str, str] = Field(default={}, repr=False)
    size: tuple[_Size, _Size] = (80, 24)


class Order(_Message):
    """The client wants something done with the process; `Done` with the same id answers."""

    type: Literal["order"] = "order"
    id: int
    order: Literal["eof", "signal", "interrupt", "terminate", "resize"]
    signal: int = 0
    started_within: float | None = None
    size: tuple[int, int] = (80, 24)


class Credit(_Message):
    """The client has read so many bytes of a stream: as many more may come."""

    type: Literal["credit"] = "credit"
    stream: Literal[1, 2]
    count: Annotated[int, Field(ge=1, le=WINDOW)]


class KeepAlive(_Message):
    """The client is there; the server says the same back."""

    type: Literal["ping"] = "ping"


class CloseProcess(_Message):
    """The client has left the process: it is ended, and `Closed` is the last message."""

    type: Literal["close"] = "close"


class Opened(_Message):
    """The process runs."""

    type: Literal["opened"] = "opened"
    pid: int


class Taken(_Message):
    """A piece of input was written, or nothing reads there any more."""

    type: Literal["taken"] = "taken"
    error: Literal["broken", "closed"] | None = None


class Done(_Message):
    """An order was carried out, or failed."""

    type: Literal["done"] = "done"
    id: int
    result: bool = True
    problem: Problem | None = None
    stream_error: Literal["broken", "closed"] | None = None


class End(_Message):
    """A stream of the process is at its end."""

    type: Literal["end"] = "end"
    stream: Literal[1, 2]


class Exit(_Message):
    """The process has ended by itself or by an order."""

    type: Literal["exit"] = "exit"
    code: int


class Closed(_Message):
    """The process is gone, with all that it started."""

    type: Literal["closed"] = "closed"
    code: int


class NotOpened(_Message):
    """The process could not be started, or the server ends it."""

    type: Literal["not_opened"] = "not_opened"
    problem: Problem


FromClient = OpenProcess | Order | Credit | KeepAlive | CloseProcess
FromServer = Opened | Taken | Done | End | Exit | Closed | NotOpened | KeepAlive


@cache
def from_client() -> TypeAdapter[FromClient]:
    """Return what reads a client's messages. Made at the first use, so that an import builds nothing."""
    return TypeAdapter(Annotated[FromClient, Field(discriminator="type")])


@cache
def from_server() -> TypeAdapter[FromServer]:
    """Return what reads a server's messages."""
    return TypeAdapter(Annotated[FromServer, Field(discriminator="type")])
