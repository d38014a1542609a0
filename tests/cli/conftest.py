"""The command line as a user has it: a process of its own, on a pipe or on a terminal.

Most processes are forked from one that has imported everything (see `warm_python`); where the start itself is what is
tested, or the program is to be run end to end, an interpreter is started: `fresh`.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcore.workspace import LocalWorkspace, Process
from warm_python import Forked, OnTerminal, WarmPython, only_a_start_reads

SCRIPTED = Path(__file__).parent / "scripted_program.py"
SECONDS = 90

_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Run each test once, not on both event loops: the program that is tested brings its own."""
    return "asyncio"


@dataclass
class Ended:
    """A run that is over."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """What was printed, as JSON Lines."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Screen:
    """A run on a terminal."""

    process: Process | OnTerminal
    text: str = ""
    """All that was shown so far, without colours and cursor moves."""
    raw: str = ""
    _read_to: int = field(default=0)

    async def shows(self, wanted: str) -> str:
        """Wait until this is shown, behind what was waited for before; give what is shown up to its end."""
        with anyio.fail_after(SECONDS):
            while (at := self.text.find(wanted, self._read_to)) < 0:
                try:
                    self.raw += (await self.process.receive()).decode(errors="replace")
                except anyio.EndOfStream:
                    raise AssertionError(f"{wanted!r} was never shown. There was:\n{self.text}") from None
                self.text = _SEQUENCE.sub("", self.raw).replace("\r\n", "\n")
        self._read_to = at + len(wanted)
        return self.text[: self._read_to]

    async def types(self, text: str) -> None:
        """Type this."""
        await self.process.send(text.encode())

    async def ends(self) -> int:
        """Wait for the end, and give the exit code."""
        with anyio.fail_after(SECONDS):
            try:
                while True:
                    self.raw += (await self.process.receive()).decode(errors="replace")
            except anyio.EndOfStream:
                pass
            self.text = _SEQUENCE.sub("", self.raw).replace("\r\n", "\n")
            return await self.process.wait()


@dataclass
class Cli:
    """Starts the program, with a home and a project of its own."""

    home: Path
    project: Path
    environment: dict[str, str]
    warm: WarmPython

    def command(self, *arguments: str) -> list[str]:
        """Give the command line."""
        return [sys.executable, "-m", "agentcore", *arguments]

    async def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        program: Sequence[str] = (),
        fresh: bool = False,
    ) -> Ended:
        """Run it to its end, on pipes."""
        command = [*(program or self.command()), *arguments]
        environment = {**self.environment, **(env or {})}
        with anyio.fail_after(SECONDS):
            if self._needs_a_start(command, env) or fresh:
                ended = await anyio.run_process(command, input=stdin, env=environment, cwd=self.project, check=False)
            else:
                ended = await self.warm.run(command[1:], stdin=stdin, env=environment, cwd=self.project)
        return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    async def play(self, script: str, *arguments: str, env: Mapping[str, str] | None = None) -> Ended:
        """Run a task with a scripted model, on pipes."""
        return await self.run(*arguments, program=self.scripted(script), env=env)

    def scripted(self, script: str) -> list[str]:
        """Give the command line of a task with a scripted model."""
        return [sys.executable, str(SCRIPTED), script]

    @asynccontextmanager
    async def on_terminal(
        self,
        *command: str,
        script: str | None = None,
        program: Sequence[str] = (),
        arguments: Sequence[str] = (),
        columns: int = 100,
        env: Mapping[str, str] | None = None,
        fresh: bool = False,
    ) -> AsyncGenerator[Screen]:
        """Run it on a terminal: a command, a task with a scripted model, or any program."""
        started = [*(program or (self.command(*command) if script is None else self.scripted(script))), *arguments]
        environment = {"TERM": "xterm-256color", **self.environment, **(env or {})}
        size = (columns, 40)
        if self._needs_a_start(started, env) or fresh:
            async with (
                LocalWorkspace(self.project, inherit_env=False) as workspace,
                workspace.open_process(started, pty=True, env=environment, size=size) as process,
            ):
                yield Screen(process)
        else:
            async with self.warm.on_terminal(started[1:], env=environment, cwd=self.project, size=size) as forked:
                yield Screen(forked)

    @asynccontextmanager
    async def started(self, *arguments: str) -> AsyncGenerator[Forked]:
        """Start it without input, and kill it at the end if need be."""
        nothing = os.open(os.devnull, os.O_RDWR)
        try:
            command, streams = self.command(*arguments)[1:], [nothing] * 3
            async with self.warm.start(command, env=self.environment, cwd=self.project, streams=streams) as forked:
                yield forked
        finally:
            os.close(nothing)

    def _needs_a_start(self, command: Sequence[str], env: Mapping[str, str] | None) -> bool:
        return command[0] != sys.executable or command[1] == "-c" or only_a_start_reads(env or {})

    def ids(self) -> list[str]:
        """Name the conversations there are."""
        folder = self.home / "conversations"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def log(self, conversation_id: str | None = None) -> Path:
        """Give the file of a log; of the only one, where none is named."""
        if conversation_id is None:
            (conversation_id,) = self.ids()
        return self.home / "conversations" / conversation_id / "events.jsonl"

    def events(self, conversation_id: str | None = None) -> list[dict[str, Any]]:
        """Read a log as any program could."""
        return [json.loads(line) for line in self.log(conversation_id).read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def cli(tmp_path: Path, surroundings: dict[str, str], warm: WarmPython) -> Cli:
    """Give the program, with a home and a project of its own."""
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    return Cli(home, project, {**surroundings, "HOME": str(tmp_path), "AGENTCORE_HOME": str(home)}, warm)
