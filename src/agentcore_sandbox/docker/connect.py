"""Connecting to the engine. The one place that imports what knows aiodocker, when the first box is started."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from anyio.to_thread import run_sync

from agentcore.errors import MissingExtra
from agentcore_sandbox.docker.address import find_address
from agentcore_sandbox.docker.apart import check_loop, finish

if TYPE_CHECKING:
    from agentcore_sandbox.docker.engine import Engine


async def connect() -> Engine:
    """Connect to the engine at `DOCKER_HOST`, or at the usual socket. Who calls this closes it.

    Raises:
        EngineError: There is none, it does not answer, or it will not do.
        MissingExtra: aiodocker is not installed.
        WorkspaceError: This is not asyncio.
    """
    check_loop()
    address = await run_sync(find_address)
    # A thread, because importing aiohttp takes a while.
    engine = (await run_sync(_load))(address)
    try:
        await engine.connect()
    except BaseException:
        await finish(engine.aclose())  # noqa: ASYNC102 shielded there
        raise
    return engine


@asynccontextmanager
async def open_engine() -> AsyncGenerator[Engine]:
    """Connect for a while; see `connect`."""
    engine = await connect()
    try:
        yield engine
    finally:
        await finish(engine.aclose())  # noqa: ASYNC102 shielded there


def _load() -> type[Engine]:
    try:
        engine: type[Engine] = import_module("agentcore_sandbox.docker.engine").Engine
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("aiodocker", "aiohttp"):
            raise
        raise MissingExtra("DockerWorkspace", "docker") from None
    return engine
