"""The workspace is recorded, and a conversation that is opened again goes back to it."""

from __future__ import annotations

import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Self, cast

import pytest

from agentcore import Conversation, FileStore, Host, LocalWorkspace, MemoryStore, Store, WorkspaceOpened
from agentcore.errors import PathError, WorkspaceNotRestored
from agentcore.workspace import WorkspaceSpec, register_workspace
from talks import events_of, log_of, scripted, talk


def back(store: Store, workspace: Any = None) -> AbstractAsyncContextManager[Conversation]:
    """Open the conversation, somewhere or where it was."""
    return talk(["Hi."], store=store, id="c", workspace=workspace)


async def refused(store: Store, match: str) -> WorkspaceNotRestored:
    with pytest.raises(WorkspaceNotRestored, match=match) as caught:
        async with back(store):
            pass
    return caught.value


def opened(conversation: Conversation) -> list[tuple[str, dict[str, Any]]]:
    return [(event.workspace, dict(event.spec)) for event in events_of(conversation, WorkspaceOpened)]


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
    async with back(store) as conversation:  # a new one: the current folder
        assert conversation.workspace.root == str(project)
    monkeypatch.chdir("/")
    async with back(store) as conversation:
        assert conversation.workspace.root == str(project)
        assert opened(conversation) == [("local", {"root": str(project)})]
    async with Host() as host:
        conversation = await host.open(scripted([]), store=store, id="c")
        assert conversation.workspace.root == str(project)
        assert len(opened(conversation)) == 1


async def test_another_workspace_is_recorded_and_gone_back_to(project: Path) -> None:
    store = MemoryStore()
    other = project.parent / "other"
    other.mkdir()
    for workspace in (project, other, other):
        async with back(store, workspace):
            pass
    async with back(store) as conversation:
        assert conversation.workspace.root == str(other)
        assert [spec["root"] for _, spec in opened(conversation)] == [str(project), str(other)]


async def test_a_folder_that_is_gone_is_named_and_so_is_the_way_on(project: Path) -> None:
    store = MemoryStore()
    async with back(store, project):
        pass
    project.rmdir()
    error = await refused(store, rf"'c' cannot go back .*{project}.* Pass workspace=\.\.\. ")
    assert isinstance(error.__cause__, PathError)
    with pytest.raises(PathError):
        async with back(store, project):
            pass
    async with back(store, project.parent) as conversation:
        assert conversation.workspace.root == str(project.parent)


async def test_variables_are_recorded_by_name_and_have_to_be_passed_again(project: Path) -> None:
    store = MemoryStore()
    workspace = LocalWorkspace(project, env={"TOKEN": "very-secret"}, inherit_env=("PATH",))
    async with back(store, workspace) as conversation:
        (recorded,) = opened(conversation)
    assert recorded == ("local", {"root": str(project), "inherit_env": ["PATH"], "env": ["TOKEN"]})
    await refused(store, rf"its variables \(TOKEN\) are not recorded; the folder was {project}")


@pytest.mark.parametrize("inherit", [False, ("PATH", "HOME")])
async def test_what_commands_inherit_comes_back(project: Path, inherit: bool | tuple[str, ...]) -> None:
    store = MemoryStore()
    async with back(store, LocalWorkspace(project, inherit_env=inherit)) as first:
        before = (await first.workspace.run("env | cut -d= -f1 | sort")).stdout
    async with back(store) as second:
        assert (await second.workspace.run("env | cut -d= -f1 | sort")).stdout == before
        assert len(opened(second)) == 1


async def test_a_workspace_without_a_record_has_to_be_passed_again(project: Path) -> None:
    store = MemoryStore()
    workspace = Elsewhere(project)
    async with back(store, workspace) as conversation:
        assert opened(conversation) == [("custom", {"class": "Elsewhere"})]
    await refused(store, r"\(class Elsewhere\) has no record\(\)")


async def test_a_registered_kind_is_made_again(project: Path) -> None:
    store = MemoryStore()
    register_workspace("tests.elsewhere", cast("Any", Recorded))
    async with back(store, Recorded(str(project))):
        pass
    async with back(store) as conversation:
        assert isinstance(conversation.workspace, Recorded)
        assert conversation.workspace.root == str(project)
    with pytest.raises(ValueError, match="belongs to another workspace factory"):
        register_workspace("tests.elsewhere", cast("Any", Elsewhere))


async def test_a_kind_in_a_log_decides_no_import(project: Path) -> None:
    store = await log_of(WorkspaceOpened(workspace="antigravity", spec={"root": str(project)}))
    await refused(store, "a workspace of the kind 'antigravity' cannot be made again: no factory has this name")
    assert "antigravity" not in sys.modules


async def test_a_recorded_root_that_is_no_folder_s_name_is_refused(project: Path) -> None:
    store = await log_of(WorkspaceOpened(workspace="local", spec={"root": str(project), "shell": "zsh"}))
    await refused(store, r"the kind 'local' cannot be made again: .*shell")


async def test_a_fork_works_where_its_origin_did(project: Path) -> None:
    store = MemoryStore()
    async with back(store, project) as conversation:
        await conversation.run("Hello")
        fork = await conversation.fork()
        early = await conversation.fork(at=0)
    for each in (fork, early):
        async with talk([], store=store, id=each) as conversation:
            assert conversation.workspace.root == str(project)
