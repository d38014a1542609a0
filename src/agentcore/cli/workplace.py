"""Where a conversation continues: the folder or the sandbox of its log, or another one that is named.

Above: `agentcore resume` and `agentcore condense`.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import NamedTuple

from agentcore.cli.conversations import describe_box, find_folder, find_mount
from agentcore.cli.failures import UsageError
from agentcore.cli.sandbox import Kind, make_sandbox, sandbox_maker
from agentcore.cli.settings import Settings
from agentcore.record import ConversationState
from agentcore.workspace import LocalWorkspace, Workspace


class Workplace(NamedTuple):
    """Where a conversation continues."""

    place: str | Workspace | None
    """The folder or the sandbox; None for that of the log."""
    shown: str
    """Its name for people."""
    folder: str | None
    """The folder of this machine that it is, or that the sandbox has; None where it has none."""
    boxed: bool
    """True for a sandbox."""


async def find_workplace(
    state: ConversationState,
    settings: Settings,
    workspace: str | None,
    sandbox: tuple[Kind | None, str | None, str | None],
    *,
    command: str,
) -> Workplace:
    """Return where to continue.

    Args:
        state: The state of the conversation.
        settings: The settings, for the suggested command.
        workspace: The value of --workspace.
        sandbox: The values of --sandbox, --network and --sandbox-image.
        command: The command that continues, for the suggestion.

    Raises:
        UsageError: They do not go together, or the log has no folder, or it is gone.
        MissingExtra: The parts for the sandbox are not installed.
    """
    boxed = state.workspace is not None and state.workspace.workspace in ("docker", "bubblewrap")
    maker = sandbox_maker(*sandbox, labels={"conversation": state.conversation_id})
    if boxed and workspace is not None and maker is None:
        raise UsageError(
            "This conversation works in a sandbox. Name one for that folder too: --sandbox docker or --sandbox bubblewrap."
        )
    where = None if boxed and workspace is None else await find_folder(state, settings, workspace, command=command)
    if maker is not None and where is None:
        where = find_mount(state)
        if where is None:
            raise UsageError("Its sandbox had no folder of this machine. Name one with --workspace.")
    if where is None:
        return Workplace(None, describe_box(state), find_mount(state), boxed=True)
    return Workplace(where if maker is None else make_sandbox(maker, where), where, where, boxed=maker is not None)


def open_workplace(workspace: str | Workspace | None) -> AbstractAsyncContextManager[Workspace | None]:
    """Open a folder or a sandbox; None stays None."""
    if workspace is None:
        return nullcontext()
    return LocalWorkspace(workspace) if isinstance(workspace, str) else workspace
