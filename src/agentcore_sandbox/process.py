"""`BoxProcess`: a process in a box, over one channel."""

from __future__ import annotations

from typing import Final, final

import anyio
from anyio.lowlevel import checkpoint

from agentcore.errors import WorkspaceError
from agentcore_sandbox.channel import Channel
from agentcore_sandbox.frames import StreamNumber
from agentcore_sandbox.networking import RefusalNotes

_CONFIRM_SECONDS: Final = 0.5
"""How long sending goes on for a caller who is cancelled, until it is known that what was sent arrived."""


@final
class BoxProcess:
    """A process in a box, as `Process` describes it."""

    def __init__(self, channel: Channel, pid: int, *, has_terminal: bool, notes: RefusalNotes | None = None) -> None:
        self._channel = channel
        self._pid = pid
        self._has_terminal = has_terminal
        self._notes = notes
        self._pending = b""
        self._begins_line = True

    @property
    def pid(self) -> int:
        return self._pid

    @property
    def returncode(self) -> int | None:
        return self._channel.exit_code

    async def send(self, data: bytes) -> None:
        await self._channel.send(data)
        # Only with the answer is it there; what is on the way would hide that nothing reads. All of it is on the way by now, so a caller
        # who is cancelled has to learn that it arrived, as a write to a terminal of this machine is whole or not begun.
        answer = None
        with anyio.move_on_after(_CONFIRM_SECONDS, shield=True):
            answer = await self._channel.call("drain")
        if answer is None:
            answer = await self._channel.call("drain")
        if answer.get("result") is False:
            raise anyio.BrokenResourceError

    async def send_eof(self) -> None:
        if self._has_terminal:
            await self.send(b"\x04")
        else:
            await self._channel.send_eof()

    async def receive(self, max_bytes: int = 65536) -> bytes:
        if self._notes is None or not self._has_terminal:
            return await self._channel.receive(max_bytes)
        if not self._pending:
            self._pending = self._with_notes(await self._channel.receive(max_bytes), self._notes)
        return self._take(max_bytes)

    async def receive_stderr(self, max_bytes: int = 65536) -> bytes:
        if self._notes is None or self._has_terminal:
            return await self._channel.receive(max_bytes, StreamNumber.ERR)
        if not self._pending:
            try:
                return await self._channel.receive(max_bytes, StreamNumber.ERR)
            except anyio.EndOfStream:
                # At its end, where nothing that the program writes is torn.
                self._pending = self._notes.take()
                if not self._pending:
                    raise
        return self._take(max_bytes)

    def _with_notes(self, data: bytes, notes: RefusalNotes) -> bytes:
        """Put what was refused at the beginning of a line on the terminal, if one begins here."""
        begin = 0 if self._begins_line else data.find(b"\n") + 1
        if begin or self._begins_line:
            data = data[:begin] + notes.take().replace(b"\n", b"\r\n") + data[begin:]
        self._begins_line = data.endswith(b"\n")
        return data

    def _take(self, max_bytes: int) -> bytes:
        data, self._pending = self._pending[:max_bytes], self._pending[max_bytes:]
        return data

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
