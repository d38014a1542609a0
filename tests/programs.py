"""Programs in processes of their own, for what only a process can show: kill -9, exit codes, locks."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

SECONDS = 60


def needs(program: str, package: str | None = None) -> pytest.MarkDecorator:
    """Skip a test where a program is not installed, and name the package to install."""
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"needs {program}: install {package or program}")


class Program:
    """A process whose output is read line by line."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        self.process = process
        self._output = BufferedByteReceiveStream(process.stdout)

    async def line(self) -> str:
        """Wait for the next line.

        Raises:
            anyio.IncompleteRead: The output has ended.
        """
        with anyio.fail_after(SECONDS):
            return (await self._output.receive_until(b"\n", 65_536)).decode()

    async def rest(self) -> list[str]:
        """Read the lines until the output ends."""
        lines: list[str] = []
        with suppress(anyio.IncompleteRead):
            while True:
                lines.append(await self.line())
        return lines

    async def kill(self) -> list[str]:
        """Kill it with SIGKILL and return the lines that it had written before."""
        self.process.kill()
        lines = await self.rest()
        await self.wait()
        return lines

    async def wait(self) -> int:
        """Wait until it ends and return its exit code."""
        with anyio.fail_after(SECONDS):
            return await self.process.wait()


@asynccontextmanager
async def start_python(*command: str | Path, env: Mapping[str, str], cwd: Path) -> AsyncGenerator[Program]:
    """Start `python COMMAND` with this environment; kill it at the end if need be."""
    async with await anyio.open_process(
        [sys.executable, *map(str, command)], stdin=subprocess.PIPE, stderr=None, env=env, cwd=cwd
    ) as process:
        try:
            yield Program(process)
        finally:
            if process.returncode is None:
                process.kill()


def run_here(monkeypatch: pytest.MonkeyPatch, file: Path, *arguments: str) -> int:
    """Run a program in this process, in a namespace of its own, and return its exit code."""
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", [str(file), *arguments])
        patch.setattr(sys, "path", [str(file.parent), *sys.path])
        try:
            runpy.run_path(str(file), run_name="__main__")
        except SystemExit as ended:
            return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0
