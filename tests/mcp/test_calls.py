"""Calls of a real server in another process."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from agentcore.errors import MCPCallLost, MCPServerError, ToolError
from mcp_opened import opened, program


async def test_a_server_is_opened_and_its_tools_are_called(tmp_path: Path) -> None:
    async with opened(program("plain"), tmp_path) as it:
        assert it.names[:2] == ["mcp__plain__add", "mcp__plain__echo"]
        assert await it.text("add", a=1, b=2) == "3"
        observation = await it.call("add", a=1, b=2)
        assert observation.to_data() == {"structured": {"result": 3}}
        assert it.toolset.instructions is not None
        assert "'plain'" in it.toolset.instructions
        assert "Add before you multiply." in it.toolset.instructions


async def test_a_failing_tool_answers_with_an_error(tmp_path: Path) -> None:
    async with opened(program("plain"), tmp_path) as it:
        observation = await it.call("fail")
        assert observation.is_error
        assert "this is wrong" in str(observation.to_content())


async def test_a_call_that_was_on_its_way_when_the_server_died_is_unknown_and_later_ones_fail_at_once(
    tmp_path: Path,
) -> None:
    async with opened(program("plain"), tmp_path) as it:
        with pytest.raises(MCPCallLost, match=r"exited with code 3: I can't go on") as lost:
            await it.call("die")
        assert lost.value.outcome_unknown
        assert await it.toolset.wait_closed() == "it exited with code 3: I can't go on"
        with pytest.raises(ToolError, match="is gone") as gone:
            await it.call("add", a=1, b=2)
        assert not gone.value.outcome_unknown


async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    server = program("plain").model_copy(update={"command": "no-such-program", "args": ()})
    with pytest.raises(MCPServerError, match=r"'plain' can't be opened: .*127.*no-such-program"):
        async with opened(server, tmp_path):
            pass


async def test_a_call_that_takes_too_long_says_so(tmp_path: Path) -> None:
    async with opened(program("plain", call_seconds=0.5), tmp_path) as it:
        with pytest.raises(MCPCallLost, match=r"did not answer within 0\.5 s"):
            await it.call("wait")
        assert list(it.host.shown) == ["waiting (1 of 2)\n"]
        assert await it.text("add", a=1, b=2) == "3"


async def test_a_cancelled_call_leaves_a_server_that_works(tmp_path: Path) -> None:
    async with opened(program("plain"), tmp_path) as it:
        with anyio.move_on_after(0.2):
            await it.call("wait")
        assert await it.text("add", a=1, b=2) == "3"
