"""Running one program to its end as a tool."""

from __future__ import annotations

import codecs
import shlex
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final, cast, final

import anyio
from pydantic import JsonValue

from agentcore.tools import Arguments, Tool, ToolAnnotations, ToolContext, ToolSpec
from agentcore.workspace import Process
from agentcore_tools._commands import find_left, left_mark, named_secrets
from agentcore_tools._output import OUTPUT_FILE_BYTES, TEXT_LIMIT, HeadAndTail, OutputFile, shorten
from agentcore_tools.run.call import RunAction, RunObservation, show_answer, show_call, signal_of


@final
class Stream:
    """The output of a program on one of its streams."""

    def __init__(self, name: str, ctx: ToolContext, keep_bytes: int) -> None:
        self._file = f"{ctx.action_id}-{name}.txt"
        self._ctx = ctx
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._kept = HeadAndTail()
        self._whole = OutputFile(partial(ctx.open_spool, self._file, limit=keep_bytes), TEXT_LIMIT // 2)
        self.text = ""
        """The text that was kept, when all is read."""

    async def read(self, receive: Callable[[], Awaitable[bytes]]) -> None:
        """Read until there is no more, and show people what comes."""
        try:
            while True:
                await self._add(self._decoder.decode(await receive()))
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return

    async def finish(self) -> None:
        """Finish reading."""
        await self._add(self._decoder.decode(b"", final=True))
        self._whole.end()
        await self._whole.keep()
        self.text = self._kept.take()

    async def shortened(self, limit: int) -> tuple[str, str | None]:
        """Return the text to show, and the path of the full output if that is not all."""
        return await shorten(self.text, self._ctx, self._file, self._whole, limit)

    async def _add(self, text: str) -> None:
        if not text:
            return
        # A model can't be sent this character by every provider, and it stands for a gap where something is left out.
        text = text.replace("\0", "\u2400")
        self._kept.add(text)
        self._whole.add(text)
        await self._whole.keep()
        await self._ctx.progress(text)


_MARK: Final = "AGENTCORE_RUN"
# When all that it started has ended, what that wrote is there to be read.
_READ_ON_SECONDS: Final = 1.0


async def execute(action: RunAction, ctx: ToolContext, *, timeout_seconds: float, keep_bytes: int) -> RunObservation:
    """Run a program, and end what it leaves behind. Cancelling it ends all of that at once."""
    command = action.command
    secrets = await named_secrets(command if isinstance(command, str) else " ".join(command), ctx.secrets)
    given = dict(each.split("=", 1) for each in action.env or ())
    env = {**secrets, **given, _MARK: left_mark(ctx.conversation_id, ctx.action_id)}
    out, err = Stream("stdout", ctx, keep_bytes), Stream("stderr", ctx, keep_bytes)
    began = anyio.current_time()
    async with ctx.workspace.open_process(command, cwd=action.cwd, env=env) as process:
        timed_out = await _run_to_end(process, action.stdin, out, err, action.timeout or timeout_seconds)
        code = await process.wait()
    seconds = anyio.current_time() - began
    await out.finish()
    await err.finish()
    half = TEXT_LIMIT // 2
    # One that is short leaves its room to the other.
    room = max(half, TEXT_LIMIT - len(err.text)), max(half, TEXT_LIMIT - len(out.text))
    stdout, stdout_path = await out.shortened(room[0])
    stderr, stderr_path = await err.shortened(room[1])
    return RunObservation(
        stdout=stdout,
        stderr=stderr,
        exit_code=code,
        signal=signal_of(code),
        timed_out=timed_out,
        seconds=round(seconds, 3),
        stdout_path=stdout_path,
        stderr_path=stderr_path,
    )


async def _run_to_end(process: Process, stdin: str | None, out: Stream, err: Stream, timeout: float) -> bool:
    """Feed it, read it, and end what is left; say whether it took too long."""
    waiting = anyio.CancelScope()
    async with anyio.create_task_group() as feeding:
        feeding.start_soon(_feed, process, stdin)
        with anyio.CancelScope() as reading:
            async with anyio.create_task_group() as readers:
                readers.start_soon(out.read, process.receive)
                readers.start_soon(err.read, process.receive_stderr)
                waiting.deadline = anyio.current_time() + timeout
                with waiting:
                    await process.wait()
                await process.terminate()
                reading.deadline = anyio.current_time() + _READ_ON_SECONDS
        feeding.cancel_scope.cancel()
    return waiting.cancelled_caught


async def _feed(process: Process, stdin: str | None) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        if stdin:
            await process.send(stdin.encode(errors="replace"))
    # Also where it did not want to read all of it, as `head` does not.
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.send_eof()


async def reconcile(_action: RunAction, ctx: ToolContext) -> RunObservation | None:
    """Report on a program after a crash: its processes that still run, and the paths of its output.

    None where it cannot be found out whether anything runs.
    """
    left = await find_left(_MARK, left_mark(ctx.conversation_id, ctx.action_id), ctx.workspace)
    if left is None:
        return None
    folder = await ctx.workspace.private_folder(ctx.conversation_id)
    paths: dict[str, str] = {}
    for name in ("stdout", "stderr"):
        path = f"{folder}/{ctx.action_id}-{name}.txt"
        if await ctx.workspace.stat(path) is not None:
            paths[f"{name}_path"] = path
    return RunObservation(
        stdout=f"[Still running: {left}.]" if left else "",
        problem="cut_off",
        stdout_path=paths.get("stdout_path"),
        stderr_path=paths.get("stderr_path"),
    )


_TIMEOUT_SECONDS: Final = 120.0
_DESCRIPTION: Final = """\
Run one program, or a script for bash, to its end, in a process of its own: nothing is kept from one call to the next, and what \
it leaves running is ended.

- The answer has its standard output, its standard error and its exit code, each by itself. Of a long output the beginning and \
the end are shown, with the path of a file that has the whole.
- With a list (`["git", "commit", "-m", "It's done"]`) no shell reads the arguments, so nothing needs quoting.
- It has no terminal, so it cannot ask for anything; pass its input as stdin.
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
    *, timeout_seconds: float = _TIMEOUT_SECONDS, keep_bytes: int = OUTPUT_FILE_BYTES
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
    if keep_bytes != OUTPUT_FILE_BYTES:
        params["keep_bytes"] = keep_bytes
    return Tool(
        name="run",
        description=_DESCRIPTION.format(timeout=timeout_seconds),
        action=RunAction,
        execute=partial(execute, timeout_seconds=timeout_seconds, keep_bytes=keep_bytes),
        annotations=ToolAnnotations(title="Run"),
        reconcile=reconcile,
        aliases=("exec", "run_program", "subprocess"),
        normalize=_normalize,
        display_call=show_call,
        display_answer=show_answer,
        spec=ToolSpec(name="run", params=params),
    )


def _normalize(arguments: Arguments) -> Arguments:
    """Rename the arguments, join a program and its arguments, and write variables as a shell does."""
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
