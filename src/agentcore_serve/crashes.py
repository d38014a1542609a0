"""After a crash: which conversations go on by themselves, and which stay paused because they do not get anywhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from agentcore.errors import AgentcoreError
from agentcore.events import ConversationStatus
from agentcore.logs import get_logger
from agentcore.record import ConversationState
from agentcore_serve.records import ConversationRecords, ConversationRow
from agentcore_serve.refused import Refused
from agentcore_serve.served import Served

_log = get_logger(__name__)


def was_cut_off(state: ConversationState) -> bool:
    """Return whether a conversation worked when its process ended, and did nothing since."""
    recovered = state.status_code == "recovered"
    return state.status is ConversationStatus.RUNNING or (recovered and state.status is ConversationStatus.PAUSED)


async def continue_cut_off(
    row: ConversationRow,
    records: ConversationRecords,
    open_it: Callable[[ConversationRow], Awaitable[Served]],
    room_to_run: Callable[[], Awaitable[None]],
    restarts: int,
) -> bool:
    """Go on with a conversation that was open when the server was killed; return whether it works again.

    It stays paused after `restarts` crashes without a new reply of its model: it may be what crashes the server.
    """
    try:
        served = await open_it(row)
        if not was_cut_off(served.state):
            return False
        last_reply = 0 if served.state.last_step is None else served.state.last_step.seq
        count = row.restarts + 1 if last_reply == row.last_reply else 1
        if count > restarts:
            _log.warning("not continued", conversation=row.id, restarts=row.restarts)
            return False
        # Before it goes on: a crash right behind this counts.
        await records.update(row.id, restarts=count, last_reply=last_reply)
        await room_to_run()
        await served.conversation.start()
    except (AgentcoreError, Refused, OSError) as error:
        _log.warning("not continued", conversation=row.id, error=str(error))
        return False
    _log.info("continued", conversation=row.id, restarts=count)
    return True
