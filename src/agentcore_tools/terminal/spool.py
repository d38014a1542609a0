"""Long output: kept whole in the workspace, where the model can read it, and shown from its beginning and its end."""

from __future__ import annotations

from typing import Final

from agentcore.errors import WorkspaceError
from agentcore.tools import OUTPUT_LIMIT, ToolContext, cut

__all__ = ["TEXT_LIMIT", "shortened"]

TEXT_LIMIT: Final = OUTPUT_LIMIT - 2_000
"""How many characters of output are shown; the rest of a tool's limit is for what is said about it."""


async def shortened(text: str, ctx: ToolContext) -> tuple[str, str | None]:
    """Give what to show of a text, and the path where the whole is if that is not all of it."""
    if len(text) <= TEXT_LIMIT:
        return text, None
    try:
        path = await ctx.spool(f"{ctx.action_id}-terminal.txt", text)
        # What was written there is masked. Cutting what is not might leave the half of a secret, which nobody would know.
        masked = (await ctx.workspace.read(path)).decode(errors="replace")
    except WorkspaceError:
        # Masking and cutting are then left to the conversation, which does them in that order, too.
        return text, None
    return cut(masked, TEXT_LIMIT, path), path
