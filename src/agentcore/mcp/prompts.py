"""Prompts of MCP servers, called by the user: a message that begins with `/mcp__server__prompt`.

Above: agents that name the source, `AgentContext(sources=[MCPPrompts()])`. A source of context knows no toolset, so the servers that
are open in a workspace are listed here, by the toolsets that hold them open.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol, final

from agentcore.context import ContextPart, Happened, SourceContext, SourceSpec
from agentcore.errors import AgentcoreError
from agentcore.workspace import Workspace

_CALL: Final = re.compile(r"\s*/(mcp__[\w-]{1,59})(?:[ \t]+([^\n]*))?(?:\n|\Z)")


class OffersPrompts(Protocol):
    """A server that is open."""

    async def read_prompt(self, name: str, words: str) -> str | None:
        """Return the text of the prompt of this name, with the arguments in the words behind it; None where it has none.

        Raises:
            AgentcoreError: An argument is missing, or the server refused.
        """
        ...


_open: Final[list[tuple[Workspace, OffersPrompts]]] = []


@contextmanager
def offered(workspace: Workspace, server: OffersPrompts) -> Generator[None]:
    """List a server while it is open."""
    entry = workspace, server
    _open.append(entry)
    try:
        yield
    finally:
        _open[:] = [each for each in _open if each is not entry]


@final
@dataclass(frozen=True)
class MCPPrompts:
    """The prompts of the MCP servers that are open in a conversation: `/mcp__server__prompt name=value` in a user's message.

    A source of context. The text of the prompt is shown after the message. Values with spaces are quoted; values without a name
    are the prompt's arguments in their order.
    """

    @property
    def name(self) -> str:
        """The name in errors and events."""
        return "MCP prompts"

    async def open(self, context: SourceContext) -> OpenPrompts:
        """Wait for messages; nothing is read before."""
        return OpenPrompts(context.workspace)

    def record(self) -> SourceSpec:
        """Return the source as a log holds it."""
        return SourceSpec(name="mcp_prompts")


@final
class OpenPrompts:
    """The prompts of one conversation."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._problems: list[str] = []

    @property
    def parts(self) -> Sequence[ContextPart]:
        """Nothing: a prompt is shown when it is called."""
        return ()

    @property
    def problems(self) -> Sequence[str]:
        """The calls that failed."""
        return tuple(self._problems)

    async def follow(self, happened: Happened) -> Sequence[ContextPart]:
        """Return the prompts that messages call."""
        calls = [found for message in happened.messages if (found := _CALL.match(message)) is not None]
        texts = [(call[1], await self._read(call[1], call[2] or "")) for call in calls]
        return [ContextPart(f"prompt:{name}", text) for name, text in texts if text]

    async def _read(self, name: str, words: str) -> str | None:
        # The newest first: another conversation may work in the same place with the same servers.
        for workspace, server in reversed(_open):
            if workspace is self._workspace:
                try:
                    text = await server.read_prompt(name, words)
                except AgentcoreError as error:
                    self._problems.append(f"/{name}: {error}")
                    return None
                if text is not None:
                    return text
        self._problems.append(f"/{name}: no MCP server that is open has such a prompt.")
        return None
