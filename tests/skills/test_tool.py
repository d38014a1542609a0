"""The tool `skill`, alone and in a conversation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest

from agentcore import Agent, ContextAdded, Conversation, LocalWorkspace, MemoryStore, Skills, SystemPromptEvent
from agentcore.context import AgentContext, SourceContext
from agentcore.errors import ToolError
from agentcore.events import AgentErrorEvent, ContextNotice, ConversationStateUpdateEvent, ObservationEvent
from agentcore.secrets import SecretRegistry
from agentcore.testing import ScriptedLLM, call, say
from agentcore.tools import ToolContext
from agentcore.workspace import Workspace
from opened_tool import KeepingHost
from talks import events_of

Write: TypeAlias = Callable[..., Path]


async def read(project: Path, host_parts: set[str] | None = None, **arguments: Any) -> str:
    """Call the tool."""
    (tool,) = Skills().tools()
    secrets = SecretRegistry({"TOKEN": "correct-horse-battery"})
    async with LocalWorkspace(project) as workspace:
        host = KeepingHost(workspace, secrets)
        host.parts = host_parts or set()
        ctx = ToolContext(
            workspace=workspace,
            secrets=secrets,
            conversation_id="conversation",
            action_id="ev_1",
            call_id="call_1",
            tool_name="skill",
            host=host,
        )
        assert tool.execute is not None
        observation = await tool.execute(tool.parse(arguments), ctx)
        return "\n".join(block.text for block in observation.blocks())


async def test_it_reads_a_skill_with_its_folder_and_files(project: Path, write: Write) -> None:
    folder = write("pdf", "Fill it.").parent
    (folder / "references").mkdir()
    (folder / "references/api.md").write_text("The API: correct-horse-battery\u200b")
    text = await read(project, name="pdf")
    assert "Fill it." in text
    assert f"Its folder is {folder}." in text
    assert "references/api.md" in text
    text = await read(project, name="/pdf", file="./references/api.md")
    assert text.startswith("The API: ")
    assert "horse" not in text
    assert "\u200b" not in text


@pytest.mark.parametrize("file", ["../other/SKILL.md", "/etc/passwd", "SKILL.md", "link.md", "references"])
async def test_no_file_outside_of_the_skills_folder_is_read(file: str, project: Path, write: Write) -> None:
    folder = write("pdf").parent
    write("other")
    (folder / "references").mkdir()
    (folder / "link.md").symlink_to("/etc/passwd")
    with pytest.raises(ToolError, match="has no file"):
        await read(project, name="pdf", file=file)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("deplyo", "Did you mean: deploy"),
        ("../deploy", "no skill"),
        ("zzz", "There are: deploy"),
        ("release", "for the user to call, by /release"),
    ],
)
async def test_a_name_that_is_not_there_is_answered_with_those_that_are(
    name: str, sentence: str, project: Path, write: Write
) -> None:
    write("deploy")
    write("release", "x", "disable-model-invocation: true")
    with pytest.raises(ToolError, match=sentence):
        await read(project, name=name)


async def test_what_is_shown_already_is_said_so_in_a_sentence(project: Path, write: Write) -> None:
    write("deploy", "Do it well.")
    text = await read(project, {"skill:deploy"}, name="deploy")
    assert text == "The skill 'deploy' is shown above already. Follow it from there."


async def test_a_skill_activated_in_a_conversation_is_shown_once(project: Path, write: Write) -> None:
    write("deploy", "Ask first.", "triggers:", "  - production")
    write("pdf", "Fill it.", "paths: '*.pdf'")
    write("broken").write_text("no frontmatter")
    llm = ScriptedLLM(
        [
            call("skill", name="deploy"),
            call("skill", name="pdf"),
            call("skill", name="pdf"),
            say("Done."),
            say("Again."),
        ]
    )
    agent = Agent(llm=llm, context=AgentContext(sources=(Skills(),)))
    async with Conversation(agent, workspace=project, store=MemoryStore()) as conversation:
        await conversation.send("To production, please.")
        await conversation.run()
        await conversation.send("production, with a pdf: /x.pdf")
        await conversation.run()
        (prompt,) = events_of(conversation, SystemPromptEvent)
        assert list(prompt.parts) == ["skills"]
        assert "- deploy (project): Use for deploy." in prompt.prompt
        assert [event.name for event in events_of(conversation, ContextAdded)] == ["skill:deploy"]
        first, second, third = (
            event.text for event in events_of(conversation, ObservationEvent) if event.tool_name == "skill"
        )
        assert "shown above already" in first
        assert "Fill it." in second
        assert "shown above already" in third
        assert events_of(conversation, AgentErrorEvent) == []
        notices = [
            event.update.detail
            for event in events_of(conversation, ConversationStateUpdateEvent)
            if isinstance(event.update, ContextNotice)
        ]
        assert any("broken/SKILL.md:1:" in str(detail) for detail in notices)


async def test_skills_work_in_a_workspace_that_is_not_this_machine(project: Path, write: Write, home: Path) -> None:
    """The project's are read by the workspace alone, the user's on this machine."""
    write("ours")
    write("mine", at=home)

    class Elsewhere:
        """A workspace that is no `LocalWorkspace`, and notes what it reads."""

        def __init__(self, inner: LocalWorkspace) -> None:
            self.inner = inner
            self.read_paths: list[str] = []

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        async def read(self, path: str, **settings: Any) -> bytes:
            self.read_paths.append(path)
            return await self.inner.read(path, **settings)

    async with LocalWorkspace(project) as inner:
        workspace = Elsewhere(inner)
        opened = await Skills(packages=False).open(SourceContext(workspace=cast("Workspace", workspace), mask=str))
        assert sorted(opened.library.skills) == ["mine", "ours"]
        assert workspace.read_paths == [f"{project}/.agents/skills/ours/SKILL.md"]
