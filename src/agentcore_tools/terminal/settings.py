"""What a terminal can be told when it is made."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from typing import Annotated

from pydantic import Field

from agentcore._value import Value
from agentcore_tools._output import WHOLE_BYTES
from agentcore_tools.terminal.shell import TYPE_SECONDS

__all__ = ["TerminalSettings"]

_Seconds = Annotated[float, Field(gt=0)]


class TerminalSettings(Value):
    """How patient a terminal is, and how much there is of what."""

    quiet_seconds: _Seconds = 30.0
    """How long a command may be silent before the answer comes without its end."""
    input_seconds: _Seconds = 3.0
    """The same, for a command that something was typed into."""
    type_seconds: _Seconds = TYPE_SECONDS
    """How long what is typed may wait to be taken."""
    keep_bytes: Annotated[int, Field(ge=0)] = WHOLE_BYTES
    """How much of one command's output is kept on disk: its beginning."""
    sessions: Annotated[int, Field(ge=1)] = 8
    """How many shells there may be at once."""
    overlap: bool = False
    """Whether commands in different sessions may run at once."""
