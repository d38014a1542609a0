"""The end of a turn: from the moment its last event is on its way, commands wait until it is over.

Who watches the log may act on that event before the turn's own task goes on. Such a command must not count on a turn
that does nothing any more: an approval would start nothing, and a run would join what has ended.
"""

from __future__ import annotations

from agentcore.conversation.core import Core, Turn
from agentcore.conversation.journal import Condition
from agentcore.events import Event

__all__ = ["settle", "turn_under_way"]


async def settle(core: Core, turn: Turn, *events: Event, condition: Condition | None = None) -> bool:
    """Write what ends the turn; say whether it was kept. Where the condition does not hold, the turn goes on."""
    turn.settling = True
    kept = await core.journal.write(*events, condition=condition)
    turn.settling = kept is not None
    return turn.settling


async def turn_under_way(core: Core) -> Turn | None:
    """Give the turn that works or is about to, once one that is ending has ended."""
    while (turn := core.turn) is not None and turn.settling:
        await turn.done.wait()
    return core.turn
