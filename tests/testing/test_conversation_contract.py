"""The contract of conversations holds for those of this process, with a scripted model and with a provider over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from agentcore import Agent, Conversation, FileStore, MemoryStore
from agentcore.llm import LLM, Model
from agentcore.record import ConversationState, Store, read_log
from agentcore.testing import ChatProvider, ConversationContract, ConversationPlace, ScriptedLLM, serve_provider
from agentcore.testing.conversation_place import ScriptLines


class Here:
    """Conversations of this process."""

    def __init__(self, store: Store, folder: Path, provider: ChatProvider | None = None) -> None:
        self.store = store
        self.folder = folder
        self.provider = provider

    def model(self, replies: ScriptLines) -> Model:
        if self.provider is None:
            return ScriptedLLM(replies)
        name = self.provider.add_script(replies)
        return LLM(f"openai/{name}", base_url=self.provider.base_url, api_key="none", num_retries=0)

    def open(self, agent: Agent | None, **options: Any) -> AbstractAsyncContextManager[Conversation]:
        return Conversation(agent, self.folder, store=self.store, **options)

    async def read_state(self, conversation_id: str) -> ConversationState:
        return await read_log(self.store, conversation_id)


class TestInMemory(ConversationContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> ConversationPlace:
        return Here(MemoryStore(), tmp_path)


@pytest.mark.slow
class TestInFilesWithAProvider(ConversationContract):
    @pytest.fixture
    async def place(self, tmp_path: Path) -> AsyncGenerator[ConversationPlace]:
        async with serve_provider([]) as provider:
            yield Here(FileStore(tmp_path / "logs", durability="flush"), tmp_path, provider)
