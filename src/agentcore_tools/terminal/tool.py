"""The terminal as a tool, and the shells of one conversation."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, final

import anyio
from anyio.abc import TaskGroup
from pydantic import JsonValue, ValidationError

from agentcore.errors import ToolError
from agentcore.tools import Resource, Tool, ToolAnnotations, ToolContext, ToolSpec
from agentcore.workspace import Workspace
from agentcore_tools._commands import IGNORED, find_left, kept_output, left_mark
from agentcore_tools._output import OUTPUT_FILE_BYTES
from agentcore_tools.terminal.call import TerminalAction, TerminalObservation, show_answer, show_call
from agentcore_tools.terminal.input import ALIASES, normalize
from agentcore_tools.terminal.session import Session, TerminalSettings


@asynccontextmanager
async def open_terminal(
    workspace: Workspace, conversation_id: str, *, settings: TerminalSettings
) -> AsyncGenerator[Terminal]:
    """Open a terminal for one conversation; leaving ends its shells and everything that was started there."""
    try:
        async with anyio.create_task_group() as tasks:
            yield Terminal(workspace, conversation_id, tasks, settings)
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        error, *others = group.exceptions
        if others:
            raise
        # The group would only say that there was a task group.
        raise error from error.__cause__


@final
class Terminal:
    """Does the actions of one conversation: those of one session one at a time."""

    def __init__(
        self, workspace: Workspace, conversation_id: str, tasks: TaskGroup, settings: TerminalSettings
    ) -> None:
        self._workspace = workspace
        self._conversation_id = conversation_id
        self._tasks = tasks
        self._settings = settings
        self._sessions: dict[str, Session] = {}

    async def __call__(self, action: TerminalAction, ctx: ToolContext) -> TerminalObservation:
        """Do an action. Cancelling it ends the command that runs in that session, with all that the command started."""
        return await self._session(action.session)(action, ctx)

    def _session(self, name: str) -> Session:
        if (found := self._sessions.get(name)) is not None:
            return found
        if len(self._sessions) >= self._settings.sessions:
            for other, session in tuple(self._sessions.items()):
                if session.is_over:
                    del self._sessions[other]
        if len(self._sessions) >= self._settings.sessions:
            raise ToolError(
                f"{self._settings.sessions} sessions are open, and there may not be more: "
                f"{', '.join(map(repr, self._sessions))}. Use one of them, or close one: run `exit` in it, with reset if "
                "something runs there."
            )
        marks = {"AGENTCORE_TERMINAL": left_mark(self._conversation_id, name)}
        session = self._sessions[name] = Session(name, self._workspace, self._tasks, self._settings, marks)
        return session


async def reconcile(action: TerminalAction, ctx: ToolContext) -> TerminalObservation | None:
    """Report on an action after a crash: the processes of its session that still run, and the path of its output.

    None where it cannot be found out whether anything runs.
    """
    left = await find_left("AGENTCORE_TERMINAL", left_mark(ctx.conversation_id, action.session), ctx.workspace)
    if left is None:
        return None
    return TerminalObservation(
        text=f"[Still running: {left}.]" if left else "",
        problem="nothing_lost" if not action.command.strip() and not action.reset else "cut_off",
        new_shell=True,
        session=action.session,
        full_output_path=await kept_output(ctx, "terminal"),
    )


_DESCRIPTION: Final = """\
Run commands in bash, in one shell that lives as long as the conversation: variables, functions, aliases, the working \
directory and jobs in the background stay from one command to the next.

- A command may be of any length and any number of lines: pipes, loops, here-documents.
- The answer has what was written to the terminal (standard output and errors together), the exit code and the working \
directory. A long output is shown from its beginning and its end, with the path of a file that has the whole.
- A command that waits for input, is silent for {quiet:g} seconds, or is over its timeout, goes on, and the answer says so. An \
empty command waits for more; is_input types into it (text and Enter, or a key such as C-c). Another command can't run before it has ended; \
start servers and the like in the background (`server > server.log 2>&1 &`), or in a session of their own.
- No person sits at the terminal: prefer flags that ask nothing (`-y`, `--no-input`); pages are not shown one by one.
- A secret of this conversation is in the environment of a command in which its name stands, as in `curl -H "X-Key: $API_TOKEN"`, and of no \
other."""


def terminal_tool(
    *,
    quiet_seconds: float = 30.0,
    input_seconds: float = 3.0,
    type_seconds: float = 5.0,
    keep_bytes: int = OUTPUT_FILE_BYTES,
    sessions: int = 8,
    overlap: bool = False,
) -> Tool[TerminalAction, TerminalObservation]:
    """Make the tool with which an agent works at a terminal.

    Args:
        quiet_seconds: How long a command may be silent before the answer comes without its end.
        input_seconds: The same, for a command that something was typed into.
        type_seconds: How long what is typed may wait to be taken, before the shell counts as stuck.
        keep_bytes: How much of one command's output is kept on disk, beginning with its beginning.
        sessions: How many shells there may be at once.
        overlap: Whether commands in different sessions may run at once. As a command may write any file, calls of other tools
            in the same reply do not wait for them then, either.

    Raises:
        ValueError: a time or a number is not positive.
    """
    given = {
        "quiet_seconds": quiet_seconds,
        "input_seconds": input_seconds,
        "type_seconds": type_seconds,
        "keep_bytes": keep_bytes,
        "sessions": sessions,
        "overlap": overlap,
    }
    try:
        settings = TerminalSettings.model_validate(given)
    except ValidationError as error:
        wrong = "; ".join(f"{each['loc'][0]}={each['input']!r}: {each['msg']}" for each in error.errors())
        raise ValueError(f"A terminal can't be made like this: {wrong}.") from None
    params: dict[str, JsonValue] = settings.model_dump(exclude_defaults=True)

    return Tool(
        name="terminal",
        description=_DESCRIPTION.format(quiet=quiet_seconds),
        action=TerminalAction,
        open=partial(open_terminal, settings=settings),
        annotations=ToolAnnotations(title="Terminal"),
        resources=partial(_resources, overlap=overlap),
        reconcile=reconcile,
        aliases=ALIASES,
        normalize=normalize,
        ignored=IGNORED,
        display_call=show_call,
        display_answer=show_answer,
        spec=ToolSpec(name="terminal", params=params),
    )


def _resources(action: TerminalAction, _root: str, *, overlap: bool) -> tuple[Resource, ...]:
    """Return the resources of an action: its session and, as a command may do anything, every file."""
    session = Resource.named(f"terminal:{action.session}", "write")
    return (session,) if overlap else (Resource.workspace("write"), session)
