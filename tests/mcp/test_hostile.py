"""Servers that attack: floods, answers for nobody, endless lists, secrets in their errors. Each is contained, and named where it ends."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from agentcore.errors import MCPCallLost, MCPServerError, QuestionDeclined, ToolError
from agentcore.tools import InputRequired
from mcp_opened import Opened, opened, program

SECRET = "hush-0123456789-abcdefghij"
FORM: dict[str, Any] = {"message": "Which?", "requestedSchema": {"type": "object", "properties": {}}}
SAMPLING: dict[str, Any] = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 10}


def grown(before: int) -> int:
    """Return by how many MB this process has grown."""
    return (psutil.Process().memory_info().rss - before) // 1024**2


def size() -> int:
    return psutil.Process().memory_info().rss


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("sampling/createMessage", SAMPLING),
        ("roots/list", {}),
        ("elicitation/create", FORM),
        ("ping", {}),
        ("no/such", {}),
    ],
)
async def test_a_server_that_asks_without_end_and_reads_nothing_is_left(
    tmp_path: Path, method: str, params: dict[str, Any]
) -> None:
    async with opened(program("hostile"), tmp_path) as it:
        before = size()
        with pytest.raises(MCPCallLost, match="asked more than 1,000 things at once"):
            await it.call("attack", how="ask", count=10_000_000, method=method, params=params)
        assert await it.toolset.wait_closed() == "it asked more than 1,000 things at once"
        with pytest.raises(ToolError, match="is gone"):
            await it.call("echo", text="hello")
        assert grown(before) < 200


async def test_a_person_is_not_asked_a_thousand_things_at_once(tmp_path: Path) -> None:
    async with opened(program("hostile"), tmp_path) as it:
        asked = most = 0

        async def question(*_: Any) -> Any:
            nonlocal asked, most
            asked += 1
            most = max(most, asked)
            try:
                with anyio.move_on_after(0.2):
                    await anyio.sleep_forever()
            finally:
                asked -= 1
            raise QuestionDeclined("no")

        host: Any = it.host
        host.question = question
        assert await it.text("attack", how="ask", count=1_000, method="elicitation/create", params=FORM) == "asked"
        assert await it.text("echo", text="still here") == "still here"
        assert 1 <= most <= 16


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("notifications/tools/list_changed", {}),
        ("notifications/message", {"level": "info", "data": "x" * 100}),
        ("notifications/progress", {"progressToken": 1, "progress": 1}),
        ("notifications/cancelled", {"requestId": "q1"}),
        ("notifications/no_such", {"a": 1}),
    ],
)
async def test_a_flood_of_notifications_is_read_and_forgotten(
    tmp_path: Path, method: str, params: dict[str, Any]
) -> None:
    async with opened(program("hostile"), tmp_path) as it:
        before = size()
        assert await it.text("attack", how="tell", count=50_000, method=method, params=params) == "told"
        assert await it.text("echo", text="still here") == "still here"
        assert grown(before) < 200


async def test_answers_that_nobody_asked_for_are_dropped_and_of_several_the_first_one_counts(tmp_path: Path) -> None:
    async with opened(program("hostile"), tmp_path) as it:
        assert await it.text("attack", how="answer") == "the first"
        assert await it.text("echo", text="still here") == "still here"


async def test_a_list_without_an_end_is_cut_and_named(tmp_path: Path) -> None:
    async with opened(program("hostile", "--pages", str(10 * 1024**2)), tmp_path) as it:
        assert "mcp__hostile__large2" in it.names
        assert "mcp__hostile__large3" not in it.names
        assert it.notices == ["MCP server 'hostile': its list of tools is larger than 32 MiB: the rest is left out."]
        assert max(len(tool.description) for tool in it.toolset.tools()) < 8_100
        assert await it.text("echo", text="still here") == "still here"


@pytest.mark.parametrize("width", [0, 1_990, 65_530])
async def test_no_secret_of_a_servers_errors_is_logged_however_its_lines_are_cut(
    tmp_path: Path, width: int, caplog: pytest.LogCaptureFixture
) -> None:
    server = program("hostile", env={"SECRET": "${SECRET}"})
    with caplog.at_level(logging.DEBUG, "agentcore"):
        async with opened(server, tmp_path, {"SECRET": SECRET}) as it:
            with pytest.raises(MCPCallLost, match="last words with") as caught:
                await it.call("attack", how="complain", count=width)
    written = caplog.text + str(caught.value)
    assert "last words with" in written
    assert not [begin for begin in range(len(SECRET) - 7) if SECRET[begin : begin + 8] in written]


@pytest.mark.parametrize("width", [500, 3_000])
async def test_no_part_of_a_secret_is_shown_where_a_servers_words_are_cut(tmp_path: Path, width: int) -> None:
    server = program("hostile", env={"SECRET": "${SECRET}"})
    async with opened(server, tmp_path, {"SECRET": SECRET}) as it:
        shown: list[str] = []

        async def question(text: str, *_: Any) -> Any:
            await anyio.lowlevel.checkpoint()
            shown.append(text)
            return {}

        host: Any = it.host
        host.question = question
        await it.call("attack", how="blab", count=width)
        await it.text("echo", text="after it")
    shown += it.host.shown
    assert len(shown) >= 3
    assert not [text for text in shown if "hush" in text.replace("<secret:SECRET>", "")]


async def test_a_server_that_leaves_at_once_is_named_with_its_words(tmp_path: Path) -> None:
    with pytest.raises(MCPServerError, match="'hostile' can't be opened: it exited with code 7: no licence"):
        async with opened(program("hostile", "--leave"), tmp_path):
            pass


async def ask_at_rest(it: Opened, **fields: Any) -> None:
    await it.call("result", result={"resultType": "input_required", **fields})


async def test_a_round_of_questions_that_is_too_large_to_be_recorded_is_an_error(tmp_path: Path) -> None:
    request: dict[str, Any] = {"method": "elicitation/create", "params": {"mode": "form", **FORM}}
    async with opened(program("hostile", "--modern"), tmp_path) as it:
        with pytest.raises(ToolError, match="asks too much"):
            await ask_at_rest(it, inputRequests={"a": request}, requestState="x" * 10_000_000)
        with pytest.raises(ToolError, match="asks too much"):
            await ask_at_rest(it, inputRequests={f"a{number}": request for number in range(10_000)})
        with pytest.raises(InputRequired):
            await ask_at_rest(it, inputRequests={"a": request}, requestState="x" * 10_000)
