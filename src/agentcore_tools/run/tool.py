"""Running one program as a tool."""

from __future__ import annotations

import shlex
from functools import partial
from typing import Final, cast

from pydantic import JsonValue

from agentcore.tools import Arguments, Tool, ToolAnnotations, ToolSpec
from agentcore_tools._output import WHOLE_BYTES
from agentcore_tools.run.action import RunAction
from agentcore_tools.run.display import show_answer, show_call
from agentcore_tools.run.execute import execute, reconcile
from agentcore_tools.run.observation import RunObservation

__all__ = ["run_tool"]

_TIMEOUT_SECONDS: Final = 120.0
_DESCRIPTION: Final = """\
Run one program, or a script for bash, to its end, in a process of its own: nothing is kept from one call to the next, and what \
it leaves running is ended.

- The answer has its standard output, its standard error and its exit code, each by itself. Of a long output the beginning and \
the end are shown, with the path of a file that has the whole.
- With a list (`["git", "commit", "-m", "It's done"]`) no shell reads the arguments, so nothing needs quoting.
- It has no terminal, so nobody is asked for anything; give what it is to read as stdin.
- After {timeout:g} seconds, or its timeout, it is ended.
- A secret of this conversation is in its environment if its name stands in the command."""

_OTHER_NAMES: Final = {
    "cmd": "command",
    "argv": "command",
    "script": "command",
    "input": "stdin",
    "workdir": "cwd",
    "working_directory": "cwd",
    "environment": "env",
    "timeout_seconds": "timeout",
}


def run_tool(
    *, timeout_seconds: float = _TIMEOUT_SECONDS, keep_bytes: int = WHOLE_BYTES
) -> Tool[RunAction, RunObservation]:
    """Make the tool that runs one program to its end.

    Args:
        timeout_seconds: After how long a program is ended, where the call does not say.
        keep_bytes: How much of each stream is kept on disk, beginning with its beginning.

    Raises:
        ValueError: one of the two is not positive.
    """
    if timeout_seconds <= 0 or keep_bytes < 0:
        raise ValueError(f"A program has to have some time and room: not {timeout_seconds} s and {keep_bytes} bytes.")
    params: dict[str, JsonValue] = {}
    if timeout_seconds != _TIMEOUT_SECONDS:
        params["timeout_seconds"] = timeout_seconds
    if keep_bytes != WHOLE_BYTES:
        params["keep_bytes"] = keep_bytes
    return Tool(
        name="run",
        description=_DESCRIPTION.format(timeout=timeout_seconds),
        action=RunAction,
        execute=partial(execute, timeout_seconds=timeout_seconds, keep_bytes=keep_bytes),
        annotations=ToolAnnotations(title="Run"),
        reconcile=reconcile,
        aliases=("exec", "run_program", "subprocess"),
        normalize=_mend,
        display_call=show_call,
        display_answer=show_answer,
        spec=ToolSpec(name="run", params=params),
    )


def _mend(arguments: Arguments) -> Arguments:
    """Give the arguments their names, put a program and its arguments together, and write variables as a shell does."""
    renamed = {
        new if (new := _OTHER_NAMES.get(name, name)) not in arguments else name: value
        for name, value in arguments.items()
    }
    command, args = renamed.get("command"), renamed.get("args")
    if isinstance(command, str) and isinstance(args, list) and all(isinstance(word, str) for word in args):
        del renamed["args"]
        renamed["command"] = [*shlex.split(command), *cast("list[str]", args)]
    variables = renamed.get("env")
    if isinstance(variables, dict) and all(isinstance(value, str) for value in variables.values()):
        renamed["env"] = [f"{name}={value}" for name, value in variables.items()]
    return renamed
