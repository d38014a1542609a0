"""The behaviour that all toolsets share, as tests: subclass it where your toolset is tested."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from tempfile import TemporaryDirectory

import anyio
from anyio.lowlevel import checkpoint
from anyio.to_thread import run_sync

from agentcore.secrets import SecretRegistry
from agentcore.testing.cancelling import cancel_everywhere
from agentcore.tools import OpenToolset, Tool, Toolset, ToolsetContext, resolve_toolset
from agentcore.workspace import LocalWorkspace

_SECRET = "value-of-a-secret-that-nobody-writes-down"  # noqa: S105 it opens nothing


class ToolsetContract:
    """The behaviour that all toolsets share, as async tests for pytest with anyio's plugin (`anyio_mode = "auto"`).

    A subclass has a fixture `toolset`. Where the toolset needs secrets, `secrets` names them; in these tests they all have
    the same value.

        class TestMyToolset(ToolsetContract):
            @pytest.fixture
            def toolset(self):
                return MyToolset()
    """

    secrets: Sequence[str] = ()
    """The names of the secrets that it asks for."""

    @asynccontextmanager
    async def opening(self, toolset: Toolset, conversation_id: str = "conversation") -> AsyncGenerator[OpenToolset]:
        """Open it as a conversation does: in an empty folder, within a bound."""
        folder = await run_sync(TemporaryDirectory)
        try:
            async with LocalWorkspace(folder.name) as workspace:
                context = ToolsetContext(
                    workspace=workspace,
                    conversation_id=conversation_id,
                    secrets=SecretRegistry(dict.fromkeys(self.secrets, _SECRET)),
                    notice=lambda _: None,
                )
                async with toolset.open(context) as opened:
                    yield opened
        finally:
            with anyio.CancelScope(shield=True):
                await run_sync(folder.cleanup)

    async def test_it_is_a_toolset(self, toolset: Toolset) -> None:
        await checkpoint()
        assert isinstance(toolset, Toolset)
        assert toolset.name

    async def test_its_tools_are_there_without_waiting(self, toolset: Toolset) -> None:
        async with self.opening(toolset) as opened:
            tools = list(opened.tools())
            assert all(isinstance(tool, Tool) for tool in tools)
            names = [tool.name for tool in tools]
            assert len(names) == len(set(names)), "two tools have one name"
            assert all(tool.schema.description for tool in tools), "a tool is described to nobody"
            assert opened.instructions is None or opened.instructions.strip()

    async def test_a_tool_that_has_not_changed_is_the_same_object(self, toolset: Toolset) -> None:
        async with self.opening(toolset) as opened:
            assert list(opened.tools()) == list(opened.tools()), "tools are made anew each time they are asked for"

    async def test_it_can_be_opened_again(self, toolset: Toolset) -> None:
        digests: list[list[str]] = []
        for _ in range(2):
            async with self.opening(toolset) as opened:
                digests.append(sorted(tool.schema.digest for tool in opened.tools()))
        assert digests[0] == digests[1], "the same tools are described in another way the next time"

    async def test_two_conversations_can_have_it_open(self, toolset: Toolset) -> None:
        both = anyio.Event()
        open_now = 0

        async def hold(conversation_id: str) -> None:
            nonlocal open_now
            async with self.opening(toolset, conversation_id) as opened:
                open_now += 1
                if open_now == 2:
                    both.set()
                await both.wait()
                assert list(opened.tools()) is not None

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(hold, "one")
                tasks.start_soon(hold, "two")

    async def test_it_is_closed_only_when_it_is(self, toolset: Toolset) -> None:
        returned = False

        async def wait(opened: OpenToolset) -> None:
            nonlocal returned
            await opened.wait_closed()
            returned = True

        async with self.opening(toolset) as opened, anyio.create_task_group() as tasks:
            tasks.start_soon(wait, opened)
            await anyio.wait_all_tasks_blocked()
            assert not returned, "wait_closed returned although it is open"
            tasks.cancel_scope.cancel()

    async def test_an_opening_that_is_cancelled_anywhere_leaves_one_that_works(self, toolset: Toolset) -> None:
        async def open_and_close() -> None:
            async with self.opening(toolset):
                pass

        with anyio.fail_after(300):  # noqa: ASYNC912 every attempt waits
            for attempt in cancel_everywhere():
                await attempt(open_and_close)
        async with self.opening(toolset) as opened:
            assert list(opened.tools()) is not None

    async def test_its_record_holds_no_secret_and_makes_it_again(self, toolset: Toolset) -> None:
        async with self.opening(toolset):
            spec = toolset.record()
        if spec is None:
            return
        assert _SECRET not in spec.model_dump_json(), "the value of a secret would be in every log"
        assert (await run_sync(resolve_toolset, spec)).record() == spec
