"""After a crash or a stop: which conversations go on by themselves, which wait for their client, and which stay paused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from agentcore.errors import AgentcoreError
from agentcore.events import DRAINED, ConversationStatus
from agentcore.logs import get_logger
from agentcore.record import ConversationState
from agentcore.wire.requests import ConversationSpec
from agentcore_serve.locks import NamedLocks
from agentcore_serve.records import ConversationRecords, ConversationRow
from agentcore_serve.refused import Refused
from agentcore_serve.served import Served

_log = get_logger(__name__)


def was_cut_off(state: ConversationState) -> bool:
    """Return whether a conversation worked when its server ended, and did nothing since."""
    return state.status is ConversationStatus.PAUSED and state.status_code in ("recovered", DRAINED)


def needs_client(row: ConversationRow) -> bool:
    """Return whether its client brings what is in memory only: the key of its model, or the values of secrets."""
    return row.profile is None or bool(ConversationSpec.model_validate_json(row.spec).secrets)


class CutOff:
    """The conversations that were open when the server ended: each goes on once, by itself or when its client is back.

    Args:
        rows: All rows as they were when the server started.
        records: They are changed here.
        open_it: Opens a conversation.
        room_to_run: Waits until one more may work.
        restarts: How often one goes on without a new reply of its model in between: it may be what crashes the server.
    """

    def __init__(
        self,
        rows: Sequence[ConversationRow],
        records: ConversationRecords,
        open_it: Callable[[ConversationRow], Awaitable[Served]],
        room_to_run: Callable[[], Awaitable[None]],
        restarts: int,
    ) -> None:
        self._rows = {row.id: row for row in rows if row.is_open}
        self._records = records
        self._open_it = open_it
        self._room_to_run = room_to_run
        self._restarts = restarts
        self._locks = NamedLocks()

    async def continue_all(self) -> None:
        """Go on with all that need no client."""
        for row in tuple(self._rows.values()):
            if not needs_client(row):
                await self.continue_one(row.id)

    async def continue_one(self, conversation_id: str) -> None:
        """Go on with a conversation, where that is still to be done. When this returns, its status says what came of that."""
        if conversation_id not in self._rows:
            return
        async with self._locks.hold(conversation_id):
            row = self._rows.get(conversation_id)
            if row is not None and await self._continue(row):
                del self._rows[conversation_id]

    @property
    def waiting(self) -> Sequence[str]:
        """The ids of those that are still to go on."""
        return tuple(self._rows)

    async def _continue(self, row: ConversationRow) -> bool:
        """Go on where that is right; return False where it is still to be done: there is no room, or the server ends."""
        try:
            served = await self._open_it(row)
            if not was_cut_off(served.state):
                return True
            last_reply = 0 if served.state.last_step is None else served.state.last_step.seq
            count = row.restarts + 1 if last_reply == row.last_reply else 1
            if served.state.status_code == DRAINED:
                count = min(count, self._restarts)  # it did not crash the server
            if count > self._restarts or not self._restarts:
                _log.warning("not continued", conversation=row.id, restarts=row.restarts)
                return True
            # Before it goes on: a crash right behind this counts.
            await self._records.update(row.id, restarts=count, last_reply=last_reply)
            await self._room_to_run()
            if was_cut_off(served.state):  # nobody else had it go on meanwhile
                await served.conversation.start()
        except (AgentcoreError, Refused, OSError) as error:
            _log.warning("not continued", conversation=row.id, error=str(error))
            return not (isinstance(error, Refused) and error.status == 503)
        _log.info("continued", conversation=row.id, restarts=count)
        return True
