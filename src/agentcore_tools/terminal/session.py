"""One session of the terminal: its actions, and the shell that is replaced when it ends."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import math
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Final, Literal, NamedTuple, final

import anyio
from anyio import get_cancelled_exc_class
from anyio.abc import TaskGroup
from pydantic import Field

from agentcore._value import Value
from agentcore.errors import ToolError, WorkspaceError
from agentcore.tools import ToolContext
from agentcore.workspace import Workspace, explain_exit
from agentcore_tools._commands import named_secrets
from agentcore_tools._output import OUTPUT_FILE_BYTES, TEXT_LIMIT, OutputFile, shorten
from agentcore_tools.terminal.call import TerminalAction, TerminalObservation
from agentcore_tools.terminal.foreground import ForegroundState
from agentcore_tools.terminal.input import KEY_WORDS, asks_to_exit, count, key_name, refuse, sets_errexit
from agentcore_tools.terminal.shell import TYPE_SECONDS, Shell

_Seconds = Annotated[float, Field(gt=0)]


class TerminalSettings(Value):
    """The settings of a terminal: see `terminal_tool`."""

    quiet_seconds: _Seconds = 30.0
    input_seconds: _Seconds = 3.0
    type_seconds: _Seconds = TYPE_SECONDS
    keep_bytes: Annotated[int, Field(ge=0)] = OUTPUT_FILE_BYTES
    sessions: Annotated[int, Field(ge=1)] = 8
    overlap: bool = False


# People see what comes at once, and a flood in pieces.
_SHOW_SECONDS: Final = 0.05
# How soon after the last output it is looked at whether the command waits for input, and how far apart that is in the end.
_FIRST_CHECK_SECONDS: Final = 0.25
_LAST_CHECK_SECONDS: Final = 2.0
_STOP_SECONDS: Final = 12.0
# How many characters of the previous command's output may stand in the next command's answer.
_EARLIER_LIMIT: Final = 8_000


class _Answer(NamedTuple):
    """An answer, and the file with all of the output that it may be a part of."""

    observation: TerminalObservation
    whole: OutputFile | None = None
    earlier: str = ""
    """Output of the command before that was not reported yet, or that came from the background since."""


@final
class Session:
    """Does the actions of one session, one at a time. Its shell is started when it is first needed."""

    def __init__(
        self, name: str, workspace: Workspace, tasks: TaskGroup, settings: TerminalSettings, marks: Mapping[str, str]
    ) -> None:
        self._name = name
        self._workspace = workspace
        self._tasks = tasks
        self._settings = settings
        self._marks = marks
        self._turn = anyio.Lock()
        self._shell: Shell | None = None
        self._commands = 1
        """How many commands stand in what runs, or ran last."""
        self._typed = ""
        """The text that was typed last: a command, or the input of one."""
        self._errexit = False
        """True if `set -e` is on in the shell, as far as that is known."""
        self._python: str | None = None
        """The Python that was reported last."""
        self._resume_reported = False
        """Of a conversation that was resumed: whether the model knows that its shell is gone."""
        self._end_reported = False
        """Of a shell that has ended: whether the model knows."""

    @property
    def is_over(self) -> bool:
        """True if it has no shell and nothing is left to report."""
        return not self._turn.locked() and (self._shell is None or (not self._shell.alive and self._end_reported))

    async def __call__(self, action: TerminalAction, ctx: ToolContext) -> TerminalObservation:
        """Do an action. Cancelling it ends the command that runs, with all that the command started."""
        async with self._turn:
            try:
                observation, whole, earlier = await self._do(action, ctx)
                if whole is not None:
                    await whole.finish()
                changes: dict[str, object] = {"session": self._name}
                if ctx.resumed and not self._resume_reported:
                    self._resume_reported = True
                    changes["new_shell"] = True
                changes["killed_because"] = await explain_exit(self._workspace, observation.exit_code)
                text, changes["full_output_path"] = await shorten(
                    observation.text, ctx, _file(ctx), whole, TEXT_LIMIT - len(earlier)
                )
                changes["text"] = f"{earlier}[From this command:]\n{text}" if earlier else text
                return observation.model_copy(update=changes)
            except get_cancelled_exc_class():
                with anyio.move_on_after(_STOP_SECONDS, shield=True):
                    await self._stop()
                raise

    async def _do(self, action: TerminalAction, ctx: ToolContext) -> _Answer:
        shell, command = self._shell, action.command.strip()
        if action.reset:
            if action.is_input:
                raise ToolError("reset starts a new shell, and nothing runs in that to type into: leave is_input out.")
            if shell is not None:
                await shell.close()
            if not command:
                earlier = await self._earlier(ctx)
                await self._living_shell()
                return _Answer(TerminalObservation(text=earlier, new_shell=True))
        elif action.is_input or not command:
            return await self._go_on(action, ctx)
        elif shell is not None and shell.busy and (action.enter is not None or key_name(command) is not None):
            # It can't have been meant as a command, and is_input was forgotten.
            return await self._go_on(action.model_copy(update={"is_input": True}), ctx)
        elif shell is not None and shell.busy:
            stopped = await shell.foreground_state() == "stopped"
            problem = "stopped" if stopped else "still_running"
            observation = TerminalObservation(
                text=shell.take(ctx.secrets.unfinished), running=not stopped, problem=problem
            )
            return _Answer(observation, shell.whole)
        return await self._run(action, ctx)

    async def _run(self, action: TerminalAction, ctx: ToolContext) -> _Answer:
        refuse(action.command)
        commands = await count(action.command)
        variables = await named_secrets(action.command, ctx.secrets)
        earlier = await self._earlier(ctx)
        shell, new = await self._living_shell()
        whole = OutputFile(partial(ctx.open_spool, _file(ctx), limit=self._settings.keep_bytes), TEXT_LIMIT)
        try:
            before = await shell.run(action.command, variables, whole)
        except WorkspaceError as error:
            await shell.close()
            if error.outcome_unknown:
                raise
            raise ToolError(f"{error} The command was not run. The next one starts a new shell.") from error
        self._commands, self._typed = commands, action.command
        self._errexit = self._errexit or sets_errexit(action.command)
        earlier += await self._titled("Since the last command, from the background:", before, ctx)
        answer = await self._wait(shell, action.timeout, self._settings.quiet_seconds, ctx)
        return answer._replace(observation=answer.observation.model_copy(update={"new_shell": new}), earlier=earlier)

    async def _go_on(self, action: TerminalAction, ctx: ToolContext) -> _Answer:
        """Type into what runs, or wait for it."""
        shell = self._shell
        if shell is not None and shell.ending:
            await shell.idle()
        if shell is None or not shell.busy:
            late = None if shell is None else self._outcome(shell)
            if late is None:
                text = "" if shell is None else shell.take(ctx.secrets.unfinished)
                return _Answer(TerminalObservation(text=text, problem="nothing_running"))
            if not action.is_input:
                return late
            text = _lines(late.observation.text) + "[It ended before the input was typed.]\n"
            return late._replace(observation=late.observation.model_copy(update={"text": text}))
        if action.is_input and (action.command or action.enter):
            try:
                await shell.send(action.command, action.enter)
                self._typed = action.command
            except WorkspaceError as error:
                if error.outcome_unknown:
                    raise
                raise ToolError(f"{error} What runs does not read its input. Wait for it, or interrupt it.") from error
        settings = self._settings
        quiet_seconds = settings.input_seconds if action.is_input else settings.quiet_seconds
        answer = await self._wait(shell, action.timeout, quiet_seconds, ctx)
        if action.is_input and action.enter is None and (word := action.command.strip()) in KEY_WORDS:
            return answer._replace(observation=answer.observation.model_copy(update={"pressed": word}))
        return answer

    async def _wait(self, shell: Shell, timeout: float | None, quiet_seconds: float, ctx: ToolContext) -> _Answer:
        """Wait for the command's end, or until there is nothing to wait for, and show people what comes."""
        began = anyio.current_time()
        limit = math.inf if timeout is None else began + timeout
        timed_out: Literal["quiet", "limit"] | None = None
        state: ForegroundState | None = None
        pause = _FIRST_CHECK_SECONDS
        check = began + pause
        while shell.busy and timed_out is None and state is None:
            silent_since = max(shell.last_output, began)
            end = limit if timeout is not None else silent_since + quiet_seconds
            check = max(check, silent_since + _FIRST_CHECK_SECONDS)
            with anyio.move_on_after(min(end, check) - anyio.current_time()):
                await shell.changed()
            if anyio.current_time() >= end:
                timed_out = "quiet" if timeout is None else "limit"
            elif anyio.current_time() >= check:
                state = await shell.foreground_state()
                pause = min(pause * 2, _LAST_CHECK_SECONDS)
                check = anyio.current_time() + pause
            await self._show(shell, ctx)
        while await self._show(shell, ctx) and not shell.busy:
            pass
        if not shell.busy and (outcome := self._outcome(shell)) is not None:
            return outcome
        observation = TerminalObservation(
            text=shell.take(ctx.secrets.unfinished),
            running=state != "stopped",
            waits_for_input=state == "reading",
            problem="stopped" if state == "stopped" else None,
            timed_out=timed_out,
            waited=None if timed_out is None else quiet_seconds if timeout is None else timeout,
        )
        return _Answer(observation, shell.whole)

    async def _show(self, shell: Shell, ctx: ToolContext) -> bool:
        """Show people what came since, and let some more come; return whether there was any."""
        live = shell.take_live(ctx.secrets.unfinished)
        if live:
            await ctx.progress(live)
            with anyio.move_on_after(_SHOW_SECONDS):
                await shell.idle()
        return bool(live)

    def _outcome(self, shell: Shell) -> _Answer | None:
        """Return how the command or the shell ended, if that was not reported yet.

        Raises:
            AgentcoreError: the place is gone in which the command ran, so that how it ended is not known.
        """
        ended = shell.take_ended()
        text = "" if ended is None else ended.text
        if not shell.alive and not self._end_reported:
            self._end_reported = True
            if ended is None and shell.lost is not None:
                raise shell.lost
            text += shell.take()
            ended_by = None
            if asks_to_exit(self._typed):
                ended_by = "exit"
            elif self._errexit and shell.exit_code:
                ended_by = "set -e"
            observation = TerminalObservation(text=text, exit_code=shell.exit_code, shell_ended=True, ended_by=ended_by)
            return _Answer(observation, shell.whole)
        if ended is None:
            return None
        code, self._errexit, cwd, python, _ = ended.report
        changed = python if python != self._python else None
        self._python = python
        observation = TerminalObservation(
            text=text, exit_code=code, commands=self._commands, cwd=cwd, python=changed or None
        )
        return _Answer(observation, ended.whole)

    async def _earlier(self, ctx: ToolContext) -> str:
        """Report the end of the command before, if that was not reported yet."""
        late = None if self._shell is None else self._outcome(self._shell)
        if late is None:
            return ""
        outcome, whole, _ = late
        if outcome.exit_code is None:
            return await self._titled("From the previous shell:", outcome.text, ctx, whole)
        what = "shell" if outcome.shell_ended else "command"
        head = f"[The previous {what} ended with exit code {outcome.exit_code}.]\n"
        return head + await self._titled("The rest of its output:", outcome.text, ctx, whole)

    async def _titled(self, title: str, text: str, ctx: ToolContext, whole: OutputFile | None = None) -> str:
        shown, _ = await shorten(text, ctx, f"{ctx.action_id}-before.txt", whole, _EARLIER_LIMIT)
        return f"[{title}]\n{_lines(shown)}" if shown else ""

    async def _living_shell(self) -> tuple[Shell, bool]:
        """Return the shell, and True if it replaced another one."""
        old = self._shell
        if old is not None and old.alive:
            return old, False
        shell = Shell(self._workspace, marks=self._marks, type_seconds=self._settings.type_seconds)
        self._tasks.start_soon(shell.serve, name="shell")
        await shell.ready()
        self._shell, self._end_reported, self._errexit = shell, False, False
        return shell, old is not None

    async def _stop(self) -> None:
        """End the command that runs; if the shell does not come through it, end that too."""
        shell = self._shell
        if shell is not None and shell.busy and not await shell.interrupt():
            await shell.close()


def _file(ctx: ToolContext) -> str:
    return f"{ctx.action_id}-terminal.txt"


def _lines(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"
