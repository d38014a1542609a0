"""What can be said, after the agent's process ended, of a command that it had started."""

from __future__ import annotations

from agentcore.tools import ToolContext
from agentcore_tools._output import find_left, left_mark
from agentcore_tools.terminal.action import TerminalAction
from agentcore_tools.terminal.observation import TerminalObservation

__all__ = ["reconcile"]


async def reconcile(action: TerminalAction, ctx: ToolContext) -> TerminalObservation | None:
    """Say what became of an action: whether anything of its session still runs, and where its output is.

    None where it can't be told whether anything runs.
    """
    left = await find_left("AGENTCORE_TERMINAL", left_mark(ctx.conversation_id, action.session), ctx.workspace)
    if left is None:
        return None
    path = f"{await ctx.workspace.private_folder(ctx.conversation_id)}/{ctx.action_id}-terminal.txt"
    kept = await ctx.workspace.stat(path)
    return TerminalObservation(
        text=f"[Still running: {left}.]" if left else "",
        problem="nothing_lost" if not action.command.strip() and not action.reset else "cut_off",
        new_shell=True,
        session=action.session,
        full_output_path=path if kept is not None else None,
    )
