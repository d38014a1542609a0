"""Abilities of some workspaces: protocols of their own, so that a plain folder need not meet them.

Above: the conversation and the tools, which ask with `isinstance`. Below: boxes, which outlive the program that uses them and
have limits of their own. `RecordableWorkspace` and `record_workspace`, which a folder meets too, are in `values`.
"""

from __future__ import annotations

from typing import Final, Protocol, runtime_checkable

from agentcore.workspace.protocol import Workspace

KILLED: Final = 137
"""The exit code of a command that was killed: 128 and the number of SIGKILL."""


@runtime_checkable
class Fenceable(Protocol):
    """A workspace in which an earlier opening of the conversation may still run something. A workspace need not be one."""

    async def fence(self, epoch: int, owner: str) -> None:
        """Take the workspace over from earlier openings: what they started elsewhere is ended before this returns.

        Called whenever a conversation is opened in it, before anything is answered or started. The same epoch again is fine.
        Epochs of different owners are not compared: several conversations may use one workspace.

        Args:
            epoch: How often the conversation's log was opened for writing (`EventLog.epoch`); a later opening has a higher one.
            owner: The id of the conversation.

        Raises:
            WorkspaceLost: a later opening of this owner has taken it over (reason "fenced"), or the place is gone.
        """
        ...


@runtime_checkable
class ExplainsKills(Protocol):
    """A workspace that knows why a command in it was killed. A workspace need not be one."""

    async def explain_kill(self) -> str | None:
        """Return a sentence about the command that was killed last, as that the memory was used up; None where it was not that.

        Asked once, right after a command ended with the code 137. Bounded; it raises nothing.
        """
        ...


@runtime_checkable
class Labelled(Protocol):
    """A workspace made of things that people find by their labels, as a container is. A workspace need not be one."""

    def label(self, conversation: str, epoch: int) -> None:
        """Note which conversation enters it, in which of its openings; called before that. What is labelled by the program stays so."""
        ...


async def fence_workspace(workspace: Workspace, epoch: int, owner: str) -> None:
    """Take a workspace over for this opening of a conversation, where that is a thing it knows.

    Raises:
        WorkspaceLost: see `Fenceable.fence`.
    """
    if isinstance(workspace, Fenceable):
        await workspace.fence(epoch, owner)


async def explain_exit(workspace: Workspace, exit_code: int | None) -> str | None:
    """Return a sentence that says why a command ended with this code, where that is more than the code says."""
    if exit_code == KILLED and isinstance(workspace, ExplainsKills):
        return await workspace.explain_kill()
    return None
