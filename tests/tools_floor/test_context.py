"""What a tool can ask for while it runs."""

from __future__ import annotations

import pytest

from agentcore.errors import SecretError
from agentcore.tools import ToolContext, ToolHost


async def test_a_tool_reaches_its_host(ctx: ToolContext, host: ToolHost) -> None:
    await ctx.progress("half")
    await ctx.send("look here")
    assert await ctx.ask("why?") == "WHY?"
    await ctx.interrupt()
    assert await ctx.spool("out.txt", "grün") == "/private/out.txt"
    assert await ctx.spool("raw", b"\xff") == "/private/raw"
    assert (await ctx.model_accepts("image"), await ctx.model_accepts("pdf")) == (True, False)
    assert ctx.last_data == {"of": ctx.tool_name}
    assert ctx.shown_parts == {"skill:deploy"}
    heard = [("progress", "ev_1", "half"), ("send", "look here"), ("ask", "why?"), ("interrupt",)]
    assert vars(host)["heard"][:4] == heard
    assert vars(host)["spooled"] == {"out.txt": "grün".encode(), "raw": b"\xff"}


async def test_secrets_are_read_by_name_and_not_shown(ctx: ToolContext) -> None:
    assert await ctx.secrets.get("TOKEN") == "correct horse"
    with pytest.raises(SecretError, match="OTHER"):
        await ctx.secrets.get("OTHER")
    assert "horse" not in repr(ctx)
    assert "secrets=" not in repr(ctx)
