"""Lists of tools that change while a server is open: in both eras of the protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from pydantic import JsonValue

from mcp_opened import opened, program

NEW: list[Any] = [{"name": "new", "description": "New.", "inputSchema": {"type": "object"}}]


@pytest.mark.parametrize("era", [[], ["--modern"]])
async def test_a_list_that_the_server_says_has_changed_is_read_again(tmp_path: Path, era: list[str]) -> None:
    async with opened(program("raw", *era), tmp_path) as it:
        await it.call("list", tools=NEW)
        with anyio.fail_after(30):
            while it.names[0] != "mcp__raw__new":
                await checkpoint()
        assert it.names == ["mcp__raw__new", "mcp__raw__list", "mcp__raw__read_resource"]
        assert await it.text("new", a=1) == 'new was called with {"a": 1}'


async def test_a_new_list_that_can_not_be_read_leaves_the_tools_as_they_were(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        before = it.names
        nested: JsonValue = []
        for _ in range(230):
            nested = [nested]
        await it.call("list", tools=[{"name": "deep", "inputSchema": {"type": "object", "default": nested}}])
        with anyio.fail_after(30):
            while not it.notices:
                await checkpoint()
        assert it.names == before
        assert "its list of tools has changed and can't be read" in it.notices[0]
