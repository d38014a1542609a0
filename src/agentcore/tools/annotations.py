"""What a tool says of itself, in the words of the Model Context Protocol."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from agentcore._value import Value

__all__ = ["ToolAnnotations"]


class ToolAnnotations(Value):
    """Hints of what a tool does to the world. They are the tool's own word, not a guarantee."""

    title: str | None = None
    """A name for people."""
    read_only: bool = False
    """It changes nothing. It may be run again after a crash, and beside other tools that only read."""
    destructive: bool = True
    """It may overwrite or delete; of no meaning where it only reads."""
    idempotent: bool = False
    """Doing it twice with the same arguments is doing it once."""
    open_world: bool = True
    """It reaches beyond the workspace: the network, other people's services."""
