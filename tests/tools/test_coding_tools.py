"""The tools in a conversation, from a model's call to the log."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import anyio
import pytest
from pydantic import JsonValue

from agentcore import (
    LLM,
    Agent,
    AgentErrorEvent,
    Conversation,
    ConversationStatus,
    FileStore,
    MemoryStore,
    ObservationEvent,
    RunResult,
)
from agentcore.agent import record_agent
from agentcore.messages import TextBlock
from agentcore.testing import ScriptedLLM, call, calls, say
from agentcore.tools import ToolRegistry, ToolSpec
from agentcore_tools import coding_tools, terminal_tool
from living import still_running
from opened_tool import line_in

ROOT = Path(__file__).parents[2]


def observations(conversation: Conversation) -> list[ObservationEvent]:
    return [event for event in conversation.state.events if isinstance(event, ObservationEvent)]


def answer_text(event: ObservationEvent) -> str:
    return "\n".join(block.text for block in event.content if isinstance(block, TextBlock))


async def test_an_agent_writes_a_program_and_runs_it(tmp_path: Path) -> None:
    llm = ScriptedLLM(
        [
            call("file_editor", command="create", path="sum.py", file_text="print(1 + 1)\n"),
            calls(call("terminal", command="python3 sum.py"), call("file_editor", command="view", path="sum.py")),
            call("file_editor", command="str_replace", path="sum.py", old_str="1 + 1", new_str="6 * 7"),
            call("bash", command="python3 sum.py; false"),
            say("Done."),
        ]
    )
    with anyio.fail_after(60):
        async with Conversation(Agent(llm=llm, tools=coding_tools()), tmp_path) as conversation:
            result = await conversation.run("Write it.")
            assert (result.status, result.text) == (ConversationStatus.FINISHED, "Done.")
            created, ran, viewed, changed, again = observations(conversation)
    assert "+print(1 + 1)\n" in str(created.data["diff"])
    assert answer_text(ran).startswith("2\n[exit code 0;")
    assert answer_text(viewed) == "     1\tprint(1 + 1)"
    assert "-print(1 + 1)\n+print(6 * 7)\n" in str(changed.data["diff"])
    assert (answer_text(again).split("\n")[0], again.is_error, again.data["exit_code"]) == ("42", True, 1)
    assert again.tool_name == "terminal"
    assert not again.data["running"]


async def test_an_interrupt_ends_a_command_that_does_not_want_to_end(tmp_path: Path) -> None:
    stubborn = "trap '' TERM INT; echo $$ >> pids; setsid sleep 1000 & echo $! >> pids; while :; do sleep 0.1; done"
    llm = ScriptedLLM(
        [
            call("terminal", command=f'A=kept; bash -c "{stubborn}"'.replace("$", "\\$")),
            call("terminal", command="echo $A"),
            say("ok"),
        ]
    )
    results: list[RunResult] = []
    with anyio.fail_after(60):
        async with Conversation(Agent(llm=llm, tools=coding_tools()), tmp_path) as conversation:
            async with anyio.create_task_group() as tasks:

                async def run() -> None:
                    results.append(await conversation.run("go"))

                tasks.start_soon(run)
                while (await line_in(tmp_path / "pids")).count("\n") < 2:
                    await anyio.sleep(0.005)
                await conversation.interrupt("enough")
            assert results[0].status is ConversationStatus.PAUSED
            assert still_running(*(int(pid) for pid in (tmp_path / "pids").read_text().split())) == []
            (error,) = [event for event in conversation.state.events if isinstance(event, AgentErrorEvent)]
            assert error.outcome == "interrupted"
            assert (await conversation.run()).text == "ok"
            (told,) = observations(conversation)
            assert "kept\n[exit code 0;" in answer_text(told)


async def test_a_secret_is_used_and_shown_to_nobody(tmp_path: Path) -> None:
    llm = ScriptedLLM(
        [
            call("terminal", command='echo "<$API_TOKEN>"; printf %s "$API_TOKEN" | base64'),
            call("terminal", command="env | grep -c horse"),
            say("ok"),
        ]
    )
    with anyio.fail_after(60):
        async with Conversation(
            Agent(llm=llm, tools=coding_tools()),
            tmp_path,
            store=FileStore(tmp_path / "store"),
            secrets={"API_TOKEN": "correct-horse"},
        ) as conversation:
            pieces: list[str] = []
            async with anyio.create_task_group() as tasks:
                deltas = conversation.deltas()

                async def watch() -> None:
                    async for delta in deltas:
                        if delta.type == "progress":
                            pieces.append(delta.text)

                tasks.start_soon(watch)
                await conversation.run("go")
                while "<secret:API_TOKEN>" not in "".join(pieces):
                    await anyio.sleep(0.005)
                tasks.cancel_scope.cancel()
            used, gone = observations(conversation)
    assert answer_text(used).startswith("<<secret:API_TOKEN>>\n<secret:API_TOKEN>\n")
    assert answer_text(gone).startswith("0\n")
    assert "horse" not in "".join(pieces)
    for file in (tmp_path / "store").rglob("*"):
        assert not file.is_file() or b"correct-horse" not in file.read_bytes()


async def test_waiting_for_a_command_is_no_loop(tmp_path: Path) -> None:
    llm = ScriptedLLM(
        [call("terminal", command="sleep 1000"), *[call("terminal", command="")] * 8, say("It takes long.")]
    )
    with anyio.fail_after(60):
        tools = [terminal_tool(quiet_seconds=0.05)]
        async with Conversation(Agent(llm=llm, tools=tools), tmp_path) as conversation:
            result = await conversation.run("go")
            assert (result.status, result.text) == (ConversationStatus.FINISHED, "It takes long.")
            assert all(event.data["running"] is True for event in observations(conversation))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the distribution as far as the registry looks at it: with the entry points that it declares."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["agentcore.tools"]
    folder = tmp_path / "installed" / "declared-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: declared\nVersion: 1.0\n")
    lines = "".join(f"{name} = {value}\n" for name, value in declared.items())
    (folder / "entry_points.txt").write_text(f"[agentcore.tools]\n{lines}")
    monkeypatch.setattr(sys, "path", [str(folder.parent), *sys.path])


@pytest.mark.usefixtures("installed")
def test_the_tools_of_a_log_are_made_again_by_what_the_distribution_declares() -> None:
    tools = (terminal_tool(quiet_seconds=7), *coding_tools()[1:])
    recorded, missing = record_agent(Agent(llm=ScriptedLLM([]), tools=tools))
    assert [part for part in missing if "tool" in part] == []
    specs = recorded["tools"]
    assert isinstance(specs, list)
    made = [ToolRegistry().resolve(ToolSpec.model_validate(spec)) for spec in specs]
    assert [(tool.name, tool.spec, tool.schema) for tool in made] == [
        (tool.name, tool.spec, tool.schema) for tool in tools
    ]


@pytest.mark.usefixtures("installed")
async def test_a_conversation_with_coding_tools_is_resumed_as_it_was_recorded(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store")
    agent = Agent(llm=LLM(model="openai/any", api_key="not-a-key"), tools=coding_tools())
    async with Conversation(agent, tmp_path, store=store) as conversation:
        await conversation.send("go")
        recorded = conversation.state.agent
    async with Conversation(None, tmp_path, store=store, id=conversation.id) as resumed:
        assert resumed.state.agent == recorded
        assert recorded is not None
        assert recorded.missing == ()


@pytest.mark.parametrize("first", [{"command": "echo [$WHO]"}, {"command": ""}, {"command": "C-c", "is_input": True}])
async def test_the_first_answer_after_a_resume_tells_of_the_new_shell_and_only_that_one(
    tmp_path: Path, first: dict[str, JsonValue]
) -> None:
    llm = ScriptedLLM(
        [
            call("terminal", command="export WHO=me"),
            say("Done."),
            call("terminal", **first),
            call("terminal", command="echo [$WHO]"),
            say("Gone."),
        ]
    )
    store = MemoryStore()
    agent = Agent(llm=llm, tools=coding_tools())
    with anyio.fail_after(60):
        for text in ("Set it.", "Use it."):
            async with Conversation(agent, tmp_path, store=store, id="a") as conversation:
                await conversation.run(text)
                told = [answer_text(event) for event in observations(conversation)]
    assert ["new shell" in text for text in told] == [False, True, False]
    assert "[]" in told[2]


async def test_a_long_output_is_masked_while_it_is_kept_and_removed_with_the_conversation(tmp_path: Path) -> None:
    command = (
        'for i in {1..1500}; do printf "%s" "$API_TOKEN"; ((i % 50)) || sleep 0.001; printf " number $i\\n"; done 2>&1'
    )
    llm = ScriptedLLM([call("terminal", command=command), say("ok")])
    agent = Agent(llm=llm, tools=[terminal_tool()])
    with anyio.fail_after(60):
        async with Conversation(
            agent, tmp_path, store=MemoryStore(), secrets={"API_TOKEN": "correct horse"}
        ) as conversation:
            await conversation.run("go")
            (told,) = observations(conversation)
            kept = Path(str(told.data["full_output_path"]))
            assert kept.read_text() == "".join(f"<secret:API_TOKEN> number {number}\n" for number in range(1, 1501))
            assert "horse" not in answer_text(told)
            await conversation.delete()
        assert not kept.exists()
