"""kill -9 of the program while a server works at a call, and while its question waits: one outcome each, and nothing is done twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcore import AgentErrorEvent, ConversationStatus, FileStore, ObservationEvent
from agentcore.record import read_log
from mcp_real import until_none_is_left
from programs import start_python
from talks import WAITING, answers_of

PROGRAM = Path(__file__).with_name("killed_program.py")

pytestmark = pytest.mark.parametrize("anyio_backend", ["asyncio"])


async def calls_in(folder: Path) -> list[dict[str, Any]]:
    """Return the calls that servers got, whichever process made them."""
    lines = anyio.Path(folder / "lines")
    if not await lines.exists():
        return []
    messages = [json.loads(line) for line in (await lines.read_text()).splitlines()]
    return [message["params"] for message in messages if message.get("method") == "tools/call"]


async def go_on(folder: Path, which: str, surroundings: dict[str, str]) -> str:
    """Open the conversation in another process, and return what the model says at last."""
    async with start_python(PROGRAM, folder, which, "go on", env=surroundings, cwd=folder) as program:
        words = "\n".join(await program.rest())
        assert await program.wait() == 0
    await until_none_is_left(folder)
    return words


async def test_a_call_in_which_the_program_is_killed_is_unknown_and_is_not_made_again(
    surroundings: dict[str, str], tmp_path: Path
) -> None:
    async with start_python(PROGRAM, tmp_path, "hang", "begin", env=surroundings, cwd=tmp_path) as program:
        with anyio.fail_after(60):
            while not await calls_in(tmp_path):
                await anyio.sleep(0.05)
        await program.kill()
    await until_none_is_left(tmp_path)  # the server ends with its input
    assert "may have happened" in await go_on(tmp_path, "hang", surroundings)
    state = await read_log(FileStore(tmp_path / "logs"), "victim")
    assert state.status is ConversationStatus.FINISHED
    (answer,) = answers_of(state)
    assert isinstance(answer, AgentErrorEvent)
    assert (answer.outcome, answer.code) == ("unknown", "recovered")
    assert [each["name"] for each in await calls_in(tmp_path)] == ["hang"]


async def test_a_question_at_which_the_program_is_killed_is_answered_after_the_restart(
    surroundings: dict[str, str], tmp_path: Path
) -> None:
    async with start_python(PROGRAM, tmp_path, "ask", "begin", env=surroundings, cwd=tmp_path) as program:
        assert await program.line() == "The MCP server 'raw' asks: Which city?"
        await program.kill()
    await until_none_is_left(tmp_path)
    state = await read_log(FileStore(tmp_path / "logs"), "victim")
    assert (state.status, len(state.questions)) == (WAITING, 1)
    assert "Rome" in await go_on(tmp_path, "ask", surroundings)
    state = await read_log(FileStore(tmp_path / "logs"), "victim")
    (answer,) = answers_of(state)
    assert isinstance(answer, ObservationEvent)
    first, second = await calls_in(tmp_path)
    assert first.keys().isdisjoint({"inputResponses", "requestState"})
    assert second["requestState"] == "opaque"
    assert second["inputResponses"] == {"a": {"action": "accept", "content": {"city": "Rome"}}}
