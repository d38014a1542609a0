"""A folder of this machine that behaves as a box does: it is fenced, it is lost, it knows why a command was killed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from anyio.lowlevel import checkpoint

from agentcore import LocalWorkspace
from agentcore.errors import WorkspaceLost
from agentcore.workspace import Command, CommandResult, Process, WorkspaceSpec


class Boxlike(LocalWorkspace):  # pyright: ignore[reportGeneralTypeIssues] a class of its own would be the whole protocol again
    """Lost when a file `lost` is in the folder, and from then on."""

    def __init__(self, path: str, box: str = "box_1") -> None:
        super().__init__(path)
        self.box = box
        self.fences: list[tuple[int, str]] = []
        self.why_killed: str | None = None
        self.lost: WorkspaceLost | None = None
        self.lose_at: bytes | None = None

    def record(self) -> WorkspaceSpec:
        params = {"path": self.root, "box": self.box}
        return WorkspaceSpec(kind="boxlike", params={**params}, loosened=("Memory is not limited.",))

    async def fence(self, epoch: int, owner: str) -> None:
        await checkpoint()
        self.check()
        self.fences.append((epoch, owner))

    async def explain_kill(self) -> str | None:
        await checkpoint()
        return self.why_killed

    def lose(self, reason: str) -> None:
        self.lost = WorkspaceLost("The container ran out of memory. Raise memory=.", reason=reason)

    async def run(self, command: Command, **options: Any) -> CommandResult:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self.lose_at is not None and self.lose_at in (options.get("stdin") or b""):
            self.lose("engine")
        return await super().run(command, **options)

    def check(self) -> None:
        if self.lost is not None:
            raise self.lost

    @asynccontextmanager
    async def open_process(  # pyright: ignore[reportIncompatibleMethodOverride] only what the protocol asks for
        self,
        command: Command,
        *,
        pty: bool = False,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        size: tuple[int, int] = (80, 24),
    ) -> AsyncGenerator[Process]:
        self.check()
        async with super().open_process(command, pty=pty, cwd=cwd, env=env, size=size) as process:
            yield cast("Process", _BoxProcess(process, self))


class _BoxProcess:
    """A process whose end tells of the box's."""

    def __init__(self, process: Process, box: Boxlike) -> None:
        self._process = process
        self._box = box

    def __getattr__(self, name: str) -> object:
        return getattr(self._process, name)

    async def wait(self) -> int:
        code = await self._process.wait()
        if self._box.why_killed is None and code == 137:
            self._box.lose("oom")
            self._box.check()
        return code
