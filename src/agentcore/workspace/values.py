"""The values of a workspace: results of commands, entries of folders, changes of repositories."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import codecs
from datetime import datetime
from typing import Literal, Protocol, runtime_checkable

from pydantic import ConfigDict, JsonValue

from agentcore._value import Value

EntryKind = Literal["file", "dir", "link", "other"]
ChangeStatus = Literal["added", "deleted", "updated", "moved"]


class Output(Value):
    """The output of a command on one stream: all of it, or its beginning and its end."""

    # Base64, because a command may write anything, and a result may travel as JSON.
    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    head: bytes = b""
    """All of it, or its beginning where `omitted` is not 0."""
    tail: bytes = b""
    """Its end, where `omitted` is not 0."""
    omitted: int = 0
    """How many bytes between head and tail were not kept."""

    @property
    def size(self) -> int:
        """How many bytes were written."""
        return len(self.head) + self.omitted + len(self.tail)

    @property
    def text(self) -> str:
        """The output as UTF-8, with U+FFFD for what is not, and a line in brackets for what was not kept."""
        if not self.omitted:
            return self.head.decode(errors="replace")
        return f"{_beginning(self.head)}\n[... {self.omitted} bytes omitted ...]\n{_end(self.tail)}"


def _beginning(data: bytes) -> str:
    # An incremental decoder waits for the rest of a character that was cut, and so leaves it out.
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data)


def _end(data: bytes) -> str:
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:].decode(errors="replace")


class CommandResult(Value):
    """How a command ended, and what it wrote."""

    exit_code: int
    """0 to 255; 128 and the signal's number where a signal ended it, as a shell tells it."""
    out: Output
    """Its standard output, in bytes."""
    err: Output
    """Its standard error, in bytes."""

    @property
    def stdout(self) -> str:
        """Its standard output as text."""
        return self.out.text

    @property
    def stderr(self) -> str:
        """Its standard error as text."""
        return self.err.text

    @property
    def truncated(self) -> bool:
        """True if it wrote more than was kept."""
        return bool(self.out.omitted or self.err.omitted)


class Entry(Value):
    """One name in a folder."""

    name: str
    """The name alone, without its folder. Bytes that are not UTF-8 are shown as `\\xNN`."""
    kind: EntryKind
    size: int
    """In bytes; of a file only this says how much there is to read."""
    modified: datetime
    """In UTC."""


class GitChange(Value):
    """One path that differs from where the work began."""

    path: str
    """Relative to the workspace's root. Bytes that are not UTF-8 are shown as `\\xNN`."""
    status: ChangeStatus
    old_path: str | None = None
    """Where it was, if it moved."""


class WorkspaceSpec(Value):
    """The record of a workspace, from which `resolve_workspace` makes it again."""

    kind: str
    """The name of a factory (see `register_workspace`)."""
    params: dict[str, JsonValue] = {}
    """The keyword arguments of the factory. Never a key, nor the value of a variable."""
    loosened: tuple[str, ...] = ()
    """One sentence for each protection that the workspace has less of than is the default for its kind."""


@runtime_checkable
class RecordableWorkspace(Protocol):
    """A workspace that a conversation can go back to. A workspace need not be one."""

    def record(self) -> WorkspaceSpec | None:
        """Return what it can be made from again, or None. Called while it is open; it does not wait."""
        ...


def record_workspace(workspace: object) -> WorkspaceSpec:
    """Return the record of an open workspace; of one that has none, the kind "custom" with its class."""
    spec = workspace.record() if isinstance(workspace, RecordableWorkspace) else None
    if isinstance(spec, WorkspaceSpec):
        return spec
    return WorkspaceSpec(kind="custom", params={"class": type(workspace).__qualname__})
