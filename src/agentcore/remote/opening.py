"""Opening a conversation on a server: what of a program's arguments travels there, and what stays here.

An agent of the program's travels as its record, with the key of its model. Tools that the server has too are named; others
run in this process, and so do callbacks and functions that give secrets.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import cast
from urllib.parse import quote

from pydantic import SecretStr

from agentcore.conversation.exceptions import open_group
from agentcore.conversation.link import Link
from agentcore.conversation.setup import Setup
from agentcore.errors import ConversationError, ConversationNotFound
from agentcore.ids import new_conversation_id, new_id
from agentcore.remote.agents import describe_tool, divide_tools, make_client_agent
from agentcore.remote.client import ServerClient
from agentcore.remote.follower import Follower
from agentcore.remote.link import RemoteLink
from agentcore.remote.parts import RemoteParts
from agentcore.security import Checks, is_checks, record_checks
from agentcore.tools import AnyTool
from agentcore.wire.requests import ClientAgent, ConversationInfo, ConversationSpec, Version
from agentcore.workspace import Workspace


@asynccontextmanager
async def open_remote(
    client: ServerClient, workspace: Workspace, workspace_id: str | None, setup: Setup, *, profile: str | None
) -> AsyncGenerator[Link]:
    """Open a conversation on a server, and follow it for as long as the block lasts.

    Args:
        client: The server.
        workspace: Where the agent works, as tools that run here see it.
        workspace_id: Its id there; None is where the conversation worked.
        setup: The arguments of the conversation.
        profile: The server's agent to work with, where the program has none.

    Raises:
        ConversationError: A part of the arguments cannot be used with a server.
        AgentcoreError: What the server refuses, with the error of its kind.
    """
    if setup.store is not None:
        raise ConversationError(f"The server at {client.url} keeps the log of its conversations: leave out store=.")
    version = Version.model_validate_json((await client.request("GET", "version")).content)
    agent: str | ClientAgent | None = profile
    tools: list[AnyTool] = []
    if setup.agent is not None:
        there, tools = divide_tools(setup.agent, version)
        agent = make_client_agent(setup.agent, there)
    spec = _make_spec(setup, agent, tools, workspace_id)
    follower = Follower(setup.id or new_conversation_id(), setup.agent)
    parts = RemoteParts(setup, tools, version, client, follower)
    link = RemoteLink(client, follower, workspace, spec, parts, client_id=new_id("client"))
    async with open_group() as tasks:
        await tasks.start(link.serve, name="remote conversation")
        try:
            yield link
        finally:
            await link.close()  # noqa: ASYNC102 shielded and bounded there


async def find_workspace(client: ServerClient, conversation_id: str) -> str | None:
    """Return the id of the workspace that a conversation has; None where there is no such conversation."""
    try:
        response = await client.request("GET", f"conversations/{quote(conversation_id, safe='')}")
    except ConversationNotFound:
        return None
    return ConversationInfo.model_validate_json(response.content).workspace


def _make_spec(
    setup: Setup, agent: str | ClientAgent | None, tools: Sequence[AnyTool], workspace_id: str | None
) -> ConversationSpec:
    secrets = setup.secrets or {}
    confirm = setup.confirm
    has_policy = confirm is not None and is_checks(confirm)
    return ConversationSpec(
        agent=agent,
        workspace=workspace_id,
        limits=setup.limits,
        policy=record_checks(cast("Checks", confirm)) if has_policy else None,
        secrets={name: SecretStr(source) for name, source in secrets.items() if isinstance(source, str)},
        client_secrets=tuple(name for name, source in secrets.items() if not isinstance(source, str)),
        tools=tuple(describe_tool(tool) for tool in tools),
        confirm=confirm is not None and not has_policy,
        on_question=setup.on_question is not None,
        attended=setup.attended,
        checkpoints=setup.checkpoints,
    )
