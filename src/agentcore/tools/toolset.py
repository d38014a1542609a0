"""Tools that come together and are open while a conversation is: an MCP server's, a browser's, those of a remote catalogue.

Below: tools. Above: the wrappers (`prefixed`, `filtered`, `renamed`), and the conversation, which opens a toolset once, in
a task of its own. A `Toolset` is a value that holds nothing; what is live is the `OpenToolset` that it opens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from agentcore.tools.context import ToolSecrets
from agentcore.tools.definition import AnyTool
from agentcore.tools.spec import ToolsetSpec
from agentcore.workspace import Workspace

__all__ = ["OpenToolset", "Toolset", "ToolsetContext"]


@dataclass(frozen=True, kw_only=True, eq=False)
class ToolsetContext:
    """Handed to a toolset when it is opened."""

    workspace: Workspace
    """Where the conversation works: `workspace.root` is its folder, and processes are started through it."""
    conversation_id: str
    secrets: ToolSecrets = field(repr=False)
    """`await context.secrets.get(name)`; what is read here is masked in what tools say and in what is recorded."""
    notice: Callable[[str], None] = field(repr=False)
    """Notify the people, not the model: the text is logged, and recorded with the next message. Never waits."""
    open_seconds: float = 30.0
    """How long the conversation waits for the opening. One that takes longer goes on, and its tools come with the next message."""


class OpenToolset(Protocol):
    """A toolset that is open. All of it is called in the conversation's event loop."""

    @property
    def instructions(self) -> str | None:
        """A text for the system prompt on the tools as a whole, or None."""
        ...

    def tools(self) -> Sequence[AnyTool]:
        """Return the tools as of now, bound to this opening. Never waits: a list that has to be fetched is fetched before.

        Return the same `Tool` object for a tool that has not changed: its schema is made once.
        """
        ...

    async def wait_closed(self) -> str:
        """Wait until it is of no use any more (the connection broke, the process ended), and return why.

        A toolset that cannot end by itself waits for ever (`anyio.sleep_forever`).
        """
        ...


@runtime_checkable
class Toolset(Protocol):
    """A source of tools: `Agent(tools=[my_tool, my_toolset])`. One value serves any number of conversations at once."""

    @property
    def name(self) -> str:
        """Its name for people, in notices and errors."""
        ...

    @property
    def session_key(self) -> str | None:
        """Equal keys may share one opening some day (the conversations of a host, sub-agents). None: each has its own."""
        ...

    def record(self) -> ToolsetSpec | None:
        """Return what `resolve_toolset` makes it again from: plain data, names of secrets and never their values. None: it can't be."""
        ...

    def open(self, context: ToolsetContext, /) -> AbstractAsyncContextManager[OpenToolset]:
        """Open it for one conversation. One task enters and leaves the context, so task groups may be held open inside.

        When it ends by itself (see `OpenToolset.wait_closed`) it is left, and opened again after a delay.
        """
        ...
