"""Servers that die, hang, are slow, and write what is no message: each hurts its own calls and nothing else."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio import get_cancelled_exc_class
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED

from agentcore import LocalWorkspace
from agentcore.errors import MCPCallLost, MCPServerError, ToolError
from agentcore.mcp.ending import Ending
from agentcore.mcp.stdio import open_stdio
from mcp_opened import opened, program


async def test_a_call_is_answered_through_a_line_that_is_garbage(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        garbage = 'npm notice: update available\n\n{"jsonrpc": "2.0"}\n[1, 2]\n'
        answer = '{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "here"}]}}'
        assert await it.text("raw", line=garbage + answer) == "here"


async def test_bytes_that_are_no_utf_8_are_replaced(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        line = b'{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "caf\xe9"}]}}'
        assert await it.text("raw", hex=line.hex()) == "caf\N{REPLACEMENT CHARACTER}"
        assert await it.text("raw", hex=(b"\xff\xfe\n" + line).hex()) == "caf\N{REPLACEMENT CHARACTER}"


async def test_half_a_character_is_replaced(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        line = r'{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "a\ud83d"}]}}'
        assert await it.text("raw", line=line) == "a\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("depth", [400, 100_000])
async def test_an_answer_that_is_nested_too_deeply_is_an_error_at_once(tmp_path: Path, depth: int) -> None:
    async with opened(program("raw"), tmp_path) as it:
        nested = "[" * depth + "]" * depth
        line = '{"jsonrpc": "2.0", "id": ID, "result": {"content": [], "structuredContent": {"a": ' + nested + "}}}"
        with pytest.raises(ToolError, match="nested too deeply"):
            await it.call("raw", line=line)
        assert await it.text("echo", text="still here") == "still here"


async def test_an_answer_that_is_no_result_is_an_error(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        with pytest.raises(MCPCallLost, match="something that is not a result"):
            await it.call("raw", line='{"jsonrpc": "2.0", "id": ID, "result": {"content": 7}}')
        assert await it.text("echo", text="still here") == "still here"


async def test_a_message_of_32_mb_arrives(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        (block,) = (await it.call("large", size=32_000_000)).blocks()
        assert len(getattr(block, "text", "")) == 32_000_000


async def test_a_message_over_the_bound_ends_the_connection_with_that_reason(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        with pytest.raises(MCPCallLost, match="more than 64 MiB"):
            await it.call("flood", size=1024**3)
        assert await it.toolset.wait_closed() == "it sent a message of more than 64 MiB"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_a_killed_server_says_how_it_ended(tmp_path: Path, how: signal.Signals) -> None:
    async with opened(program("raw"), tmp_path) as it:
        with pytest.raises(MCPCallLost, match=f"exited with code {128 + how}: something broke"):
            await it.call("die", signal=int(how))


async def test_a_server_that_closes_its_output_is_gone(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        with pytest.raises(MCPCallLost, match="closed its output"):
            await it.call("mute")


async def test_calls_of_a_server_that_reads_nothing_end_when_their_time_is_up(tmp_path: Path) -> None:
    async with opened(program("raw", call_seconds=0.5), tmp_path) as it:
        await it.call("deaf")
        with pytest.raises(MCPCallLost, match=r"did not answer within 0\.5 s"):
            await it.call("echo", text="x" * 1_000_000)


async def test_a_server_that_hangs_is_told_that_a_call_was_cancelled(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    async with opened(program("raw", "--lines", str(lines)), tmp_path) as it:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(it.call, "hang")
            while not it.host.shown:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        await it.call("echo", text="after it")  # what was written before has been read
    methods = [message["method"] for message in messages_in(lines)]
    assert methods[-3:] == ["tools/call", "notifications/cancelled", "tools/call"]


async def test_a_server_that_says_nothing_can_be_given_up(tmp_path: Path) -> None:
    with anyio.move_on_after(0.5) as patience:
        async with opened(program("raw", "--silent"), tmp_path):
            pass
    assert patience.cancelled_caught


async def test_one_that_is_given_up_while_its_connection_breaks_raises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def break_when_cancelled(*_: object, **__: object) -> AsyncGenerator[None]:
        patience.cancel()
        try:
            await anyio.sleep_forever()
        except get_cancelled_exc_class() as cancelled:
            closed = MCPError(code=CONNECTION_CLOSED, message="Connection closed")
            raise BaseExceptionGroup("tasks", [cancelled, closed]) from None  # noqa: ASYNC104 it is in there
        yield  # what makes it a context

    monkeypatch.setattr("agentcore.mcp.connection.Client", break_when_cancelled)
    with anyio.CancelScope() as patience:
        async with opened(program("raw"), tmp_path):
            pass
    assert patience.cancelled_caught


async def test_a_server_that_does_not_end_with_its_input_is_killed(tmp_path: Path) -> None:
    async with opened(program("raw", "--stay"), tmp_path) as it:
        assert await it.text("echo", text="here") == "here"


async def test_one_that_ends_because_it_was_left_has_not_ended_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentcore.mcp.stdio._EXPLAIN_SECONDS", 0)
    monkeypatch.setattr("agentcore.mcp.stdio._LEAVE_SECONDS", 1)
    command = ["sh", "-c", "cat; exec >&- 2>&-; sleep 1000"]
    ending = Ending()
    async with (
        LocalWorkspace(tmp_path) as workspace,
        open_stdio(workspace, command, cwd=None, env={}, ending=ending, mask=str, name="left"),
    ):
        pass
    assert ending.reason is None


async def test_a_program_that_ends_at_once_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    server = program("raw").model_copy(update={"command": "sh", "args": ("-c", "echo no token here >&2; exit 5")})
    with pytest.raises(MCPServerError, match=r"'raw' can't be opened: it exited with code 5: no token here\."):
        async with opened(server, tmp_path):
            pass


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(MCPServerError, match="no-such-folder"):
        async with opened(program("raw", cwd="no-such-folder"), tmp_path):
            pass


async def test_a_thousand_calls_at_once_each_get_their_own_answer(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        got: dict[int, str] = {}

        async def one(number: int) -> None:
            got[number] = await it.text("echo", text=f"call {number}")

        async with anyio.create_task_group() as tasks:
            for number in range(1_000):
                tasks.start_soon(one, number)
        assert got == {number: f"call {number}" for number in range(1_000)}


async def test_a_thousand_calls_that_hang_all_fail_when_the_server_dies(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        lost = 0

        async def one() -> None:
            nonlocal lost
            with pytest.raises(MCPCallLost, match="exited with code 3"):
                await it.call("hang")
            lost += 1

        async def end() -> None:
            while len(it.host.shown) < 50:  # as many as are remembered
                await anyio.lowlevel.checkpoint()
            with pytest.raises(MCPCallLost):
                await it.call("die")

        async with anyio.create_task_group() as tasks:
            for _ in range(1_000):
                tasks.start_soon(one)
            tasks.start_soon(end)
        assert lost == 1_000


def messages_in(lines: Path) -> list[dict[str, str]]:
    """Read what a server got."""
    return [json.loads(line) for line in lines.read_text().splitlines()]
