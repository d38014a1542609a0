"""`BoxProcess`: a process in a box, over one channel."""

from __future__ import annotations

from typing import final

import anyio
from anyio.lowlevel import checkpoint

from agentcore.errors import WorkspaceError
from agentcore_sandbox.channel import Channel
from agentcore_sandbox.frames import StreamNumber


@final
class BoxProcess:
    """A process in a box, as `Process` describes it."""

    def __init__(self, channel: Channel, pid: int, *, has_terminal: bool) -> None:
        self._channel = channel
        self._pid = pid
        self._has_terminal = has_terminal

    @property
    def pid(self) -> int:
        return self._pid

    @property
    def returncode(self) -> int | None:
        return self._channel.exit_code

    async def send(self, data: bytes) -> None:
        await self._channel.send(data)
        # Only then is it there; what is on the way would hide that nothing reads.
        if (await self._channel.call("drain")).get("result") is False:
            raise anyio.BrokenResourceError

    async def send_eof(self) -> None:
        if self._has_terminal:
            await self.send(b"\x04")
        else:
            await self._channel.send_eof()

    async def receive(self, max_bytes: int = 65536) -> bytes:
        return await self._channel.receive(max_bytes)

    async def receive_stderr(self, max_bytes: int = 65536) -> bytes:
        return await self._channel.receive(max_bytes, StreamNumber.ERR)

    async def signal(self, signal: int) -> None:
        await self._call_unless_left("signal", signal=signal)

    async def interrupt(self, *, started_within: float | None = None) -> bool:
        if not self._has_terminal:
            await self.terminate()
            return True
        answer = await self._call_unless_left("interrupt", started_within=started_within)
        return answer.get("result") is not False

    async def terminate(self) -> None:
        await self._call_unless_left("terminate")

    async def resize(self, columns: int, rows: int) -> None:
        if not self._has_terminal:
            await checkpoint()
            raise WorkspaceError(f"Process {self._pid} has no terminal to resize. Open it with pty=True.")
        await self._channel.call("resize", columns=columns, rows=rows)

    async def wait(self) -> int:
        await checkpoint()
        await self._channel.exited.wait()
        if self._channel.exit_code is None:
            await self._channel.result()
            raise WorkspaceError(f"Process {self._pid} was ended; its exit code is not known.")
        return self._channel.exit_code

    async def _call_unless_left(self, call: str, **arguments: object) -> dict[str, object]:
        if self._channel.was_left:
            await checkpoint()
            return {}
        return await self._channel.call(call, **arguments)
