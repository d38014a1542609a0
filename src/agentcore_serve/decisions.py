"""Approvals and questions that a client's callbacks decide about: here they only wait.

Above: the hub, which opens a conversation with these as `confirm=` and `on_question=` where its client has such callbacks. The
client sees in the state that an action or a question waits, calls its callback, and sends the decision as a command. The
conversation then withdraws its own question, which is what ends the waiting here.
"""

from __future__ import annotations

from typing import Final, final

import anyio

from agentcore.conversation import Declined
from agentcore.events import QuestionAsked
from agentcore.security import RatedAction
from agentcore_serve.asks import ClientAsks

_NOBODY: Final = "There is nobody to ask now. Go on without the answer, and say what you assumed."


@final
class ClientDecisions:
    """Waits for what the clients of one conversation decide."""

    def __init__(self, clients: ClientAsks) -> None:
        self._clients = clients

    async def confirm(self, action: RatedAction) -> bool:
        """Wait until the action was decided on elsewhere. It stays pending for as long as nobody comes."""
        del action
        await anyio.sleep_forever()
        raise AssertionError("sleep_forever returned")

    async def on_question(self, question: QuestionAsked) -> Declined:
        """Wait until the question was answered elsewhere; decline one that a call waits for once no client is left."""
        if not question.live:
            await anyio.sleep_forever()
        await self._clients.gone()
        return Declined(_NOBODY)
