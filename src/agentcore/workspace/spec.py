"""How a workspace travels: as a kind and parameters."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from typing import Protocol, runtime_checkable

from pydantic import JsonValue

from agentcore._value import Value

__all__ = ["RecordableWorkspace", "WorkspaceSpec", "record_workspace"]


class WorkspaceSpec(Value):
    """What is recorded of a workspace, from which `resolve_workspace` makes it again."""

    kind: str
    """The name of a factory (see `register_workspace`)."""
    params: dict[str, JsonValue] = {}
    """The keyword arguments of the factory. Never a key, nor the value of a variable."""


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
