"""Saving the files of the workspace, and bringing them back: one of these at a time, and never while calls run.

Above: the driver, for a turn (`core.files` is held while it works); a job, for a person; opening, after a crash. Below: the
workspace, in which one program does it. The log says what is saved, and what is still to be brought back.
"""

from __future__ import annotations

from typing import Final

from agentcore.conversation.core import Core
from agentcore.conversation.decide import REWOUND
from agentcore.errors import WorkspaceError, WorkspaceLost
from agentcore.events import (
    ContextNotice,
    ConversationStateUpdateEvent,
    MessageEvent,
    ObservationEvent,
    WorkspaceCheckpointed,
    WorkspaceRestored,
)
from agentcore.logs import get_logger
from agentcore.messages import Message
from agentcore.record.checkpoints import last_change
from agentcore.workspace.checkpoints import RestoredFiles, restore_files, save_files

_log = get_logger(__name__)

_RESTORED: Final = (
    "The conversation was taken back to this point, and the files of the project with it: they are as they were then. "
    "Not so what git ignores and what is outside the project: that is as the steps that were taken back left it, and "
    "what they started may still run."
)
_OLDER: Final = " The files were saved before the last {calls} above: what those changed is not in them."
_FAILED: Final = " Their files were to be brought back, and that failed: {error}"


async def checkpoint(core: Core) -> WorkspaceCheckpointed:
    """Save the files because somebody asks: at once, or when the calls under way have ended.

    Raises:
        WorkspaceError: They cannot be saved.
    """
    return await core.jobs.do(lambda: _save_when_free(core), name="checkpoint", finish=False)


async def checkpoint_before_restore(core: Core) -> None:
    """Save the files because others are about to be brought back, so that these can be gone back to.

    Raises:
        WorkspaceError: They cannot be saved.
    """
    await core.jobs.do(lambda: _save_when_free(core, before_restore=True), name="checkpoint", finish=False)


async def checkpoint_if_settled(core: Core) -> None:
    """Save the files where the conversation is to do so by itself, and they may have changed. The lock is held.

    What fails is a notice, the first time: a run does not end over it.
    """
    state = core.state
    if state.checkpoints.when != "settled" or core.checkpoint_failed:
        return
    branch = state.branch_events()
    newest = state.checkpoints.find(branch)
    if newest is not None and newest.cause == last_change(branch).id:
        return
    try:
        await _save(core, unless=newest)
    except WorkspaceLost:
        raise
    except WorkspaceError as error:
        core.checkpoint_failed = True
        detail = f"{error} Files are not saved by themselves any more while the conversation is open."
        notice = ContextNotice(name="checkpoints", code="checkpoint_failed", detail=detail)
        await core.journal.write(ConversationStateUpdateEvent(update=notice))


async def _save_when_free(core: Core, *, before_restore: bool = False) -> WorkspaceCheckpointed:
    async with core.files:
        await restore_if_due(core)
        saved = await _save(core, before_restore=before_restore)
    assert saved is not None
    return saved


async def _save(
    core: Core, *, unless: WorkspaceCheckpointed | None = None, before_restore: bool = False
) -> WorkspaceCheckpointed | None:
    """Save the files and record that; None where they are those of `unless`."""
    state = core.state
    cause = None if before_restore else last_change(state.branch_events()).id
    core.has_checkpoints = True
    saved = await save_files(core.workspace, state.conversation_id)
    if unless is not None and unless.checkpoint == saved.id:
        return None
    event = WorkspaceCheckpointed(
        cause=cause,
        checkpoint=saved.id,
        store=state.conversation_id,
        files=saved.files,
        left_out=tuple(f"{each.path} ({each.reason})" for each in saved.left_out),
    )
    kept = await core.journal.write(event)
    return next(each for each in kept or () if isinstance(each, WorkspaceCheckpointed))


async def restore(core: Core) -> None:
    """Bring back the files that the log says are to be, as soon as nothing else is at work on them."""
    async with core.files:
        await restore_if_due(core)


async def restore_if_due(core: Core) -> None:
    """Bring back the files that the log says are to be, and let the model read that. The lock is held.

    What cannot be brought back is recorded, and not tried again. Where the place itself is lost, it stays to be done.

    Raises:
        WorkspaceLost: The place is gone.
        ConnectionLost: The server of the workspace cannot be reached.
    """
    state = core.state
    due = state.checkpoints.due
    if due is None:
        return
    saved = state.checkpoints.named(due.checkpoint)
    done, failure = RestoredFiles(written=0, removed=0), None
    if saved is None:
        failure = "The log does not have the checkpoint."
    else:
        try:
            done = await restore_files(core.workspace, state.conversation_id, saved.checkpoint, saved_in=saved.store)
        except WorkspaceLost:
            raise
        except WorkspaceError as error:
            failure = str(error)
            _log.warning("files not restored", error=failure)
    text = (
        REWOUND + _FAILED.format(error=failure)
        if failure is not None
        else _RESTORED + _what_is_older(core, saved, due.to)
    )
    await core.journal.write_shielded(
        WorkspaceRestored(
            cause=due.id,
            checkpoint=due.checkpoint or "",
            written=done.written,
            removed=done.removed,
            error=failure,
        ),
        MessageEvent(source="environment", message=Message.user(text), code="rewound"),
        condition=lambda now: now.checkpoints.due is due,
    )


def _what_is_older(core: Core, saved: WorkspaceCheckpointed | None, to: int) -> str:
    """Return the sentence about calls on the branch that came after the files were saved."""
    behind = 0
    for event in reversed(core.state.branch_events(to)):
        if saved is None or event.id in (saved.id, saved.cause):
            break
        behind += isinstance(event, ObservationEvent)
    return _OLDER.format(calls="call" if behind == 1 else f"{behind} calls") if behind else ""
