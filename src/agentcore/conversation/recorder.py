"""The recorder: the one task that appends to the log and folds it.

It is never cancelled. It ends when the drafts are closed and none is left, so that nothing that was handed over is lost;
each of its appends is bounded by the store. No code of a user runs here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio
from anyio import get_cancelled_exc_class

from agentcore.conversation.journal import Draft, Drafts
from agentcore.conversation.watch import Bell
from agentcore.errors import StoreError
from agentcore.record import EventLog

__all__ = ["keep_record"]

_MOST = 256
"""Drafts in one write: a bound on how long the first one waits for the last."""


async def keep_record(drafts: Drafts, log: EventLog, bell: Bell, on_failure: Callable[[StoreError], None]) -> None:
    """Keep what comes, all that is waiting in one write, until the drafts are closed.

    After a failed write nothing is tried again: everybody who waits, and whoever comes later, gets the error.
    """
    failure: StoreError | None = None
    with anyio.CancelScope(shield=True):
        while waiting := await _next(drafts):
            for batch in _batches(waiting):
                if failure is None:
                    try:
                        await _keep(batch, log)
                    except BaseException as error:  # noqa: ASYNC103 an error of the store is told to all writers; what is none leaves
                        failure = _store_error(error, log)
                        on_failure(failure)
                        if not isinstance(error, Exception):
                            # The end of the process, most likely. Nobody may be left waiting behind a shield.
                            drafts.close()
                            while waiting:
                                _tell(waiting, failure)
                                waiting = drafts.take_nowait(_MOST)
                            raise
                _tell(batch, failure)
                bell.ring()


async def _next(drafts: Drafts) -> list[Draft]:
    """Wait for drafts; none when there will be no more."""
    waiting: list[Draft] | None = None
    while waiting is None:
        try:
            waiting = await drafts.take(_MOST)
        except get_cancelled_exc_class():  # noqa: ASYNC103 not that of a scope: those can't come in
            # asyncio cancels each task of a loop that something has stopped. What they still write is kept.
            continue  # noqa: ASYNC104 the same
    return waiting


def _store_error(error: BaseException, log: EventLog) -> StoreError:
    if isinstance(error, StoreError):
        return error
    failure = StoreError(f"The log of {log.state.conversation_id!r} could not be kept: {error!r}")
    failure.__cause__ = error
    return failure


def _tell(drafts: Sequence[Draft], failure: StoreError | None) -> None:
    for draft in drafts:
        if not draft.done.is_set():
            draft.error = failure
            draft.done.set()


def _batches(drafts: Sequence[Draft]) -> list[list[Draft]]:
    """Cut before each draft with a condition: it is decided on the state that the earlier ones made."""
    batches: list[list[Draft]] = []
    for draft in drafts:
        if not batches or draft.condition is not None:
            batches.append([])
        batches[-1].append(draft)
    return batches


async def _keep(batch: list[Draft], log: EventLog) -> None:
    if (condition := batch[0].condition) is not None and not condition(log.state):
        batch = batch[1:]
    if batch:
        for draft, kept in zip(batch, await log.append([draft.events for draft in batch]), strict=True):
            draft.kept = kept
