"""Sets of tools, and the names by which a log makes them again."""

from __future__ import annotations

import tomllib
from pathlib import Path

import anyio
import pytest

from agentcore import Agent, AgentErrorEvent, Conversation, LocalWorkspace, ObservationEvent
from agentcore.testing import ScriptedLLM, call, calls, say
from agentcore.tools import Resource, ToolRegistry
from agentcore_tools import FACTORIES, coding_tools, planning_tools, readonly_tools
from agentcore_tools.grep.python import PYTHON_NOTE

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("model", "editing"),
    [
        (None, ["file_editor"]),
        ("anthropic/claude-sonnet-4-5", ["file_editor"]),
        ("openai/gpt-4.1", ["file_editor"]),
        ("openai/gpt-5", ["apply_patch", "read_file"]),
        ("openrouter/openai/gpt-5.1-codex-max", ["apply_patch", "read_file"]),
        ("codex-mini-latest", ["apply_patch", "read_file"]),
        ("gemini/gemini-2.5-pro", ["read_file", "write_file", "edit", "list_directory"]),
        ("vertex_ai/gemini-3-pro", ["read_file", "write_file", "edit", "list_directory"]),
    ],
)
def test_a_model_edits_with_what_its_family_knows(model: str | None, editing: list[str]) -> None:
    names = [tool.name for tool in coding_tools(model)]
    assert names == ["terminal", *editing, "glob", "grep", "task_tracker"]


def test_what_is_declared_is_what_can_be_made_again() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["agentcore.tools"]
    assert declared.keys() == FACTORIES.keys()
    registry = ToolRegistry()
    for name, factory in FACTORIES.items():
        registry.register(name, factory)
    for tools in (coding_tools(), coding_tools("gpt-5"), coding_tools("gemini"), readonly_tools(), planning_tools()):
        for tool in tools:
            assert tool.spec is not None
            made = registry.resolve(tool.spec)
            assert (made.name, made.spec, made.schema) == (tool.name, tool.spec, tool.schema)


def test_tools_that_only_read_say_so_and_touch_what_they_read() -> None:
    for tool in readonly_tools():
        assert tool.annotations.read_only
        assert not tool.annotations.destructive
    for tool in coding_tools():
        assert tool.annotations.title
        assert not tool.annotations.destructive or not tool.annotations.read_only
    grep = next(tool for tool in readonly_tools() if tool.name == "grep")
    touched = grep.resources_of(grep.parse({"pattern": "a", "path": "src"}), "/r")
    assert touched == (Resource.file("src", "read", root="/r"),)


def plain(answer: str) -> str:
    """Return an answer of grep without its note that there is no ripgrep."""
    return answer.removesuffix(f"\n[{PYTHON_NOTE}]")


async def test_an_agent_that_plans_writes_its_plan_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("TODO = 1\n")
    llm = ScriptedLLM(
        [
            calls(call("grep", pattern="TODO"), call("glob", pattern="*.py")),
            calls(
                call("file_editor", command="create", path="PLAN.md", file_text="1. do it\n"),
                call("file_editor", command="str_replace", path="a.py", old_str="1", new_str="2"),
            ),
            say("Planned."),
        ]
    )
    with anyio.fail_after(60):
        async with Conversation(Agent(llm=llm, tools=planning_tools()), tmp_path) as conversation:
            await conversation.run("Plan it.")
            seen = [event for event in conversation.state.events if isinstance(event, ObservationEvent)]
            (refused,) = [event for event in conversation.state.events if isinstance(event, AgentErrorEvent)]
    assert {event.tool_name: plain(event.text) for event in seen[:2]} == {"grep": "a.py\n1:TODO = 1", "glob": "a.py"}
    assert "The only file that may be is" in refused.error
    assert (tmp_path / "PLAN.md").read_text() == "1. do it\n"
    assert (tmp_path / "a.py").read_text() == "TODO = 1\n"


async def test_tools_see_what_the_workspace_sees(tmp_path: Path) -> None:
    """A workspace that is entered already is used as it is, by all tools of the set."""
    async with LocalWorkspace(tmp_path) as workspace:
        llm = ScriptedLLM([call("write_file", file_path="x", content="1\n"), call("grep", pattern="1"), say("ok")])
        tools = coding_tools("gemini-3-pro")
        async with Conversation(Agent(llm=llm, tools=tools), workspace) as conversation:
            await conversation.run("go")
            texts = [event.text for event in conversation.state.events if isinstance(event, ObservationEvent)]
    assert plain(texts[-1]) == "x\n1:1"
