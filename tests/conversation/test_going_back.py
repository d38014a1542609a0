"""The workspace is recorded, and a conversation that is opened again goes back to it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Self, cast

import pytest

from agentcore import Agent, Conversation, FileStore, Host, LocalWorkspace, MemoryStore, Workspace, WorkspaceOpened
from agentcore.errors import PathError, WorkspaceNotRestored
from agentcore.record import EventLog
from agentcore.testing import ScriptedLLM
from agentcore.workspace import WorkspaceSpec, register_workspace


def agent() -> Agent:
    return Agent(llm=ScriptedLLM(["Hi."]), tools=[])


def opened(conversation: Conversation) -> list[tuple[str, dict[str, Any]]]:
    events = conversation.state.events
    return [(event.workspace, dict(event.spec)) for event in events if isinstance(event, WorkspaceOpened)]


class Elsewhere:
    """A workspace of the program's own."""

    def __init__(self, path: Path) -> None:
        self._inner = LocalWorkspace(path)

    def __getattr__(self, name: str) -> Any:
        if name == "record":
            raise AttributeError(name)
        return getattr(self._inner, name)

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._inner.__aexit__(None, None, None)


class Recorded(Elsewhere):
    """One that can be made again."""

    def __init__(self, path: str) -> None:
        super().__init__(Path(path))
        self._given = path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def record(self) -> WorkspaceSpec:
        return WorkspaceSpec(kind="tests.elsewhere", params={"path": self._given})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder.resolve()


async def test_a_known_conversation_goes_back_to_its_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileStore(project.parent / "logs")
    monkeypatch.chdir(project)
    async with Conversation(agent(), store=store, id="c") as conversation:  # a new one: the current folder
        assert conversation.workspace.root == str(project)
    monkeypatch.chdir("/")
    async with Conversation(agent(), store=store, id="c") as conversation:
        assert conversation.workspace.root == str(project)
        assert opened(conversation) == [("local", {"root": str(project)})]
    async with Host() as host:
        conversation = await host.open(agent(), store=store, id="c")
        assert conversation.workspace.root == str(project)
        assert len(opened(conversation)) == 1


async def test_another_workspace_is_recorded_and_gone_back_to(project: Path) -> None:
    store = MemoryStore()
    other = project.parent / "other"
    other.mkdir()
    for workspace in (project, other, other):
        async with Conversation(agent(), workspace, store=store, id="c"):
            pass
    async with Conversation(agent(), store=store, id="c") as conversation:
        assert conversation.workspace.root == str(other)
        assert [spec["root"] for _, spec in opened(conversation)] == [str(project), str(other)]


async def test_a_folder_that_is_gone_is_named_and_so_is_the_way_on(project: Path) -> None:
    store = MemoryStore()
    async with Conversation(agent(), project, store=store, id="c"):
        pass
    project.rmdir()
    with pytest.raises(
        WorkspaceNotRestored, match=rf"'c' cannot go back .*{project}.* Pass workspace=\.\.\. "
    ) as caught:
        async with Conversation(agent(), store=store, id="c"):
            pass
    assert isinstance(caught.value.__cause__, PathError)
    with pytest.raises(PathError):
        async with Conversation(agent(), project, store=store, id="c"):
            pass
    async with Conversation(agent(), project.parent, store=store, id="c") as conversation:
        assert conversation.workspace.root == str(project.parent)


async def test_variables_are_recorded_by_name_and_have_to_be_passed_again(project: Path) -> None:
    store = MemoryStore()
    workspace = LocalWorkspace(project, env={"TOKEN": "very-secret"}, inherit_env=("PATH",))
    async with Conversation(agent(), workspace, store=store, id="c") as conversation:
        (recorded,) = opened(conversation)
    assert recorded == ("local", {"root": str(project), "inherit_env": ["PATH"], "env": ["TOKEN"]})
    with pytest.raises(
        WorkspaceNotRestored, match=rf"its variables \(TOKEN\) are not recorded; the folder was {project}"
    ):
        async with Conversation(agent(), store=store, id="c"):
            pass


@pytest.mark.parametrize("inherit", [False, ("PATH", "HOME")])
async def test_what_commands_inherit_comes_back(project: Path, inherit: bool | tuple[str, ...]) -> None:
    store = MemoryStore()
    async with Conversation(agent(), LocalWorkspace(project, inherit_env=inherit), store=store, id="c") as first:
        before = (await first.workspace.run("env | cut -d= -f1 | sort")).stdout
    async with Conversation(agent(), store=store, id="c") as second:
        assert (await second.workspace.run("env | cut -d= -f1 | sort")).stdout == before
        assert len(opened(second)) == 1


async def test_a_workspace_without_a_record_has_to_be_passed_again(project: Path) -> None:
    store = MemoryStore()
    workspace = cast("Workspace", Elsewhere(project))
    async with Conversation(agent(), workspace, store=store, id="c") as conversation:
        assert opened(conversation) == [("custom", {"class": "Elsewhere"})]
    with pytest.raises(WorkspaceNotRestored, match=r"\(class Elsewhere\) has no record\(\)"):
        async with Conversation(agent(), store=store, id="c"):
            pass


async def test_a_registered_kind_is_made_again(project: Path) -> None:
    store = MemoryStore()
    register_workspace("tests.elsewhere", cast("Any", Recorded))
    async with Conversation(agent(), cast("Workspace", Recorded(str(project))), store=store, id="c"):
        pass
    async with Conversation(agent(), store=store, id="c") as conversation:
        assert isinstance(conversation.workspace, Recorded)
        assert conversation.workspace.root == str(project)
    with pytest.raises(ValueError, match="belongs to another workspace factory"):
        register_workspace("tests.elsewhere", cast("Any", Elsewhere))


async def test_a_kind_in_a_log_decides_no_import(project: Path) -> None:
    store = MemoryStore()
    log = await EventLog.create(store, "c")
    await log.append([[WorkspaceOpened(workspace="antigravity", spec={"root": str(project)})]])
    await log.close()
    with pytest.raises(WorkspaceNotRestored, match="no factory makes workspaces of the kind 'antigravity'"):
        async with Conversation(agent(), store=store, id="c"):
            pass
    assert "antigravity" not in sys.modules


async def test_a_recorded_root_that_is_no_folder_s_name_is_refused(project: Path) -> None:
    store = MemoryStore()
    log = await EventLog.create(store, "c")
    await log.append([[WorkspaceOpened(workspace="local", spec={"root": str(project), "shell": "zsh"})]])
    await log.close()
    with pytest.raises(WorkspaceNotRestored, match=r"the kind 'local' cannot be made again: .*shell"):
        async with Conversation(agent(), store=store, id="c"):
            pass


async def test_a_fork_works_where_its_origin_did(project: Path) -> None:
    store = MemoryStore()
    async with Conversation(agent(), project, store=store, id="c") as conversation:
        await conversation.run("Hello")
        fork = await conversation.fork()
        early = await conversation.fork(at=0)
    for each in (fork, early):
        async with Conversation(agent(), store=store, id=each) as conversation:
            assert conversation.workspace.root == str(project)
