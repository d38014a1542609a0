"""How a tool or a toolset travels: as a name and parameters."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from pydantic import JsonValue

from agentcore._value import Value

__all__ = ["ToolSpec", "ToolsetSpec"]


class ToolSpec(Value):
    """What is recorded of a tool, from which `resolve_tool` makes it again."""

    name: str
    """The name of a factory (see `register_tool`), which need not be the tool's own name."""
    params: dict[str, JsonValue] = {}
    """What the factory is called with, by name."""


class ToolsetSpec(Value):
    """What is recorded of a toolset, from which `resolve_toolset` makes it again. Never holds the value of a secret."""

    name: str
    """The name of a factory (see `register_toolset`), which need not be the toolset's own name."""
    params: dict[str, JsonValue] = {}
    """What the factory is called with, by name."""
