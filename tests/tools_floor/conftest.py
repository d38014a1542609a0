"""What a tool needs around it: a host that remembers what it was asked for, and a context."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import pytest
from pydantic import JsonValue

from agentcore.record import ConversationState
from agentcore.secrets import SecretRegistry
from agentcore.tools import Medium, Spool, ToolContext
from agentcore.workspace import LocalWorkspace, Workspace


class RememberingHost:
    """Does for tools what a conversation does, and remembers it."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, ...]] = []
        self.spooled: dict[str, bytes] = {}

    async def progress(self, action_id: str, text: str) -> None:
        self.heard.append(("progress", action_id, text))

    async def send(self, text: str) -> None:
        self.heard.append(("send", text))

    async def interrupt(self) -> None:
        self.heard.append(("interrupt",))

    async def ask(self, question: str) -> str:
        self.heard.append(("ask", question))
        return question.upper()

    async def question(self, text: str, schema: Mapping[str, JsonValue] | None, options: Sequence[str]) -> JsonValue:
        self.heard.append(("question", text))
        return options[0] if options else text

    async def spool(self, name: str, data: bytes) -> str:
        self.spooled[name] = data
        return f"/private/{name}"

    async def open_spool(self, name: str, limit: int) -> Spool:
        raise NotImplementedError

    async def model_accepts(self, medium: Medium) -> bool | None:
        self.heard.append(("model_accepts", medium))
        return medium == "image"

    def last_data(self, tool_name: str) -> Mapping[str, JsonValue] | None:
        return {"of": tool_name}

    @property
    def state(self) -> ConversationState:
        return ConversationState("conversation")

    def shown_parts(self) -> Collection[str]:
        return {"skill:deploy"}


@pytest.fixture
def host() -> RememberingHost:
    return RememberingHost()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return LocalWorkspace(tmp_path)


@pytest.fixture
def new_context(host: RememberingHost, workspace: Workspace) -> Callable[[], ToolContext]:
    def make() -> ToolContext:
        return ToolContext(
            workspace=workspace,
            secrets=SecretRegistry({"TOKEN": "correct horse"}),
            conversation_id="conversation",
            action_id="ev_1",
            call_id="call_1",
            tool_name="tool",
            host=host,
        )

    return make


@pytest.fixture
def ctx(new_context: Callable[[], ToolContext]) -> ToolContext:
    return new_context()
