"""A piece of a reply, or of a tool's output, while it comes.

Above: the conversation, which publishes deltas, and the wire, which carries them. Not an event: it is never stored.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from typing import Literal

from pydantic import ConfigDict

from agentcore._value import Value, Verbatim


class StreamDelta(Value):
    """A piece of what is being said."""

    # A newer server may say more about a piece.
    model_config = ConfigDict(extra="ignore")

    type: Literal["text", "reasoning", "tool_call", "progress", "reset", "gap"]
    """"progress" is the output of a tool that runs; "reset" voids the reply so far (a retry or an interrupt); "gap"
    says that this subscriber was too slow and `text` pieces are missing before this point."""
    reply_id: Verbatim | None = None
    """The reply that this is a piece of."""
    attempt: int = 1
    """Which attempt at the reply, from 1."""
    offset: int = 0
    """Where the piece begins, in characters of its type, within its attempt."""
    text: str = ""
    tool_name: str | None = None
    """Of a tool call that begins, or of progress."""
    action_id: Verbatim | None = None
    """Of progress: the action that runs."""
    lost: int = 0
    """Of a gap: how many pieces are missing."""
