"""Who may use a box: two conversations that share one, and an opening that is overtaken by another of the same conversation."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import anyio

from agentcore import Conversation, MemoryStore
from agentcore.errors import WorkspaceLost
from agentcore.testing import call, say
from agentcore.testing.workspace_process_contract import refused, still_alive, wait_for_lines
from agentcore_sandbox.workspace import BoxWorkspace
from agentcore_tools import run_tool
from talks import scripted

_RUNS: Final = "echo $$ >>pids; setsid sleep 1000 & echo $! >>pids; exec sleep 1000"


async def share(box: BoxWorkspace) -> None:
    """Use an open box for two conversations at once, one of which is opened again, and then its next helper."""
    store = MemoryStore()
    with anyio.fail_after(120):
        for killed in (False, True):
            async with box.open_process(_RUNS):
                pids = await wait_for_lines(box, "pids", 2)
                for _ in range(2):
                    async with (
                        _talk("a", box, store) as first,
                        _talk("b", box, MemoryStore()) as second,
                        anyio.create_task_group() as tasks,
                    ):
                        tasks.start_soon(first.run, "go")
                        tasks.start_soon(second.run, "go")
                # What this opening of the box runs is spared.
                assert set(await still_alive(box, pids)) == set(pids)
            await box.run("rm pids")
            if not killed:
                with suppress(WorkspaceLost):
                    await box.run("kill -9 $PPID; sleep 1000")
        assert sorted((await box.run("cat said-*")).stdout.split()) == list("aaaabbbb")


def _talk(name: str, box: BoxWorkspace, store: MemoryStore) -> Conversation:
    agent = scripted([call("run", command=f"echo {name} >>said-$PPID-$$"), say("done")], run_tool())
    return Conversation(agent, box, id=name, store=store)


async def take_over(earlier: BoxWorkspace, later: BoxWorkspace) -> None:
    """Open a conversation in a box where an earlier opening of it still runs something, and have that one wake up."""
    with anyio.fail_after(120):
        await earlier.fence(1, "c")
        async with earlier.open_process(_RUNS):
            pids = await wait_for_lines(later, "pids", 2)
            await later.fence(2, "c")
            assert await still_alive(later, pids) == []
            error = await refused(WorkspaceLost, earlier.run("true"))
        assert error.reason in ("fenced", "exited")
        assert (await refused(WorkspaceLost, earlier.run("true"))).reason == "fenced"
        assert (await refused(WorkspaceLost, later.fence(1, "c"))).reason == "fenced"
        assert (await later.run("echo fine")).stdout == "fine\n"
        # What was open for a conversation that went elsewhere can be used by another one, and hinders nobody.
        await earlier.fence(1, "d")
        assert (await earlier.run("echo fine")).stdout == "fine\n"
        assert (await later.run("echo fine")).stdout == "fine\n"
