"""A watcher and its connection: beside the sending, somebody reads, because a server tells only there that a client left.

Hypercorn's `send` raises nothing after a disconnect, and uvicorn's for SSE neither.

A send that takes too long is cancelled. Hypercorn's is shielded on trio, and no server then drops what it has buffered:
`bound_sends` has the kernel end such a connection.
"""

from __future__ import annotations

import socket
import sys

import anyio
from starlette.types import Receive

from agentcore_serve.streams.watched import ClientFrames
from agentcore_serve.streams.watcher import Send, Watcher


def bound_sends(listener: socket.socket, seconds: float) -> None:
    """Have the kernel end connections of this listener whose other side takes nothing for so long. On Linux alone."""
    if sys.platform == "linux" and listener.family in (socket.AF_INET, socket.AF_INET6):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1000))


async def send_until_end(watcher: Watcher, receive: Receive, send: Send, frames: ClientFrames | None = None) -> None:
    """Run a watcher until its end, which a disconnect is too.

    Args:
        watcher: Who watches.
        receive: The connection's. What a client sends is passed over: commands are requests of their own.
        send: Sends encoded frames.
        frames: Those for this client alone.
    """

    async def listen() -> None:
        while (await receive())["type"] not in ("http.disconnect", "websocket.disconnect"):
            pass
        watcher.cut("gone")

    async def relay(frames: ClientFrames) -> None:
        while not frames.closed:
            if taken := frames.take():
                watcher.add(taken)
            await frames.news.wait()
        # A client that lost this connection, and has not closed it, has come back on another one.
        watcher.dismiss("replaced")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen, name="listen for a disconnect")
        if frames is not None:
            tasks.start_soon(relay, frames, name="relay what is asked of a client")
        await watcher.run(send)
        tasks.cancel_scope.cancel("the stream has ended")
