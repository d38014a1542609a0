"""The contract of every conversation, as tests: subclass it where what holds your conversations is tested.

Above: a subclass with a place of its own. Below: the parts of the contract, a file for each.
"""

from __future__ import annotations

from agentcore.testing.conversation_decisions_contract import DecisionsContract
from agentcore.testing.conversation_history_contract import HistoryContract
from agentcore.testing.conversation_runs_contract import RunsContract
from agentcore.testing.conversation_watching_contract import WatchingContract


class ConversationContract(RunsContract, WatchingContract, DecisionsContract, HistoryContract):
    """The behaviour that all conversations share, as async tests for pytest with anyio's plugin (`anyio_mode = "auto"`).

    A subclass has a fixture `place`, a `ConversationPlace` of its own for each test. It makes the models (in the process, or
    at a provider that `serve_provider` serves), opens conversations, and reads their logs beside them. Where a conversation
    is held elsewhere, each call of its handle returns once the state that the handle folds has what the call wrote.

        class MyPlace:
            def __init__(self, provider, url):
                self.provider, self.url = provider, url

            def model(self, replies):
                name = self.provider.add_script(replies)
                return LLM(f"openai/{name}", base_url=self.provider.base_url, api_key="none", num_retries=0)

            def open(self, agent, **options):
                return Conversation(agent, workspace=RemoteWorkspace(self.url), **options)

            async def read_state(self, conversation_id):
                ...

        class TestMyConversations(ConversationContract):
            @pytest.fixture
            async def place(self):
                async with serve_provider([]) as provider, my_server() as url:
                    yield MyPlace(provider, url)
    """
