"""Doing a terminal's actions: one shell per conversation, replaced when it ends."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, Literal, final

import anyio
from anyio import get_cancelled_exc_class
from anyio.abc import TaskGroup

from agentcore.errors import ToolError, WorkspaceError
from agentcore.tools import ToolContext
from agentcore.workspace import Workspace
from agentcore_tools.terminal.action import TerminalAction
from agentcore_tools.terminal.keys import is_key
from agentcore_tools.terminal.observation import TerminalObservation
from agentcore_tools.terminal.shell import Shell
from agentcore_tools.terminal.spool import shortened

__all__ = ["Terminal", "open_terminal"]

# People see what comes at once, and a flood in pieces.
_SHOW_SECONDS: Final = 0.05
_STOP_SECONDS: Final = 12.0


@asynccontextmanager
async def open_terminal(
    workspace: Workspace,
    conversation_id: str,  # noqa: ARG001 a tool is opened with it
    *,
    quiet_seconds: float,
    input_seconds: float,
) -> AsyncGenerator[Terminal]:
    """Open a terminal for one conversation; leaving ends its shell and everything that was started there."""
    try:
        async with anyio.create_task_group() as tasks:
            yield Terminal(workspace, tasks, quiet_seconds=quiet_seconds, input_seconds=input_seconds)
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        error, *others = group.exceptions
        if others:
            raise
        # The group would only say that there was a task group.
        raise error from error.__cause__


@final
class Terminal:
    """Does the actions of one conversation, one at a time. Its shell is started when it is first needed."""

    def __init__(self, workspace: Workspace, tasks: TaskGroup, *, quiet_seconds: float, input_seconds: float) -> None:
        self._workspace = workspace
        self._tasks = tasks
        self._quiet_seconds = quiet_seconds
        self._input_seconds = input_seconds
        self._turn = anyio.Lock()
        self._shell: Shell | None = None
        self._resume_told = False
        """Of a conversation that was resumed: whether the model knows that its shell is gone."""
        self._end_told = False
        """Of a shell that has ended: whether the model knows."""

    async def __call__(self, action: TerminalAction, ctx: ToolContext) -> TerminalObservation:
        """Do an action. Cancelling it ends the command that runs, with all that the command started."""
        async with self._turn:
            try:
                observation = await self._do(action, ctx)
                if ctx.resumed and not self._resume_told:
                    self._resume_told = True
                    observation = observation.model_copy(update={"new_shell": True})
                text, whole_at = await shortened(observation.text, ctx)
                return observation.model_copy(update={"text": text, "whole_at": whole_at})
            except get_cancelled_exc_class():
                with anyio.move_on_after(_STOP_SECONDS, shield=True):
                    await self._stop()
                raise

    async def _do(self, action: TerminalAction, ctx: ToolContext) -> TerminalObservation:
        shell, command = self._shell, action.command.strip()
        if action.reset:
            if action.is_input:
                raise ToolError("reset starts a new shell, and nothing runs in that to type into: leave is_input out.")
            if shell is not None:
                await shell.close()
            if not command:
                earlier = self._earlier()
                await self._living_shell()
                return TerminalObservation(text=earlier, new_shell=True)
        elif action.is_input or not command:
            return await self._go_on(action, ctx)
        elif shell is not None and shell.busy and is_key(command):
            # It can't have been meant as a command, and is_input was forgotten.
            return await self._go_on(action.model_copy(update={"is_input": True}), ctx)
        elif shell is not None and shell.busy:
            return TerminalObservation(text=shell.take(), running=True, problem="still_running")
        return await self._run(action, ctx)

    async def _run(self, action: TerminalAction, ctx: ToolContext) -> TerminalObservation:
        _refuse(action.command)
        variables = {name: await ctx.secrets.get(name) for name in _named(action.command, ctx.secrets.names)}
        earlier = self._earlier()
        shell, new = await self._living_shell()
        try:
            earlier += _titled(
                "Since the last command, from the background:", await shell.run(action.command, variables)
            )
        except WorkspaceError as error:
            await shell.close()
            raise ToolError(f"{error} The command was not run. The next one gets a new shell.") from error
        observation = await self._wait(shell, action.timeout, self._quiet_seconds, ctx)
        text = f"{earlier}[From this command:]\n{observation.text}" if earlier else observation.text
        return observation.model_copy(update={"text": text, "new_shell": new})

    async def _go_on(self, action: TerminalAction, ctx: ToolContext) -> TerminalObservation:
        """Type into what runs, or wait for it."""
        shell = self._shell
        if shell is None or not shell.busy:
            late = None if shell is None else self._outcome(shell)
            if late is None:
                text = "" if shell is None else shell.take()
                return TerminalObservation(text=text, problem="nothing_running")
            if not action.is_input:
                return late
            return late.model_copy(update={"text": _lines(late.text) + "[It had ended before the input came.]\n"})
        if action.is_input and action.command:
            try:
                await shell.send(action.command)
            except WorkspaceError as error:
                raise ToolError(f"{error} What runs does not read its input. Wait for it, or interrupt it.") from error
        return await self._wait(
            shell, action.timeout, self._input_seconds if action.is_input else self._quiet_seconds, ctx
        )

    async def _wait(
        self, shell: Shell, timeout: float | None, quiet_seconds: float, ctx: ToolContext
    ) -> TerminalObservation:
        """Wait for the command's end, or until there is nothing to wait for, and show people what comes."""
        began = anyio.current_time()
        limit = math.inf if timeout is None else began + timeout
        timed_out: Literal["quiet", "limit"] | None = None
        while shell.busy and timed_out is None:
            quiet = math.inf if timeout is not None else max(shell.last_output, began) + quiet_seconds
            with anyio.move_on_after(min(limit, quiet) - anyio.current_time()) as waiting:
                await shell.changed()
            if waiting.cancelled_caught:
                timed_out = "limit" if limit < math.inf else "quiet"
            await self._show(shell, ctx)
        await self._show(shell, ctx)
        if not shell.busy and (outcome := self._outcome(shell)) is not None:
            return outcome
        return TerminalObservation(text=shell.take(), running=True, timed_out=timed_out)

    async def _show(self, shell: Shell, ctx: ToolContext) -> None:
        while live := shell.take_live():
            await ctx.progress(live)
            with anyio.move_on_after(_SHOW_SECONDS):
                await shell.idle()

    def _outcome(self, shell: Shell) -> TerminalObservation | None:
        """Give how the command ended, or the shell, where that has not been told."""
        ended = shell.take_ended()
        text = "" if ended is None else ended.text
        if not shell.alive and not self._end_told:
            self._end_told = True
            return TerminalObservation(text=text + shell.take(), exit_code=shell.exit_code, shell_ended=True)
        if ended is None:
            return None
        code, cwd, python, _ = ended.report
        return TerminalObservation(text=text, exit_code=code, cwd=cwd, python=python or None)

    def _earlier(self) -> str:
        """Tell what has not been told of the command before."""
        outcome = None if self._shell is None else self._outcome(self._shell)
        if outcome is None:
            return ""
        if outcome.exit_code is None:
            return _titled("From the shell before this one:", outcome.text)
        what = "shell" if outcome.shell_ended else "command"
        head = f"[The {what} before this one has ended, with exit code {outcome.exit_code}.]\n"
        return head + _titled("What it had not shown yet:", outcome.text)

    async def _living_shell(self) -> tuple[Shell, bool]:
        """Give the shell, and whether it is a new one in the place of another.

        Raises:
            WorkspaceError: none could be started.
        """
        old = self._shell
        if old is not None and old.alive:
            return old, False
        shell = Shell(self._workspace)
        self._tasks.start_soon(shell.serve, name="shell")
        await shell.ready()
        self._shell, self._end_told = shell, False
        return shell, old is not None

    async def _stop(self) -> None:
        """End the command that runs; if the shell does not come through it, end that too."""
        shell = self._shell
        if shell is not None and shell.busy and not await shell.interrupt():
            await shell.close()


def _refuse(command: str) -> None:
    """Refuse what can't have been meant as a command.

    Raises:
        ToolError: it is a list or an object, or bash can't be given it.
    """
    if "\0" in command:
        raise ToolError("There is a NUL character in the command, and bash can't take one. For printf, write \\0.")
    for read in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            if isinstance(read(command.strip()), list | dict):
                raise ToolError(
                    "The command is a list or an object, and bash would not understand it. Write one line of text, as you "
                    "would type it."
                )


def _named(command: str, names: Sequence[str]) -> list[str]:
    """Give the names that occur in a command as words."""
    words = set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", command))
    return [name for name in names if name in words]


def _titled(title: str, text: str) -> str:
    return f"[{title}]\n{_lines(text)}" if text else ""


def _lines(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"
