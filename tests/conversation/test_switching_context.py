"""Sources of context where the agent is switched: the prompt is composed anew, and nothing is shown twice or missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcore import Agent, AgentContext, ContextAdded, Conversation, MemoryStore, ProjectFiles, SystemPromptEvent
from agentcore.testing import ScriptedLLM, ScriptLine, call, say
from agentcore_tools import read_file_tool
from talks import events_of

READ_FILE = read_file_tool()
LOOK = call("read_file", path="src/a.py")


def agent(context: AgentContext | None, *script: ScriptLine) -> Agent:
    return Agent(llm=ScriptedLLM(script), tools=[READ_FILE], context=context)


def shown_to(llm: object) -> str:
    """Return all that the newest request of a model showed."""
    assert isinstance(llm, ScriptedLLM)
    return "\n".join(message.text for message in llm.requests[-1].messages)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "AGENTS.md").write_text("Rules of the house.")
    (tmp_path / "src/AGENTS.md").write_text("Rules of src.")
    (tmp_path / "src/a.py").write_text("a = 1\n")
    return tmp_path


async def test_what_was_appended_stays_and_is_not_appended_again(project: Path) -> None:
    files = AgentContext(sources=(ProjectFiles(),))
    old, new = agent(files, LOOK, say("one")), agent(files, LOOK, say("two"), say("three"))
    async with Conversation(old, project) as conversation:
        await conversation.run("go")
        await conversation.set_agent(new)
        await conversation.run("more")
        assert len(events_of(conversation, SystemPromptEvent)) == 1, "it is the same prompt"
        text = shown_to(new.llm)
        assert (text.count("Rules of the house."), text.count("Rules of src.")) == (1, 1)
        (project / "AGENTS.md").write_text("New rules of the house.")
        last = agent(files, say("three"))
        await conversation.set_agent(last)
        await conversation.run("and more")
        assert len(events_of(conversation, ContextAdded)) == 1
        first, second = events_of(conversation, SystemPromptEvent)
        assert ("New rules" in first.prompt, "New rules" in second.prompt) == (False, True)
        text = shown_to(last.llm)
        assert (text.count("ules of the house."), text.count("Rules of src.")) == (1, 1)


async def test_an_agent_without_sources_has_no_files_in_its_prompt_and_one_with_sources_gets_them(
    project: Path,
) -> None:
    files = AgentContext(sources=(ProjectFiles(),))
    plain, reading = agent(None, say("two")), agent(files, LOOK, say("three"))
    async with Conversation(agent(files, say("one")), project) as conversation:
        await conversation.run("go")
        await conversation.set_agent(plain)
        await conversation.run("more")
        assert "Rules of the house." not in shown_to(plain.llm)
        await conversation.set_agent(reading)
        await conversation.run("and more")
        text = shown_to(reading.llm)
        assert (text.count("Rules of the house."), text.count("Rules of src.")) == (1, 1)


async def test_a_switch_before_closing_is_composed_after_opening_again(project: Path) -> None:
    files, store = AgentContext(sources=(ProjectFiles(),)), MemoryStore()
    async with Conversation(agent(None, say("one")), project, store=store, id="c") as conversation:
        await conversation.run("go")
        await conversation.set_agent(agent(files))
    last = agent(files, LOOK, say("two"))
    async with Conversation(last, project, store=store, id="c") as conversation:
        await conversation.run("more")
        text = shown_to(last.llm)
        assert (text.count("Rules of the house."), text.count("Rules of src.")) == (1, 1)
        assert len(events_of(conversation, SystemPromptEvent)) == 2
