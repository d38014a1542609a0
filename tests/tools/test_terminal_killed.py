"""An agent that is killed in the middle of its work: nothing of it is left, and its next process can say what happened."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import anyio
import psutil
import pytest

from agentcore import Agent, Conversation, FileStore, ObservationEvent
from agentcore.testing import ScriptedLLM, say
from agentcore_tools import run_tool, terminal_tool
from living import still_running

AGENT = """
    import sys
    import anyio
    from agentcore import Agent, Conversation, FileStore
    from agentcore.testing import ScriptedLLM, calls, call, say
    from agentcore_tools import run_tool, terminal_tool

    async def main():
        llm = ScriptedLLM([calls(*(call(name, **arguments) for name, arguments in CALLS)), say("never")])
        agent = Agent(llm=llm, tools=[terminal_tool(overlap=True, quiet_seconds=1), run_tool()])
        async with Conversation(agent, ".", store=FileStore("logs"), id="killed") as conversation:
            await conversation.run("go")

    anyio.run(main)
"""
STUBBORN = "trap '' HUP TERM INT; echo $BASHPID >> ../pids; while :; do sleep 0.05; done"


@pytest.mark.parametrize("tool", ["terminal", "run"])
def test_killed_at_once_an_agent_leaves_nothing_and_the_next_process_tells(
    tmp_path: Path, surroundings: dict[str, str], tool: str
) -> None:
    work = tmp_path / "work"
    temporary = tmp_path / "tmp"
    work.mkdir()
    temporary.mkdir()
    command = f"seq 20000; (setsid bash -c {json.dumps(STUBBORN.replace('$', chr(92) + '$'))} &); nohup sleep 1000 & {STUBBORN}"
    source = textwrap.dedent(AGENT).replace("CALLS", repr([(tool, {"command": command})]))
    (work / "agent.py").write_text(source)
    environment = {**surroundings, "TMPDIR": str(temporary)}
    with subprocess.Popen([sys.executable, "agent.py"], cwd=work, env=environment) as agent:
        try:
            deadline = time.monotonic() + 60
            while not (tmp_path / "pids").exists() or (tmp_path / "pids").read_text().count("\n") < 2:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            started = [child.pid for child in psutil.Process(agent.pid).children(recursive=True)]
            started += [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        finally:
            agent.kill()
    deadline = time.monotonic() + 30
    while left := still_running(*started):
        assert time.monotonic() < deadline, left
        time.sleep(0.01)
    # Nothing but what the conversation keeps, which lasts as long as its log. It may not have its name yet.
    kept = [path for path in temporary.rglob("*") if path.is_file()]
    assert [path.name.rpartition("-")[2] for path in kept] in (
        [f"{'terminal' if tool == 'terminal' else 'stdout'}.txt"],
        ["tmp"],
        [],
    )
    assert {path.parent.name for path in kept} <= {"killed"}
    anyio.run(look_again, work, temporary, tool)
    assert [path for path in temporary.rglob("*") if path.is_file()] == []


async def look_again(work: Path, temporary: Path, tool: str) -> None:
    agent = Agent(llm=ScriptedLLM([say("ok")]), tools=[terminal_tool(), run_tool()])
    with anyio.fail_after(60), pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(temporary))
        async with Conversation(agent, work, store=FileStore(work / "logs"), id="killed") as conversation:
            (told,) = [event for event in conversation.state.events if isinstance(event, ObservationEvent)]
            assert (told.tool_name, told.is_error, told.data["problem"]) == (tool, True, "cut_off")
            assert "not known" in told.text
            assert "Still running" not in told.text
            await conversation.delete()
