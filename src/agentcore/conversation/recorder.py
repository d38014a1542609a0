"""The recorder: the one task that appends to the log and folds it.

It is never cancelled. It ends when nothing more is taken in and nothing is left, so that nothing that was handed over is
lost; each of its appends is bounded by the store. No code of a user runs here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import anyio
from anyio import get_cancelled_exc_class

from agentcore.commands import Receipt
from agentcore.conversation.decide import decide
from agentcore.conversation.journal import Decision, Draft, Intake
from agentcore.errors import StoreError
from agentcore.events import Event
from agentcore.record import ConversationState, EventLog
from agentcore.secrets import SecretRegistry

_MOST = 256
"""Items in one write: a bound on how long the first one waits for the last."""


class RecordListener(Protocol):
    """Who acts on what the log says, at once: nothing comes between a fold and this."""

    def recorded(self, decisions: Sequence[Decision]) -> None:
        """Act on a group commit: put these commands in force, begin and end turns, wake who watches."""
        ...

    def failed(self, error: StoreError) -> None:
        """End everything: the log is dead."""
        ...


async def keep_record(intake: Intake, log: EventLog, secrets: SecretRegistry, listener: RecordListener) -> None:
    """Keep what comes, all that is waiting in one write, until nothing more is taken in.

    After a failed write nothing is tried again: every caller, waiting or later, gets the error.
    """
    failure: StoreError | None = None
    with anyio.CancelScope(shield=True):
        while waiting := await _next(intake):
            for batch in _batches(waiting):
                if failure is None:
                    try:
                        await _keep(batch, log, secrets)
                        listener.recorded([item for item in batch if isinstance(item, Decision) and item.error is None])
                    except BaseException as error:  # noqa: ASYNC103 an error of the store goes to all writers; anything else leaves
                        failure = _store_error(error, log)
                        listener.failed(failure)
                        if not isinstance(error, Exception):
                            # The end of the process, most likely. Nobody may be left waiting behind a shield.
                            intake.close()
                            while waiting:
                                _finish(waiting, failure)
                                waiting = intake.take_nowait(_MOST)
                            raise
                _finish(batch, failure)


async def _next(intake: Intake) -> list[Draft | Decision]:
    """Wait for items; none when there will be no more."""
    while True:  # noqa: ASYNC913 it is never cancelled
        try:
            return await intake.take(_MOST)
        except get_cancelled_exc_class():  # noqa: ASYNC103 not that of a scope: those can't come in
            # asyncio cancels each task of a loop that something has stopped. What they still write is kept.
            continue  # noqa: ASYNC104 the same


def _store_error(error: BaseException, log: EventLog) -> StoreError:
    if isinstance(error, StoreError):
        return error
    failure = StoreError(f"The log of {log.state.conversation_id!r} could not be kept: {error!r}")
    failure.__cause__ = error
    return failure


def _finish(items: Sequence[Draft | Decision], failure: StoreError | None) -> None:
    for item in items:
        if not item.done.is_set():
            item.error = item.error or failure
            item.done.set()


def _batches(items: Sequence[Draft | Decision]) -> Iterator[list[Draft | Decision]]:
    """Cut before each item that depends on the state, and before a command that comes twice: it finds the first one done."""
    batch: list[Draft | Decision] = []
    ids: set[str] = set()
    for item in items:
        command_id = item.command.id if isinstance(item, Decision) else ""
        if batch and (item.depends_on_state or command_id in ids):
            yield batch
            batch, ids = [], set()
        batch.append(item)
        if command_id:
            ids.add(command_id)
    if batch:
        yield batch


async def _keep(batch: Sequence[Draft | Decision], log: EventLog, secrets: SecretRegistry) -> None:
    """Append what the items of a batch come to, in one write, and give each of them its share."""
    state = log.state
    groups: list[Sequence[Event]] = []
    writers: list[Draft | Decision] = []
    for item in batch:
        events = item.resolve(state) if isinstance(item, Draft) else _decide(item, state, secrets)
        if events:
            groups.append(events)
            writers.append(item)
    kept = await log.append(groups) if groups else []
    for item, events in zip(writers, kept, strict=True):
        if isinstance(item, Draft):
            item.kept = events
    for item in batch:
        if isinstance(item, Decision) and item.error is None:
            item.receipt = state.receipt(item.command.id) or Receipt(seq=state.head, run=state.run.seq)


def _decide(decision: Decision, state: ConversationState, secrets: SecretRegistry) -> Sequence[Event]:
    """Return the events of a command: none if the log knows it already, or it is refused."""
    command, masker = decision.command, secrets.masker
    if state.receipt(command.id) is not None:
        return ()
    try:
        events = decide(command, state)
        if events and decision.attachment.tail is not None:
            events = [*events, *decision.attachment.tail(state)]
    except Exception as error:
        decision.error = error
        return ()
    return [masker.mask_event(event) for event in events]
