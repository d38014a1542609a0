"""The terminal as a tool."""

from __future__ import annotations

from functools import partial
from typing import Final

from pydantic import JsonValue, ValidationError

from agentcore.tools import Resource, Tool, ToolAnnotations, ToolSpec
from agentcore_tools._output import WHOLE_BYTES
from agentcore_tools.terminal.action import TerminalAction
from agentcore_tools.terminal.display import show_answer, show_call
from agentcore_tools.terminal.normalize import ALIASES, normalize
from agentcore_tools.terminal.observation import TerminalObservation
from agentcore_tools.terminal.reconcile import reconcile
from agentcore_tools.terminal.settings import TerminalSettings
from agentcore_tools.terminal.terminal import open_terminal

__all__ = ["terminal_tool"]

_DESCRIPTION: Final = """\
Run commands in bash, in one shell that lives as long as the conversation: variables, functions, aliases, the working \
directory and jobs in the background stay from one command to the next.

- A command may be of any length and any number of lines: pipes, loops, here-documents.
- The answer has what was written to the terminal (standard output and errors together), the exit code and the working \
directory. A long output is shown from its beginning and its end, with the path of a file that has the whole.
- A command that is silent for {quiet:g} seconds, or is over its timeout, goes on, and the answer says so. An empty command \
waits for more; is_input types into it (text and Enter, or a key such as C-c). Another command can't run before it has ended; \
start servers and the like in the background (`server > server.log 2>&1 &`), or in a session of their own.
- Nobody sits at the terminal: prefer flags that ask nothing (`-y`, `--no-input`); pages are not shown one by one.
- A secret of this conversation is in the environment of a command in which its name stands, as in `curl -H "X-Key: $API_TOKEN"`, and of no \
other."""


def terminal_tool(
    *,
    quiet_seconds: float = 30.0,
    input_seconds: float = 3.0,
    type_seconds: float = 5.0,
    keep_bytes: int = WHOLE_BYTES,
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
        display_call=show_call,
        display_answer=show_answer,
        spec=ToolSpec(name="terminal", params=params),
    )


def _resources(action: TerminalAction, _root: str, *, overlap: bool) -> tuple[Resource, ...]:
    """Tell what an action touches: its session and, as a command may do anything, every file."""
    session = Resource.named(f"terminal:{action.session}", "write")
    return (session,) if overlap else (Resource.workspace("write"), session)
