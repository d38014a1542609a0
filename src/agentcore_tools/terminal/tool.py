"""The terminal as a tool."""

from __future__ import annotations

from functools import partial
from typing import Final

from pydantic import JsonValue

from agentcore.tools import Tool, ToolAnnotations, ToolSpec
from agentcore_tools.terminal.action import TerminalAction
from agentcore_tools.terminal.mend import ALIASES, mend
from agentcore_tools.terminal.observation import TerminalObservation
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
start servers and the like in the background: `server > server.log 2>&1 &`.
- Nobody sits at the terminal: prefer flags that ask nothing (`-y`, `--no-input`); pages are not shown one by one.
- A secret of this conversation is in the environment of a command in which its name stands, as in `curl -H "X-Key: $API_TOKEN"`, and of no \
other."""


def terminal_tool(
    *, quiet_seconds: float = 30.0, input_seconds: float = 3.0
) -> Tool[TerminalAction, TerminalObservation]:
    """Make the tool with which an agent works at a terminal.

    Args:
        quiet_seconds: How long a command may be silent before the answer comes without its end.
        input_seconds: The same, for a command that something was typed into.

    Raises:
        ValueError: one of the two is not positive.
    """
    if min(quiet_seconds, input_seconds) <= 0:
        raise ValueError(f"A command has to have some time: not {quiet_seconds} and {input_seconds} seconds.")
    params: dict[str, JsonValue] = {}
    if quiet_seconds != 30.0:
        params["quiet_seconds"] = quiet_seconds
    if input_seconds != 3.0:
        params["input_seconds"] = input_seconds

    return Tool(
        name="terminal",
        description=_DESCRIPTION.format(quiet=quiet_seconds),
        action=TerminalAction,
        open=partial(open_terminal, quiet_seconds=quiet_seconds, input_seconds=input_seconds),
        annotations=ToolAnnotations(title="Terminal"),
        aliases=ALIASES,
        mend=mend,
        spec=ToolSpec(name="terminal", params=params),
    )
