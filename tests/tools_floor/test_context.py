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
    assert vars(host)["heard"] == [
        ("progress", "ev_1", "half"),
        ("send", "look here"),
        ("ask", "why?"),
        ("interrupt",),
    ]


async def test_the_whole_of_an_output_is_kept_as_bytes(ctx: ToolContext, host: ToolHost) -> None:
    assert await ctx.spool("out.txt", "grün") == "/private/out.txt"
    assert await ctx.spool("raw", b"\xff") == "/private/raw"
    assert vars(host)["spooled"] == {"out.txt": "grün".encode(), "raw": b"\xff"}


async def test_a_tool_can_ask_what_the_model_takes_and_what_it_recorded_last(ctx: ToolContext) -> None:
    assert await ctx.model_accepts("image")
    assert not await ctx.model_accepts("pdf")
    assert ctx.last_data == {"of": ctx.tool_name}


async def test_secrets_are_read_by_name(ctx: ToolContext) -> None:
    assert await ctx.secrets.get("TOKEN") == "correct horse"
    with pytest.raises(SecretError, match="OTHER"):
        await ctx.secrets.get("OTHER")


def test_a_context_does_not_show_secrets(ctx: ToolContext) -> None:
    assert "horse" not in repr(ctx)
    assert "secrets" not in repr(ctx)


def test_a_cancel_is_seen_by_its_own_call_only(ctx: ToolContext) -> None:
    assert not ctx.cancel_requested
    ctx.request_cancel()
    assert ctx.cancel_requested
