"""Running one program to its end as a tool: its output and its errors apart, its exit code, nothing left behind."""

import codecs
import shlex
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Final, Literal, cast, final

import anyio
from pydantic import Field, JsonValue

from agentcore.display import CommandBlock, DisplayBlock, MarkdownBlock, code_span
from agentcore.messages import ResultBlock
from agentcore.tools import Action, Arguments, Observation, Tool, ToolAnnotations, ToolContext, ToolSpec
from agentcore.workspace import Process, explain_exit
from agentcore_tools._calls import heading, others, rename
from agentcore_tools._commands import (
    IGNORED,
    find_left,
    kept_output,
    left_mark,
    named_secrets,
    read_seconds,
    refuse_background,
)
from agentcore_tools._output import OUTPUT_FILE_BYTES, TEXT_LIMIT, OutputFile, shorten
from agentcore_tools.terminal.protocol import HEIGHT, WIDTH
from agentcore_tools.terminal.screen import Screen

# No postponed annotations: pydantic would evaluate each of them again, at every import.


class RunAction(Action):
    """A program, or a script, and what it is given."""

    command: Annotated[str, Field(min_length=1)] | Annotated[tuple[str, ...], Field(min_length=1)]
    """A script for bash in one line or several; or a program and its arguments as a list, which no shell reads."""
    cwd: str | None = None
    """The folder to run it in; a relative path starts in the workspace. Without it, that is the workspace's folder."""
    env: tuple[Annotated[str, Field(pattern="^[^=]+=")], ...] | None = None
    """Variables to add to its environment, each as `NAME=value`."""
    stdin: str | None = None
    """The text for its standard input; without it, that is empty."""
    timeout: Annotated[float, Field(ge=0.001)] | None = None
    """After so many seconds it is killed, with all that it started."""


class RunObservation(Observation):
    """The output and the errors of a program, apart, and how it ended."""

    stdout: str = ""
    """Its standard output; of a long one the beginning and the end."""
    stderr: str = ""
    """Its standard error; of a long one the beginning and the end."""
    exit_code: int | None = None
    """0 to 255; 128 and the signal's number where a signal ended it. None where it is not known."""
    signal: str | None = None
    """The name of the signal that the exit code stands for, as `SIGKILL`."""
    timed_out: bool = False
    """True if it took too long and was killed."""
    seconds: float = 0.0
    """How long it ran."""
    killed_because: str | None = None
    """Why it was killed, where the workspace knows: a sentence."""
    stdout_path: str | None = None
    """Where the whole of a long output is, in the workspace."""
    stderr_path: str | None = None
    """Where the whole of long errors is, in the workspace."""
    problem: Literal["cut_off"] | None = None
    """Why nothing is known of its end: the process that ran it ended first."""

    @property
    def is_error(self) -> bool:
        """True if it failed, or did not come to its end."""
        return self.timed_out or self.exit_code != 0

    def to_content(self) -> Sequence[str | ResultBlock]:
        nothing = "(no output)" if self.problem is None and not self.stdout and not self.stderr else ""
        return ("\n".join(part for part in (self.written, nothing, self._end()) if part),)

    @property
    def written(self) -> str:
        """All that it wrote, its errors below its output."""
        errors = f"[Standard error:]\n{self.stderr.removesuffix(chr(10))}" if self.stderr else ""
        return "\n".join(part for part in (self.stdout.removesuffix("\n"), errors) if part)

    def to_data(self) -> dict[str, JsonValue]:
        """Return how it ended; its output is in the content already."""
        return self.model_dump(mode="json", exclude={"stdout", "stderr"})

    def _end(self) -> str:
        if self.problem == "cut_off":
            kept = [path for path in (self.stdout_path, self.stderr_path) if path]
            where = f" Its output until then: {' and '.join(kept)}." if kept else ""
            return (
                "[The process that ran this ended first. How the program ended is not known: check before you do it again."
                f"{where}]"
            )
        if self.timed_out:
            return f"[Timed out after {self.seconds:.1f} s; killed with its children.]"
        named = f" ({self.signal})" if self.signal else ""
        because = f" {self.killed_because}" if self.killed_because else ""
        return f"[exit code {self.exit_code}{named}; {self.seconds:.1f} s]{because}"


def _signal_of(exit_code: int) -> str | None:
    """Name the signal that an exit code stands for."""
    try:
        return signal.Signals(exit_code - 128).name if exit_code > 128 else None
    except ValueError:
        return None


def _show_call(action: RunAction) -> Sequence[DisplayBlock]:
    """Show a program as one would type it; what else was asked stands before it."""
    return (*heading(others(action, "command")), CommandBlock(command=_typed(action)))


def _show_answer(action: RunAction, observation: RunObservation) -> Sequence[DisplayBlock]:
    """Show what it wrote, how it ended, and where the whole of a long output is."""
    command = CommandBlock(command=_typed(action), exit_code=observation.exit_code, output=observation.written)
    places = (("output", observation.stdout_path), ("errors", observation.stderr_path))
    kept = [MarkdownBlock(text=f"all of its {what}: {code_span(path)}") for what, path in places if path is not None]
    return (command, *heading(_state(observation)), *kept)


def _state(observation: RunObservation) -> str:
    """Return how it ended, where that is more than an exit code."""
    if observation.problem is not None:
        return "cut off: how it ended is not known"
    ended = f"exit code {observation.exit_code} ({observation.signal})" if observation.signal else ""
    if not observation.timed_out:
        return ended
    return ", ".join(filter(None, ("timed out and was killed", ended)))


def _typed(action: RunAction) -> str:
    command = action.command
    return command if isinstance(command, str) else " ".join(map(_quoted, command))


def _quoted(word: str) -> str:
    """Quote a word for a shell, with the quotation marks that can be read best."""
    if "'" in word and not set(word) & set('"$`\\!\n'):
        return f'"{word}"'
    return shlex.quote(word)


@final
class _Stream:
    """The output of a program on one of its streams."""

    def __init__(self, name: str, ctx: ToolContext, keep_bytes: int) -> None:
        self._file = f"{ctx.action_id}-{name}.txt"
        self._ctx = ctx
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._whole = OutputFile(partial(ctx.open_spool, self._file, limit=keep_bytes), TEXT_LIMIT // 2)
        self._screen = Screen(WIDTH, HEIGHT)
        self._screen.whole = self._whole.add
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
        self.text = self._screen.finish()
        self._whole.end()
        await self._whole.keep()

    async def shortened(self, limit: int) -> tuple[str, str | None]:
        """Return the text to show, and the path of the full output if that is not all."""
        return await shorten(self.text, self._ctx, self._file, self._whole, limit)

    async def _add(self, text: str) -> None:
        if not text:
            return
        # A model can't be sent this character by every provider, and it stands for a gap where something is left out.
        watched = self._screen.feed(text.replace("\0", "\u2400"))
        await self._whole.keep()
        if watched:
            await self._ctx.progress(watched)


_MARK: Final = "AGENTCORE_RUN"
# When all that it started has ended, what that wrote is there to be read.
_READ_ON_SECONDS: Final = 1.0


async def _execute(action: RunAction, ctx: ToolContext, *, timeout_seconds: float, keep_bytes: int) -> RunObservation:
    """Run a program, and end what it leaves behind. Cancelling it ends all of that at once."""
    command = action.command
    secrets = await named_secrets(command if isinstance(command, str) else " ".join(command), ctx.secrets)
    given = dict(each.split("=", 1) for each in action.env or ())
    env = {**secrets, **given, _MARK: left_mark(ctx.conversation_id, ctx.action_id)}
    out, err = _Stream("stdout", ctx, keep_bytes), _Stream("stderr", ctx, keep_bytes)
    began = anyio.current_time()
    async with ctx.workspace.open_process(command, cwd=action.cwd, env=env) as process:
        timed_out = await _run_to_end(process, action.stdin, out, err, action.timeout or timeout_seconds)
        code = await process.wait()
        killed_because = None if timed_out else await explain_exit(ctx.workspace, code)
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
        signal=_signal_of(code),
        timed_out=timed_out,
        seconds=round(seconds, 3),
        killed_because=killed_because,
        stdout_path=stdout_path,
        stderr_path=stderr_path,
    )


async def _run_to_end(process: Process, stdin: str | None, out: _Stream, err: _Stream, timeout: float) -> bool:
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


async def _reconcile(_action: RunAction, ctx: ToolContext) -> RunObservation | None:
    """Report on a program after a crash: its processes that still run, and the paths of its output.

    None where it cannot be found out whether anything runs.
    """
    left = await find_left(_MARK, left_mark(ctx.conversation_id, ctx.action_id), ctx.workspace)
    if left is None:
        return None
    return RunObservation(
        stdout=f"[Still running: {left}.]" if left else "",
        problem="cut_off",
        stdout_path=await kept_output(ctx, "stdout"),
        stderr_path=await kept_output(ctx, "stderr"),
    )


_TIMEOUT_SECONDS: Final = 120.0
_DESCRIPTION: Final = """\
Run one program, or a script for bash, to its end, in a process of its own: nothing is kept from one call to the next, and what \
it leaves running is killed.

- The answer has its standard output, its standard error and its exit code, each by itself. Of a long output the beginning and \
the end are shown, with the path of a file that has the whole.
- With a list (`["git", "commit", "-m", "It's done"]`) no shell reads the arguments, so nothing needs quoting.
- It has no terminal, so it cannot ask for anything; pass its input as stdin.
- After {timeout:g} seconds, or its timeout, it is killed.
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
        execute=partial(_execute, timeout_seconds=timeout_seconds, keep_bytes=keep_bytes),
        annotations=ToolAnnotations(title="Run"),
        reconcile=_reconcile,
        aliases=("exec", "run_program", "subprocess"),
        normalize=_normalize,
        ignored=IGNORED,
        display_call=_show_call,
        display_answer=_show_answer,
        spec=ToolSpec(name="run", params=params),
    )


def _normalize(arguments: Arguments) -> Arguments:
    """Rename the arguments, join a program and its arguments, and write variables as a shell does."""
    refuse_background(arguments, "What this tool starts ends with it: use a terminal for what goes on.")
    renamed = rename(arguments, _OTHER_NAMES)
    read_seconds(renamed)
    command, args = renamed.get("command"), renamed.get("args")
    if isinstance(command, str) and isinstance(args, list) and all(isinstance(word, str) for word in args):
        del renamed["args"]
        renamed["command"] = [*shlex.split(command), *cast("list[str]", args)]
    variables = renamed.get("env")
    if isinstance(variables, dict) and all(isinstance(value, str) for value in variables.values()):
        renamed["env"] = [f"{name}={value}" for name, value in variables.items()]
    return renamed
