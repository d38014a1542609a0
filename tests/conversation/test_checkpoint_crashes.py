"""Files that are to be brought back are there before anything else starts: after a crash, and where callers leave or hurry."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcore import Conversation, FileStore, HeadMoved, LocalWorkspace, MemoryStore, MessageEvent
from agentcore.errors import WorkspaceLost, WorkspaceNotRestored
from agentcore.events import WorkspaceRestored
from agentcore.record import read_log
from agentcore.testing import ScriptedLLM, say
from boxes_like import Boxlike
from rounds import some_quick
from talks import events_of, scripted


@pytest.mark.slow
@pytest.mark.parametrize("when", some_quick(["after", "before"], 2))
async def test_a_program_killed_between_the_move_and_the_files_has_them_back_when_it_is_opened(
    tmp_path: Path, when: str
) -> None:
    program = str(Path(__file__).with_name("rewound_program.py"))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*filter(None, sys.path)])}
    ended = await anyio.run_process([sys.executable, program, str(tmp_path), when], env=env, check=False)
    assert ended.returncode == -9, ended.stderr.decode()
    store, project = FileStore(tmp_path / "store"), tmp_path / "project"
    cut_off = await read_log(store, "c")
    assert cut_off.checkpoints.due is not None
    async with Conversation(scripted([say("two")]), store=store, id="c") as conversation:
        assert {path.name: path.read_text() for path in project.iterdir()} == {"a": "1"}
        (restored,) = events_of(conversation, WorkspaceRestored)
        assert restored.cause == cut_off.checkpoints.due.id
        assert "and the files of the project with it" in events_of(conversation, MessageEvent)[-1].text
    async with Conversation(scripted([say("two")]), store=store, id="c") as conversation:
        assert len(events_of(conversation, WorkspaceRestored)) == 1  # once
        await conversation.delete()


class Slow(LocalWorkspace):  # pyright: ignore[reportGeneralTypeIssues]
    """Waits before it brings files back."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.began, self.go_on = anyio.Event(), anyio.Event()

    async def run(self, command: Any, **options: Any) -> Any:
        if b'"restore"' in (options.get("stdin") or b""):
            self.began.set()
            await self.go_on.wait()
        return await super().run(command, **options)


@pytest.mark.slow
async def test_a_run_that_comes_meanwhile_starts_when_the_files_are_back(tmp_path: Path) -> None:
    seen: list[int] = []

    def look(_: object) -> object:
        seen.append(len(events_of(conversation, WorkspaceRestored)))
        return say("two")

    workspace = Slow(tmp_path)
    (tmp_path / "a").write_text("1")
    async with Conversation(scripted(ScriptedLLM([say("one"), look])), workspace) as conversation:  # type: ignore[list-item]
        result = await conversation.run("begin")
        await conversation.checkpoint()
        (tmp_path / "a").write_text("2")
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                callers = anyio.CancelScope()

                async def rewind() -> None:
                    with callers:
                        await conversation.rewind(result.last_seq, files=True)

                tasks.start_soon(rewind)
                await workspace.began.wait()
                callers.cancel()  # who asked for it leaves: it is done all the same
                tasks.start_soon(conversation.run, "go on")
                await anyio.wait_all_tasks_blocked()
                assert not seen
                workspace.go_on.set()
        assert seen == [1]
        assert (tmp_path / "a").read_text() == "1"
        assert [event.error for event in events_of(conversation, WorkspaceRestored)] == [None]


@pytest.mark.slow
async def test_closing_meanwhile_leaves_it_to_the_next_opening(tmp_path: Path) -> None:
    store, workspace = MemoryStore(), Slow(tmp_path)
    (tmp_path / "a").write_text("1")
    with anyio.fail_after(30):
        async with Conversation(scripted([say("one")]), workspace, store=store, id="c") as conversation:
            result = await conversation.run("begin")
            await conversation.checkpoint()
            (tmp_path / "a").write_text("2")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(conversation.rewind, result.last_seq)  # without files: nothing is due
                await anyio.wait_all_tasks_blocked()
                assert conversation.state.checkpoints.due is None
            callers = anyio.CancelScope()

            async def rewind() -> None:
                with callers:
                    await conversation.rewind(conversation.state.head, files=True)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(rewind)
                await workspace.began.wait()
                callers.cancel()
            assert len(events_of(conversation, HeadMoved)) == 2
    assert (tmp_path / "a").read_text() == "2"
    async with Conversation(scripted([say("two")]), tmp_path, store=store, id="c"):
        assert (tmp_path / "a").read_text() == "1"


@pytest.mark.slow
async def test_where_the_place_is_lost_it_stays_to_be_done(tmp_path: Path) -> None:
    store, box = MemoryStore(), Boxlike(str(tmp_path))
    (tmp_path / "a").write_text("1")
    async with Conversation(scripted([say("one")]), box, store=store, id="c") as conversation:
        result = await conversation.run("begin")
        await conversation.checkpoint()
        (tmp_path / "a").write_text("2")
        box.lose_at = b'"restore"'
        with pytest.raises(WorkspaceLost):
            await conversation.rewind(result.last_seq, files=True)
        assert conversation.state.checkpoints.due is not None
    with pytest.raises((WorkspaceLost, WorkspaceNotRestored)):
        async with Conversation(scripted([say("two")]), box, store=store, id="c"):
            pass
    async with Conversation(scripted([say("two")]), tmp_path, store=store, id="c"):
        assert (tmp_path / "a").read_text() == "1"
